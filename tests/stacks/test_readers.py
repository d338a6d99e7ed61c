"""Readers of a stage: roles of outside engines in two steps, grants of Lake Formation, mirrors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.stacks.house_rules import Template, resources
from tests.stacks.synthesis import ENGINES, READER, ROOT, WORKGROUP, Assembly

pytestmark = pytest.mark.synth

USER = "arn:aws:iam::210987654321:user/abcd"


def lakehouse_of(stack: Any) -> Any:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3

    from polynya_constructs import Lakehouse

    land, config, ware = (s3.Bucket(stack, name) for name in ("Land", "Config", "Ware"))
    return Lakehouse(
        landing=land, configuration=config, warehouse=ware, stream=None,
        key=kms.Key(stack, "Key"), databases=("shop", "shop_internal"),
    )  # fmt: skip


def test_before_the_volume_exists_nobody_takes_its_role(assembly: Assembly) -> None:
    """Its ARN is what the volume is created with, so the second deployment may not change it."""
    import aws_cdk as cdk
    from aws_cdk import assertions

    from polynya_constructs import DatabricksAccess, OutsideTrust, SnowflakeAccess

    roles: list[dict[str, Any]] = []
    trust = OutsideTrust(principal_arn=USER, external_id="ACME_SFCRole=2")
    for trusted in (None, trust):
        stack = cdk.Stack()
        lakehouse = lakehouse_of(stack)
        SnowflakeAccess(
            stack,
            "S",
            name="shop",
            lakehouse=lakehouse,
            volume_trust=trusted,
            catalog_trust=trusted,
        )
        DatabricksAccess(stack, "D", name="shop", lakehouse=lakehouse)
        roles.append(assertions.Template.from_stack(stack).find_resources("AWS::IAM::Role"))

    before, after = roles
    assert before.keys() == after.keys()
    names = {role["Properties"]["RoleName"] for role in before.values()}
    assert names == {
        "shop-snowflake-volume", "shop-snowflake-catalog",
        "shop-databricks-storage", "shop-databricks-catalog",
    }  # fmt: skip
    for role in before.values():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        # The caller is a principal of an account and, at once, a service of AWS: nobody.
        assert statement["Condition"] == {"Bool": {"aws:PrincipalIsAWSService": "true"}}
        assert str(statement["Principal"]["AWS"]).endswith(":root']]}")
    for name, role in after.items():
        if role["Properties"]["RoleName"].startswith("shop-snowflake"):
            (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            assert statement["Principal"] == {"AWS": USER}, name
            assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "ACME_SFCRole=2"}}


def test_synthesis_says_what_to_do_until_someone_is_trusted(assembly: Assembly) -> None:
    import aws_cdk as cdk

    from stacks.consumption import ConsumptionStack
    from stacks.settings.stage import StageConfig

    def warnings(**outside: Any) -> list[str]:
        document = {
            "apiVersion": "polynya/v1", "kind": "stage", "name": "dev",
            "catalog": {"databases": ["shop"]}, "consumption": outside,
        }  # fmt: skip
        context = json.loads((ROOT / "cdk.json").read_text())["context"]
        stage = StageConfig.model_validate(document)
        stack = ConsumptionStack(
            cdk.App(context=context), "C", name="polynya-dev", stage=stage,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )  # fmt: skip
        return [str(one.data) for one in stack.node.metadata if "Trust" in str(one.data)]

    said = " ".join(warnings(snowflake={}, databricks={}))
    assert "fix: create volume and integration with the ARNs of the outputs" in said
    assert "write the external id that they show to `external_id`" in said
    trusted = {"databricks": ENGINES["databricks"]}
    snowflake = {**ENGINES["snowflake"], "databases": ["shop"]}  # type: ignore[dict-item]
    assert warnings(snowflake=snowflake, **trusted) == []


def test_the_mirror_finds_in_the_outputs_what_its_settings_name(assembly: Assembly) -> None:
    outputs = assembly.templates["clustered/Consumption"]["Outputs"].keys()

    assert outputs >= {
        "SnowflakeVolumeRoleArn", "SnowflakeCatalogRoleArn", "DatabricksStorageRoleArn",
        "DatabricksCatalogRoleArn", "WarehouseUrl", "RedshiftWorkgroupArn", "RedshiftRoleArn",
        "GovernedQueryPolicyArn",
    }  # fmt: skip
    assert "NodeRoleName" in assembly.templates["clustered/Cluster-steady"]["Outputs"]
    assert "NodeRoleName" not in assembly.templates["clustered/Cluster-cheap"]["Outputs"]


def test_nodes_have_rights_of_mirrors_only_where_one_is_configured(assembly: Assembly) -> None:
    with_mirror = str(resources(assembly.templates["clustered/Cluster-steady"], "AWS::IAM::Policy"))
    with_mirror += str(
        resources(assembly.templates["clustered/Cluster-steady"], "AWS::IAM::ManagedPolicy")
    )
    without = str(assembly.templates["clustered/Cluster-cheap"])

    assert "redshift-data:ExecuteStatement" in with_mirror
    assert "snowflake/analytics" in with_mirror
    assert "redshift" not in without
    assert "secretsmanager" not in without


def test_nodes_publish_only_to_topics_that_their_cluster_names(assembly: Assembly) -> None:
    def policies_of(stack: str) -> str:
        kinds = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        return "".join(str(resources(assembly.templates[stack], kind)) for kind in kinds)

    policies = policies_of("clustered/Cluster-steady")

    assert "sns:Publish" in policies and ":sns:eu-central-1:123456789012:ops" in policies
    assert "kms:ViaService" in policies and "notifications/chat" in policies
    assert "sns:Publish" not in policies_of("clustered/Cluster-cheap")


def grants_of(template: Template, reader: str) -> list[tuple[Any, list[str]]]:
    """What a reader is granted, without the catalog's id, and the rights on it."""
    found = []
    for grant in resources(template, "AWS::LakeFormation::PrincipalPermissions").values():
        if grant["Principal"]["DataLakePrincipalIdentifier"] == reader:
            ((kind, what),) = grant["Resource"].items()
            named = {key: value for key, value in what.items() if "CatalogId" not in key}
            found.append(((kind, named), grant["Permissions"]))
    return found


