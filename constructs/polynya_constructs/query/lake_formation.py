"""Lake Formation over the warehouse, in hybrid mode: nobody loses a right by its being there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct

from polynya_constructs.grants import allow, allow_objects, for_this_account
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.patterns import PRINCIPAL, TABLE

_EVERYONE_OF_IAM: Final = "IAM_ALLOWED_PRINCIPALS"
"""Lake Formation's group of all whom IAM lets in: with it on a table, only IAM decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeGrant:
    """What one user or role may read: a database, a table, part of a table, or what has tags.

    Attributes:
        reader: ARN of the user or role.
        database: whose tables it reads; None with `tags`.
        table: only this one of them, which has to be there when the grant is deployed.
        columns: only these of the table; default: all.
        rows: only rows of the table for which this holds, as PartiQL writes it; default: all.
        tags: for each tag of Lake Formation the values that are read: databases, and tables in
            them, that have all the tags.

    Raises:
        ValueError: for a reader that is not one user or role, for anything but one of `database`
            and `tags`, and for columns or rows without a table.
    """

    reader: str
    database: str | None = None
    table: str | None = None
    columns: Sequence[str] = ()
    rows: str | None = None
    tags: Mapping[str, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        """Check that it means one thing."""
        if not re.fullmatch(PRINCIPAL, self.reader):
            raise ValueError(f"{self.reader!r} is not the ARN of an IAM user or role")
        if (self.database is None) == (not self.tags):
            raise ValueError("a grant is on a database or on tags")
        if self.table is None and (self.columns or self.rows):
            raise ValueError("columns and rows are those of a table, and none is named")
        if self.tags and self.table:
            raise ValueError("a table is in a database; tags stand alone")
        if self.table is not None and not re.fullmatch(TABLE, self.table):
            raise ValueError(f"{self.table!r} is not the name of a table")


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
        grants: Sequence[LakeGrant] = (),
        tags: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            lakehouse: its warehouse is registered, its databases are granted.
            admins: ARNs of users or roles; the role by which CloudFormation deploys is added, for
                only an administrator may grant.
            readers: ARNs of users or roles that get DESCRIBE and SELECT on every database.
            grants: narrower ones; each is DESCRIBE and SELECT, and never a right to change.
            tags: for each tag to make, for each of its values, the databases that get it.

        Raises:
            ValueError: when there are readers and no database to read, or when a grant names a
                database that the lakehouse has not, a tag or value that is not made here, or one of
                `readers`.
        """
        super().__init__(scope, id_)
        tags = tags or {}
        for grant in grants:
            if grant.database is not None and grant.database not in lakehouse.databases:
                raise ValueError(
                    f"a grant names the database {grant.database}, which the lakehouse lacks"
                )
            if grant.reader in readers:
                raise ValueError(f"{grant.reader} is among `readers`, who read everything")
            for tag, values in (grant.tags or {}).items():
                if unknown := set(values) - set(tags.get(tag, {})):
                    raise ValueError(
                        f"a grant names the tag {tag}={min(unknown)}, which `tags` lacks"
                    )
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
        tagged = [self._tag(tag, values) for tag, values in tags.items()]
        for grant in grants:
            self._grant_part(grant, [one for each in tagged for one in each])

    def _tag(self, tag: str, values: Mapping[str, Sequence[str]]) -> list[cdk.CfnResource]:
        """Make a tag, and put each of its values on the databases that get it."""
        catalog = cdk.Stack.of(self).account
        made = lakeformation.CfnTag(
            self, f"Tag-{tag}", catalog_id=catalog, tag_key=tag, tag_values=[*values]
        )
        made.node.add_dependency(self.settings)
        of = lakeformation.CfnTagAssociation
        on_databases: list[cdk.CfnResource] = []
        for value, databases in values.items():
            for database in databases:
                association = of(
                    self,
                    f"Tag-{tag}-{database}",
                    lf_tags=[
                        of.LFTagPairProperty(catalog_id=catalog, tag_key=tag, tag_values=[value])
                    ],
                    resource=of.ResourceProperty(
                        database=of.DatabaseResourceProperty(catalog_id=catalog, name=database)
                    ),
                )
                association.node.add_dependency(made)
                on_databases.append(association)
        return [made, *on_databases]

    def _grant_part(self, grant: LakeGrant, tagged: Sequence[cdk.CfnResource]) -> None:
        of, catalog = lakeformation.CfnPrincipalPermissions, cdk.Stack.of(self).account
        reader, database = grant.reader, grant.database or ""
        if grant.tags:
            expression = [
                of.LFTagProperty(tag_key=tag, tag_values=[*values])
                for tag, values in grant.tags.items()
            ]
            for kind, rights in (("DATABASE", ["DESCRIBE"]), ("TABLE", ["DESCRIBE", "SELECT"])):
                policy = of.LFTagPolicyResourceProperty(
                    catalog_id=catalog, expression=expression, resource_type=kind
                )
                what = of.ResourceProperty(lf_tag_policy=policy)
                id_ = _id(reader, kind, grant.tags)
                self._permit(id_, reader, what, rights).node.add_dependency(*tagged)
            return
        # Two grants on tables of a database share this one: none revokes it from the other.
        self._grant(_id(reader, database), reader, database, "database", ["DESCRIBE"])
        id_ = _id(reader, database, grant.table, [*grant.columns], grant.rows)
        if grant.table is None:
            self._grant(id_, reader, database, "table", ["DESCRIBE", "SELECT"])
        elif grant.rows:
            cells = self._cells(database, grant)
            found = of.DataCellsFilterResourceProperty(
                table_catalog_id=catalog,
                database_name=database,
                table_name=grant.table,
                name=cells.name,
            )
            what = of.ResourceProperty(data_cells_filter=found)
            self._permit(id_, reader, what, ["SELECT"]).node.add_dependency(cells)
        elif grant.columns:
            some = of.TableWithColumnsResourceProperty(
                catalog_id=catalog,
                database_name=database,
                name=grant.table,
                column_names=[*grant.columns],
            )
            self._permit(id_, reader, of.ResourceProperty(table_with_columns=some), ["SELECT"])
        else:
            one = of.TableResourceProperty(
                catalog_id=catalog, database_name=database, name=grant.table
            )
            self._permit(id_, reader, of.ResourceProperty(table=one), ["DESCRIBE", "SELECT"])

    def _cells(self, database: str, grant: LakeGrant) -> lakeformation.CfnDataCellsFilter:
        """Return the filter of these rows and columns, which readers share."""
        of = lakeformation.CfnDataCellsFilter
        id_ = _id(database, grant.table, [*grant.columns], grant.rows)
        if there := self.node.try_find_child(id_):
            return cast("lakeformation.CfnDataCellsFilter", there)
        cells = of(
            self,
            id_,
            name=f"polynya-{id_.lower()}",
            table_catalog_id=cdk.Stack.of(self).account,
            database_name=database,
            table_name=grant.table or "",
            column_names=[*grant.columns] or None,
            column_wildcard=None if grant.columns else of.ColumnWildcardProperty(),
            row_filter=of.RowFilterProperty(filter_expression=grant.rows),
        )
        cells.node.add_dependency(self.settings)
        return cells

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
        self._permit(id_, reader, what, rights)

    def _permit(
        self,
        id_: str,
        reader: str,
        what: lakeformation.CfnPrincipalPermissions.ResourceProperty,
        rights: Sequence[str],
    ) -> lakeformation.CfnPrincipalPermissions:
        of = lakeformation.CfnPrincipalPermissions
        if there := self.node.try_find_child(id_):
            return cast("lakeformation.CfnPrincipalPermissions", there)
        permission = of(
            self,
            id_,
            principal=of.DataLakePrincipalProperty(data_lake_principal_identifier=reader),
            resource=what,
            permissions=[*rights],
            permissions_with_grant_option=[],
        )
        permission.node.add_dependency(self.settings)
        return permission


def _id(*what: object) -> str:
    """The id of a grant by what it grants: in another place of the list it stays the same.

    CloudFormation makes a grant at its new id before it revokes the one at the old id, which would
    be the same grant.
    """
    return f"Grant{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"
