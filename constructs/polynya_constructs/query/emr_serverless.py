"""EMR Serverless: Spark with Iceberg on the Glue catalog for jobs of people, nothing when idle."""

from __future__ import annotations

import re
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.grants import for_this_account
from polynya_constructs.nodes.access import Lakehouse, grant_reading
from polynya_constructs.patterns import EMR_RELEASE

_MEMORY_PER_VCPU_GB: Final = 4
_DISK_PER_VCPU_GB: Final = 20

# Where EMR keeps its Iceberg (EMR Serverless User Guide, "Using Apache Iceberg").
_ICEBERG_JAR: Final = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"


class EmrServerlessSpark(Construct):
    """An application in the private subnets and the role of its jobs, which may read tables.

    No worker is kept warm: a job waits a minute or two for its first one, and an idle application
    costs nothing. The catalog is called `lake` in Spark. `application` and `job_role` are what was
    made; jobs that write need rights of their own on `job_role`.

    Example:
        >>> EmrServerlessSpark(stack, "Spark", name="shop", vpc=vpc, lakehouse=lakehouse)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        release: str = "emr-7.10.0",
        max_vcpu: int = 32,
        idle_minutes: int = 10,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of the application, unique in the account and region.
            vpc: workers run in its isolated subnets.
            lakehouse: whose tables jobs read.
            release: of EMR; default emr-7.10.0.
            max_vcpu: of all workers together, with 4 GB of memory for each; default 32.
            idle_minutes: until an application without a job stops; default 10.

        Raises:
            ValueError: for a release that cannot be, less than 4 vCPU, or idle time out of 1 to
                10080 minutes.
        """
        super().__init__(scope, id_)
        if not re.fullmatch(EMR_RELEASE, release):
            raise ValueError(f"release is {release!r}; write one such as emr-7.10.0")
        if not 4 <= max_vcpu <= 4000:
            raise ValueError(f"max_vcpu is {max_vcpu}; it has to be 4 to 4000")
        if not 1 <= idle_minutes <= 10_080:
            raise ValueError(f"idle_minutes is {idle_minutes}; it has to be 1 to 10080")
        self.job_role = iam.Role(
            self,
            "JobRole",
            assumed_by=for_this_account(self, "emr-serverless.amazonaws.com"),
            description=f"Polynya: jobs of {name}",
        )
        grant_reading(self.job_role, lakehouse)
        security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description=name, allow_all_outbound=False
        )
        security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443))
        of = emr.CfnApplication
        self.application = of(
            self,
            "Application",
            name=name,
            type="SPARK",
            release_label=release,
            architecture="ARM64",
            auto_start_configuration=of.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=of.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=idle_minutes
            ),
            maximum_capacity=of.MaximumAllowedResourcesProperty(
                cpu=f"{max_vcpu} vCPU",
                memory=f"{max_vcpu * _MEMORY_PER_VCPU_GB} GB",
                disk=f"{max_vcpu * _DISK_PER_VCPU_GB} GB",
            ),
            network_configuration=of.NetworkConfigurationProperty(
                subnet_ids=[subnet.subnet_id for subnet in vpc.isolated_subnets],
                security_group_ids=[security_group.security_group_id],
            ),
            runtime_configuration=[
                of.ConfigurationObjectProperty(
                    classification="spark-defaults", properties=_spark_defaults(lakehouse)
                )
            ],
        )


def _spark_defaults(lakehouse: Lakehouse) -> dict[str, str]:
    catalog = "spark.sql.catalog.lake"
    return {
        "spark.jars": _ICEBERG_JAR,
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "glue",
        f"{catalog}.warehouse": lakehouse.warehouse.s3_url_for_object(),
    }