def test_grants_are_as_narrow_as_the_stage_file_says_and_only_read(assembly: Assembly) -> None:
    template = assembly.templates["clustered/Consumption"]
    granted = grants_of(template, READER)

    def on(kind: str, **named: Any) -> list[str]:
        return next(rights for (one, what), rights in granted if one == kind and what == named)

    assert on("Table", DatabaseName="shop_clustered", TableWildcard={}) == ["DESCRIBE", "SELECT"]
    internal = "shop_clustered_internal"
    assert on("Database", Name=internal) == ["DESCRIBE"]
    columns = {"DatabaseName": internal, "Name": "orders_internal", "ColumnNames": ["id", "total"]}
    assert on("TableWithColumns", **columns) == ["SELECT"]
    (cells,) = resources(template, "AWS::LakeFormation::DataCellsFilter").values()
    assert cells["RowFilter"] == {"FilterExpression": "country = 'DE'"}
    assert cells["ColumnWildcard"] == {}
    rows = {"DatabaseName": internal, "TableName": "users_internal", "Name": cells["Name"]}
    assert on("DataCellsFilter", **rows) == ["SELECT"]
    tagged = {"Expression": [{"TagKey": "domain", "TagValues": ["sales"]}]}
    assert on("LFTagPolicy", **tagged, ResourceType="TABLE") == ["DESCRIBE", "SELECT"]
    everything = resources(template, "AWS::LakeFormation::PrincipalPermissions").values()
    assert {right for grant in everything for right in grant["Permissions"]} == {
        "DESCRIBE",
        "SELECT",
    }
    assert all(grant["PermissionsWithGrantOption"] == [] for grant in everything)
    # The whole internal database is not granted beside the parts of it.
    assert not any(
        what == {"DatabaseName": internal, "TableWildcard": {}} for (_, what), _ in granted
    )


