"""Lake Formation over the warehouse, in hybrid mode: nobody loses a right by its being there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct

from polynya_constructs.grants import allow, allow_objects, for_this_account
from polynya_constructs.nodes.access import Lakehouse

_EVERYONE_OF_IAM: Final = "IAM_ALLOWED_PRINCIPALS"
"""Lake Formation's group of all whom IAM lets in: with it on a table, only IAM decides."""


class LakeFormationGovernance(Construct):
    """Administrators, the warehouse as a registered location, and SELECT for named readers.

    Hybrid access: IAM goes on deciding for everybody who has not been opted in, nodes included.
    The settings of Lake Formation are one object of the account and region: administrators are
    added to those that there are, and new tables stay open to IAM, which is what a new account
    has; an account that has closed that default would be opened by it again.

    `role` is the one by which Lake Formation reads and writes the warehouse for those opted in;
    `settings` are the settings, on which every grant depends.

    Example:
        >>> reader = "arn:aws:iam::123456789012:role/analyst"
        >>> LakeFormationGovernance(stack, "Governed", lakehouse=lakehouse, readers=[reader])
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        lakehouse: Lakehouse,
        admins: Sequence[str] = (),
        readers: Sequence[str] = (),
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            lakehouse: its warehouse is registered, its databases are granted.
            admins: ARNs of users or roles; the role by which CloudFormation deploys is added, for
                only an administrator may grant.
            readers: ARNs of users or roles that get DESCRIBE and SELECT.

        Raises:
            ValueError: when there are readers and no database to read.
        """
        super().__init__(scope, id_)
        if readers and not lakehouse.databases:
            raise ValueError("readers are named, and there is no database that they could read")
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=for_this_account(self, "lakeformation.amazonaws.com"),
            description="Polynya: Lake Formation on the warehouse",
        )
        warehouse = lakehouse.warehouse
        keep = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        allow_objects(self.role, "KeepTables", warehouse, "*", keep)
        allow(self.role, "ListTables", actions=["s3:ListBucket"], resources=[warehouse.bucket_arn])
        key = warehouse.encryption_key or lakehouse.key
        use = ["kms:Decrypt", "kms:GenerateDataKey"]
        allow(self.role, "UseKey", actions=use, resources=[key.key_arn])
        self.settings = self._settings(admins)
        location = lakeformation.CfnResource(
            self,
            "Warehouse",
            resource_arn=warehouse.bucket_arn,
            use_service_linked_role=False,  # it could not use the key of the warehouse
            role_arn=self.role.role_arn,
            hybrid_access_enabled=True,
        )
        location.node.add_dependency(self.settings, self.role)
        for number, reader in enumerate(readers):
            for database in lakehouse.databases:
                for kind, rights in (("database", ["DESCRIBE"]), ("table", ["DESCRIBE", "SELECT"])):
                    self._grant(f"Reader{number}-{database}-{kind}", reader, database, kind, rights)

    def _settings(self, admins: Sequence[str]) -> lakeformation.CfnDataLakeSettings:
        of = lakeformation.CfnDataLakeSettings
        deployer = cdk.DefaultStackSynthesizer.DEFAULT_CLOUDFORMATION_ROLE_ARN.replace(
            "${Qualifier}", cdk.DefaultStackSynthesizer.DEFAULT_QUALIFIER
        )
        open_to_iam = [
            of.PrincipalPermissionsProperty(
                permissions=["ALL"],
                principal=of.DataLakePrincipalProperty(
                    data_lake_principal_identifier=_EVERYONE_OF_IAM
                ),
            )
        ]
        return of(
            self,
            "Settings",
            mutation_type="APPEND",
            admins=[
                of.DataLakePrincipalProperty(data_lake_principal_identifier=arn)
                for arn in (cdk.Fn.sub(deployer), *admins)
            ],
            create_database_default_permissions=open_to_iam,
            create_table_default_permissions=open_to_iam,
        )

    def _grant(
        self, id_: str, reader: str, database: str, kind: str, rights: Sequence[str]
    ) -> None:
        of = lakeformation.CfnPrincipalPermissions
        catalog = cdk.Stack.of(self).account
        what = (
            of.ResourceProperty(
                database=of.DatabaseResourceProperty(catalog_id=catalog, name=database)
            )
            if kind == "database"
            else of.ResourceProperty(
                table=of.TableResourceProperty(
                    catalog_id=catalog, database_name=database, table_wildcard={}
                )
            )
        )
        grant = of(
            self,
            id_,
            principal=of.DataLakePrincipalProperty(data_lake_principal_identifier=reader),
            resource=what,
            permissions=[*rights],
            permissions_with_grant_option=[],
        )
        grant.node.add_dependency(self.settings)
