"""EMR Serverless and Glue for the work of tasks, made by the stage with the rights of a node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emrserverless, aws_glue
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.grants import allow, for_this_account
from polynya_constructs.nodes.access import Lakehouse, grant_tables, grant_tasks
from polynya_constructs.nodes.submitting import EmrApplication
from polynya_constructs.patterns import EMR_RELEASE, GLUE_JOB
from polynya_constructs.runtime_package import JobPackage

_MEMORY_PER_VCPU_GB: Final = 8
_DISK_PER_VCPU_GB: Final = 20
_GLUE_VERSION: Final = "5.0"
_GLUE_MINUTES: Final = 720
#: Workers of a run that its task does not size: Glue's least.
_GLUE_WORKERS: Final = 2
#: Findings of cdk-nag for a job without a security configuration.
_ACCEPTED: Final = {
    "AwsSolutions-GL1": "CloudWatch encrypts the log with a key of its own, as that of the nodes",
    "AwsSolutions-GL3": "a run keeps no bookmark: what was read is in the tables",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmrJobs:
    """An application of EMR Serverless.

    Raises ValueError for a release that cannot be, or bounds that EMR does not take.

    Attributes:
        release: of EMR, 7.10 or newer: its image has Python 3.11 and Java 17.
        architecture: of its workers.
        max_vcpu: of all workers together, with 8 GB of memory for each.
        idle_minutes: until an application without a job stops.
    """

    release: str = "emr-7.10.0"
    architecture: Architecture = Architecture.ARM64
    max_vcpu: int = 64
    idle_minutes: int = 10

    def __post_init__(self) -> None:
        """Check them."""
        if not re.fullmatch(EMR_RELEASE, self.release):
            raise ValueError(f"release is {self.release!r}; write one such as emr-7.10.0")
        if not 4 <= self.max_vcpu <= 4000:
            raise ValueError(f"max_vcpu is {self.max_vcpu}; it has to be 4 to 4000")
        if not 1 <= self.idle_minutes <= 10_080:
            raise ValueError(f"idle_minutes is {self.idle_minutes}; it has to be 1 to 10080")


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueJobs:
    """A Glue job.

    Attributes:
        worker_type: of runs whose tasks do not name another one.
        concurrent_runs: at the same time: one for each dataset that is submitted.
    """

    worker_type: str = "G.1X"
    concurrent_runs: int = 50


class JobServices(Construct):
    """An application, a Glue job, or both, and the role of their runs.

    No worker is kept warm, and an idle application costs nothing. Runs read tasks and landing, and
    keep the tables of the lakehouse; Glue also writes its logs. `application` and `glue_job` are
    what `grant_submitting` takes, None for what was not asked for; `emr_words` and `glue_job` are
    what nodes are told (`node_boot`).

    Example:
        >>> JobServices(
        ...     stack, "Jobs", name="polynya-dev-main", vpc=vpc, lakehouse=lakehouse,
        ...     emr=EmrJobs(), emr_package=package,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        project: str = "",
        emr: EmrJobs | None = None,
        emr_package: JobPackage | None = None,
        glue: GlueJobs | None = None,
        glue_package: JobPackage | None = None,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of application and job, unique in the account and region.
            vpc: workers of EMR run in its isolated subnets. Glue's run in the network of Glue.
            lakehouse: on which runs work, with the databases whose tables they keep.
            project: prefix of the tasks that runs may read; default: all of them.
            emr: the application; default: none.
            emr_package: what its jobs fetch, for its architecture.
            glue: the Glue job; default: none.
            glue_package: what its runs fetch, for x86_64.

        Raises:
            ValueError: a service without its package, or a name that cannot be.
        """
        super().__init__(scope, id_)
        if (emr is None) != (emr_package is None) or (glue is None) != (glue_package is None):
            raise ValueError("each service needs its package, and each package its service")
        if not re.fullmatch(GLUE_JOB, name):
            raise ValueError(f"{name!r} is not the name of a Glue job")
        services = [
            each for each, wanted in (("emr-serverless", emr), ("glue", glue)) if wanted is not None
        ]
        if not services:
            raise ValueError("no service is asked for")
        trusted = [for_this_account(self, f"{each}.amazonaws.com") for each in services]
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.CompositePrincipal(*trusted),
            description=f"Polynya: runs of tasks of {name}",
        )
        grant_tasks(self.role, lakehouse, project=project)
        grant_tables(self.role, lakehouse)
        for package in (emr_package, glue_package):
            if package is not None:
                package.grant_read(self.role)
        self.application: EmrApplication | None = None
        self.emr_words: tuple[str, ...] = ()
        self.glue_job: str | None = None
        if emr is not None and emr_package is not None:
            made = self._application(name, vpc, emr)
            self.application = EmrApplication(
                application_id=made, execution_role=self.role.role_arn
            )
            self.emr_words = (
                made, self.role.role_arn, emr_package.script.url, emr_package.environment.url
            )  # fmt: skip
        if glue is not None and glue_package is not None:
            self._job(name, glue, glue_package)
            self.glue_job = name

    def _application(self, name: str, vpc: ec2.IVpc, wanted: EmrJobs) -> str:
        """Make the application; its id."""
        security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description=name, allow_all_outbound=False
        )
        security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443))
        of = aws_emrserverless.CfnApplication
        application = of(
            self,
            "Application",
            name=name,
            type="SPARK",
            release_label=wanted.release,
            architecture="ARM64" if wanted.architecture is Architecture.ARM64 else "X86_64",
            auto_start_configuration=of.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=of.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=wanted.idle_minutes
            ),
            maximum_capacity=of.MaximumAllowedResourcesProperty(
                cpu=f"{wanted.max_vcpu} vCPU",
                memory=f"{wanted.max_vcpu * _MEMORY_PER_VCPU_GB} GB",
                disk=f"{wanted.max_vcpu * _DISK_PER_VCPU_GB} GB",
            ),
            network_configuration=of.NetworkConfigurationProperty(
                subnet_ids=[subnet.subnet_id for subnet in vpc.isolated_subnets],
                security_group_ids=[security_group.security_group_id],
            ),
        )
        return application.attr_application_id

    def _job(self, name: str, wanted: GlueJobs, package: JobPackage) -> None:
        allow(
            self.role,
            "WriteGlueLogs",
            actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[
                cdk.Stack.of(self).format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name="/aws-glue/jobs/*",
                    arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                )
            ],
            wildcard="Glue makes a log stream for each run, in log groups of its own",
        )
        job = aws_glue.CfnJob(
            self,
            "Job",
            name=name,
            role=self.role.role_arn,
            command=aws_glue.CfnJob.JobCommandProperty(
                name="glueetl", python_version="3", script_location=package.script.url
            ),
            glue_version=_GLUE_VERSION,
            worker_type=wanted.worker_type,
            number_of_workers=_GLUE_WORKERS,
            # The agent submits a failed run again.
            max_retries=0,
            timeout=_GLUE_MINUTES,
            execution_property=aws_glue.CfnJob.ExecutionPropertyProperty(
                max_concurrent_runs=wanted.concurrent_runs
            ),
            default_arguments={"--extra-files": package.environment.url},
        )
        for rule, reason in _ACCEPTED.items():
            cdk.Validations.of(job).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))