def test_the_order_of_grants_makes_no_difference(assembly: Assembly) -> None:
    """CloudFormation would revoke a grant at its old id after it made the same one at a new id."""
    import aws_cdk as cdk
    from aws_cdk import assertions

    from polynya_constructs import LakeFormationGovernance, LakeGrant

    grants = [
        LakeGrant(reader=READER, database="shop"),
        LakeGrant(reader=READER, database="shop", table="users", rows="country = 'DE'"),
        LakeGrant(reader=f"{READER}2", database="shop", table="users", rows="country = 'DE'"),
    ]

    def made(given: list[LakeGrant]) -> dict[str, Any]:
        stack = cdk.Stack()
        LakeFormationGovernance(stack, "L", lakehouse=lakehouse_of(stack), grants=given)
        whole = assertions.Template.from_stack(stack).to_json()["Resources"]
        return {name: each for name, each in whole.items() if "LakeFormation" in each["Type"]}

    assert made(grants) == made(grants[::-1])
    kinds = [each["Type"] for each in made(grants).values()]
    # One filter for two readers, and one right to see the database for the first one.
    assert kinds.count("AWS::LakeFormation::DataCellsFilter") == 1
    assert kinds.count("AWS::LakeFormation::PrincipalPermissions") == 5
    # A grant that goes takes nothing of the others with it.
    assert made(grants[1:]).items() <= made(grants).items()


def test_tags_come_before_the_grants_that_name_them(assembly: Assembly) -> None:
    template = assembly.templates["clustered/Consumption"]
    (tag,) = resources(template, "AWS::LakeFormation::Tag").items()
    (association,) = resources(template, "AWS::LakeFormation::TagAssociation").items()

    assert (tag[1]["TagKey"], tag[1]["TagValues"]) == ("domain", ["sales"])
    assert association[1]["Resource"]["Database"]["Name"] == "sales_clustered"
    assert tag[0] in template["Resources"][association[0]]["DependsOn"]
    for resource in template["Resources"].values():
        if "LFTagPolicy" in str(resource.get("Properties", {}).get("Resource")):
            assert {tag[0], association[0]} <= {*resource["DependsOn"]}


def test_constructs_refuse_readers_that_could_be_anybody(assembly: Assembly) -> None:
    import aws_cdk as cdk

    from polynya_constructs import (
        DatabricksAccess,
        LakeFormationGovernance,
        LakeGrant,
        OutsideTrust,
        SnowflakeAccess,
    )
    from polynya_constructs.nodes.mirroring import RedshiftTarget

    stack = cdk.Stack()
    lakehouse = lakehouse_of(stack)
    nothing = replace(lakehouse, databases=())

    def governed(id_: str, grant: LakeGrant) -> None:
        LakeFormationGovernance(stack, id_, lakehouse=lakehouse, grants=[grant])

    refused: dict[str, Callable[[], Any]] = {
        "'*' is not the ARN of an IAM user": lambda: OutsideTrust(
            principal_arn="*", external_id="ACME_SFCRole=2"
        ),
        "'0000' is not an external id": lambda: OutsideTrust(
            principal_arn=USER, external_id="0000"
        ),
        "Snowflake needs a database to read": lambda: SnowflakeAccess(
            stack, "A", name="a", lakehouse=nothing
        ),
        "Databricks needs a database to read": lambda: DatabricksAccess(
            stack, "B", name="b", lakehouse=nothing
        ),
        "is not the id of a Databricks account": lambda: DatabricksAccess(
            stack, "C", name="c", lakehouse=lakehouse, external_id="ACME_SFCRole=2"
        ),
        "'everybody' is not the ARN": lambda: LakeGrant(reader="everybody", database="shop"),
        "on a database or on tags": lambda: LakeGrant(reader=READER),
        "none is named": lambda: LakeGrant(reader=READER, database="shop", columns=["id"]),
        "'a b' is not the name of a table": lambda: LakeGrant(
            reader=READER, database="shop", table="a b"
        ),
        "names the database sales": lambda: governed(
            "D", LakeGrant(reader=READER, database="sales")
        ),
        "a grant names the tag domain=hr": lambda: governed(
            "E", LakeGrant(reader=READER, tags={"domain": ["hr"]})
        ),
        "is among `readers`": lambda: LakeFormationGovernance(
            stack, "F", lakehouse=lakehouse, readers=[READER],
            grants=[LakeGrant(reader=READER, database="shop")],
        ),
        "a workgroup or a cluster": lambda: RedshiftTarget(),
        "together with its database": lambda: RedshiftTarget(cluster="a"),
        "does not name a target": lambda: RedshiftTarget(workgroup_arn=f"{WORKGROUP[:-12]}*"),
    }  # fmt: skip
    for said, make in refused.items():
        with pytest.raises(ValueError, match=re.escape(said)):
            make()
