"""Redshift Serverless beside the lakehouse: private, paid by the second of a query."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_redshiftserverless as redshift
from constructs import Construct

from polynya_constructs.grants import LIST_TABLES, for_this_account
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.query.read_only import deny_changes, grant_catalog, grant_files
from polynya_constructs.query.redshift_limits import LEAST_ZONES, check_capacity
from polynya_constructs.removal import KEPT


class RedshiftServerless(Construct):
    """A namespace and a workgroup without a way in, and the role of its external schemas.

    Nobody connects to it over the network: queries go through the Redshift Data API or the query
    editor. All its traffic stays in the VPC, so S3 and Glue are reached through endpoints. The
    password of its administrator is made and kept by AWS Secrets Manager.

    The role reads the tables of the databases and changes nothing, so that no `DROP` in an external
    schema drops our table.

    `role` is the namespace's default role, `namespace` and `workgroup` are what was made.

    Example:
        >>> RedshiftServerless(stack, "Redshift", name="shop", vpc=vpc, lakehouse=lakehouse)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        base_capacity: int = 8,
        max_capacity: int = 32,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the namespace.
            name: of namespace and workgroup, 3 to 64 of a-z 0-9 -.
            vpc: the workgroup is in its isolated subnets.
            lakehouse: whose tables it reads.
            base_capacity: Redshift processing units that a query begins with; default 8.
            max_capacity: at most so many, which bounds what an hour costs; default 32.
            removal_policy: what becomes of the namespace, which may hold tables; default: kept.

        Raises:
            ValueError: for capacities that there are not, or fewer than 3 subnets.
        """
        super().__init__(scope, id_)
        check_capacity(base_capacity, max_capacity)
        if len(vpc.isolated_subnets) < LEAST_ZONES:
            raise ValueError(f"Redshift Serverless wants subnets in {LEAST_ZONES} zones")
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.CompositePrincipal(
                for_this_account(self, "redshift-serverless.amazonaws.com"),
                for_this_account(self, "redshift.amazonaws.com"),
            ),
            description=f"Polynya: external schemas of {name}",
        )
        grant_files(self.role, lakehouse)
        grant_catalog(self.role, lakehouse, LIST_TABLES)
        deny_changes(self.role, lakehouse)
        self.namespace = redshift.CfnNamespace(
            self,
            "Namespace",
            namespace_name=name,
            db_name="lakehouse",
            manage_admin_password=True,
            admin_password_secret_kms_key_id=lakehouse.key.key_arn,
            kms_key_id=lakehouse.key.key_arn,
            iam_roles=[self.role.role_arn],
            default_iam_role_arn=self.role.role_arn,
            log_exports=["userlog", "connectionlog", "useractivitylog"],
        )
        self.namespace.apply_removal_policy(removal_policy)
        self.workgroup = self._workgroup(name, vpc, base_capacity, max_capacity)
        self.workgroup.add_resource_dependency(self.namespace)

    def _workgroup(
        self, name: str, vpc: ec2.IVpc, base_capacity: int, max_capacity: int
    ) -> redshift.CfnWorkgroup:
        security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description=name, allow_all_outbound=False
        )
        security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443))
        return redshift.CfnWorkgroup(
            self,
            "Workgroup",
            workgroup_name=name,
            namespace_name=name,
            base_capacity=base_capacity,
            max_capacity=max_capacity,
            publicly_accessible=False,
            enhanced_vpc_routing=True,
            subnet_ids=[subnet.subnet_id for subnet in vpc.isolated_subnets],
            security_group_ids=[security_group.security_group_id],
        )
