"""`iam_table.md` holds in the templates, and a right too many or a denial too few breaks it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.house_rules import Template
from tests.stacks.iam.iam_account import DeployedAccount
from tests.stacks.iam.iam_evaluator import Principal, Request, Verdict
from tests.stacks.intrinsics import ACCOUNT, REGION
from tests.stacks.synthesis import SNOWFLAKE, Assembly

pytestmark = pytest.mark.synth

TABLE = Path(__file__).with_name("iam_table.md")
HERE = f"{REGION}:{ACCOUNT}"
# Stack below the stage `clustered`, or whole path; beginning of the logical id.
ROLES = {
    "node": ("clustered/Cluster-cheap", "ClusterNodeRole"),
    "submitting node": ("clustered/Cluster-steady", "ClusterNodeRole"),
    "streaming node": ("clustered/Cluster-steady", "ClusterNodeRole"),
    "network agent": ("clustered/Gateway", "AgentNodeRole"),
    "server": ("clustered/Server", "ServerNodeRole"),
    "fallback": ("clustered/Cluster-cheap", "SpotFallbackRole"),
    "wake": ("clustered/Cluster-cheap", "WakeRole"),
    "looks": ("clustered/Cluster-asleep", "SourcesRole"),
    "looks in the network": ("clustered/Cluster-asleep", "SourcesProbeRole"),
    "arrival hints": ("clustered/Cluster-steady", "ArrivalHintsRole"),
    "figures": ("clustered/Cluster-cheap", "FiguresRole"),
    "redshift": ("clustered/Consumption", "RedshiftRole"),
    "job": ("clustered/Cluster-asleep", "JobsRole"),
    "emr job": ("clustered/Consumption", "EmrServerlessJobRole"),
    "firehose": ("clustered/Consumption", "FirehoseclicksRole"),
    "firehose of a stream": ("clustered/Consumption", "FirehoseordersRole"),
    "quicksight": ("clustered/Consumption", "QuickSightRole"),
    "notebook": ("clustered/Consumption", "SageMakerRole"),
    "lake formation": ("clustered/Consumption", "LakeFormationRole"),
    "snowflake volume": ("clustered/Consumption", "SnowflakeVolumeRole"),
    "snowflake catalog": ("clustered/Consumption", "SnowflakeCatalogRole"),
    "databricks storage": ("clustered/Consumption", "DatabricksStorageRole"),
    "databricks catalog": ("clustered/Consumption", "DatabricksCatalogRole"),
    "flow log": ("clustered/Network", "NetworkFlowLogIAMRole"),
    "deploy pipeline": ("Pipeline", "PipelineRole"),
    "synth build": ("Pipeline", "PipelineBuildSynthCdkBuildProjectRole"),
    "self mutation": ("Pipeline", "PipelineUpdatePipelineSelfMutationRole"),
    "trial build": ("Pipeline", "PipelinedevTrialRole"),
    "security check": ("Pipeline", "PipelinePipelinesSecurityCheckCDKSecurityCheckRole"),
}
THINGS = {
    "landing": ("Storage", "LandingBucket"),
    "configuration": ("Storage", "ConfigurationBucket"),
    "warehouse": ("Storage", "WarehouseBucket"),
    "access-logs": ("Storage", "AccessLogsBucket"),
    "results": ("Consumption", "ResultsBucket"),
    "stream": ("Storage", "WorkloadStream"),
    "key": ("Storage", "DataKey"),
    "notifications-key": ("Cluster-cheap", "NotificationsKey"),
    "topic cheap": ("Cluster-cheap", "NotificationsTopic"),
    "log cheap:agent": ("Cluster-cheap", "AgentLog"),
    "log cheap:fallback": ("Cluster-cheap", "SpotFallbackLog"),
    "log steady:agent": ("Cluster-steady", "AgentLog"),
    "log network:flow": ("Network", "NetworkFlowLogGroup"),
}
UNITY_CATALOG = "arn:aws:iam::414351767826:role/unity-catalog-prod-UCMasterRole-14S5ZJVKOTYTL"
GOVERNED = "polynya-clustered-governed-query"
# Who takes roles from outside of the account, and may do everything there.
OUTSIDE = {
    "user of snowflake": SNOWFLAKE,
    "another user of snowflake": f"{SNOWFLAKE}2",
    "unity catalog": UNITY_CATALOG,
}
BY_DEFAULT = {"aws:SecureTransport": "true"}
STORAGE_ROLE = "polynya-clustered-databricks-storage"
STORAGE = "arn:aws:s3:::clustered-storage-"
EVERYTHING = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
BOUNDARY = {
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:*", "glue:*", "sts:*"], "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"},
    ]
}


@dataclass(frozen=True)
class Row:
    who: str
    action: str
    on: str
    when: str
    may: bool


def rows() -> Iterator[Row]:
    who = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            who = line.removeprefix("## ")
        elif line.endswith(("| yes |", "| no |")):
            action, on, when, may = (cell.strip() for cell in line.strip("|").split("|"))
            if who == "services":
                service, action = action.split()
                yield Row(service, action, on, when, may == "yes")
            else:
                yield Row(who, action, on, when, may == "yes")


ROWS = list(rows())


class Asked:
    """The names of the table, looked up in templates."""

    def __init__(self, templates: dict[str, Template], boundary: Any = None) -> None:
        self.templates = templates
        self.account = DeployedAccount(templates, boundary)

    def wrong(self) -> list[str]:
        """The lines that do not hold."""
        return [
            f"{row.who}: {row.action} on {row.on} ({row.when}): {said.reason}"
            for row in ROWS
            for said in [self.verdict(row)]
            if said.allowed != row.may
        ]

    def verdict(self, row: Row) -> Verdict:
        """The answer for every resource that the request touches: the first no, else the yes."""
        said = [
            self.account.asks(self.who(row.who), Request(row.action, arn, self.context(row)))
            for arn in self.resources(row.on)
        ]
        return next((verdict for verdict in said if not verdict.allowed), said[0])

    def who(self, name: str) -> Principal:
        if name.endswith(".amazonaws.com"):
            return Principal(name, ACCOUNT)
        if name == "administrator":
            return Principal(f"arn:aws:iam::{ACCOUNT}:role/admin", ACCOUNT, {"all": EVERYTHING})
        if name == "stranger":
            return Principal("arn:aws:iam::999:role/admin", "999", {"all": EVERYTHING})
        if name == "analyst":
            policy = self.account.managed["clustered/Consumption", "polynya-clustered-query"]
            return Principal(f"arn:aws:iam::{ACCOUNT}:user/ana", ACCOUNT, {"query": policy})
        if name == "governed analyst":
            policy = self.account.managed["clustered/Consumption", GOVERNED]
            return Principal(f"arn:aws:iam::{ACCOUNT}:user/ana", ACCOUNT, {"query": policy})
        if name in OUTSIDE:
            arn = OUTSIDE[name]
            return Principal(arn, arn.split(":")[4], {"all": EVERYTHING})
        return self.account.roles[self.arn(*ROLES[name])]

    def resources(self, on: str) -> list[str]:
        stage, _, name = on.rpartition(":") if on.startswith(("prod:", "dev:")) else ("", "", on)
        kind, _, rest = name.partition(" ")
        if name == "*" or name.startswith("arn:"):
            return [name]
        if kind == "role":
            return [self.arn(*ROLES[rest])]
        if kind == "group":
            group = f"autoScalingGroup:1a2b:autoScalingGroupName/polynya-clustered-{rest}"
            return [f"arn:aws:autoscaling:{HERE}:{group}"]
        if kind == "workgroup":
            return [f"arn:aws:athena:{HERE}:workgroup/{rest}"]
        if kind in {"table", "database"}:  # Glue asks for each of them
            database, _, table = rest.partition(".")
            names = ["catalog", f"database/{database}", f"table/{database}/{table}"]
            return [f"arn:aws:glue:{HERE}:{name}" for name in names[: 3 if table else 2]]
        bucket, slash, key = name.partition("/")
        if bucket == "artifacts":
            return [self.arn("Pipeline", "ArtifactsBucket") + slash + key]
        stack, logical_id = THINGS[bucket]
        return [self.arn(f"{stage or 'clustered'}/{stack}", logical_id) + slash + key]

    def arn(self, path: str, beginning: str) -> str:
        """The ARN of the resource whose logical id is this and a hash."""
        (found,) = [name for name in self.templates[path]["Resources"] if name[:-8] == beginning]
        return self.account.intrinsics.arn(path, found)

    def context(self, row: Row) -> dict[str, str]:
        known: dict[str, dict[str, str]] = {
            "if-match": {"s3:if-match": "an-etag"},
            "if-none-match": {"s3:if-none-match": "*"},
            "part of an upload": {"s3:ObjectCreationOperation": "false"},
            "own launch template": {
                "ec2:LaunchTemplate": self.arn("clustered/Cluster-cheap", "ClusterNodeTemplate"),
                "ec2:IsLaunchTemplateResource": "true",
            },
            "launch template of steady": {
                "ec2:LaunchTemplate": self.arn("clustered/Cluster-steady", "ClusterNodeTemplate"),
                "ec2:IsLaunchTemplateResource": "true",
            },
            "own launch template with more": {
                "ec2:LaunchTemplate": self.arn("clustered/Cluster-cheap", "ClusterNodeTemplate"),
                "ec2:IsLaunchTemplateResource": "false",
            },
            "another launch template": {
                "ec2:LaunchTemplate": f"arn:aws:ec2:{HERE}:launch-template/lt-1",
                "ec2:IsLaunchTemplateResource": "true",
            },
            "below exports": {"s3:prefix": "exports/2026/11/"},
            "beside exports": {"s3:prefix": "exports-2/2026/"},
            "via kinesis": {"kms:ViaService": f"kinesis.{REGION}.amazonaws.com"},
            "via s3": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"},
            "via s3 elsewhere": {"kms:ViaService": "s3.eu-west-1.amazonaws.com"},
            "via secrets": {"kms:ViaService": f"secretsmanager.{REGION}.amazonaws.com"},
            "via lambda": {"kms:ViaService": f"lambda.{REGION}.amazonaws.com"},
            "of a launch": {"ec2:CreateAction": "RunInstances"},
            "passed to emr": {"iam:PassedToService": "emr-serverless.amazonaws.com"},
            "passed to ec2": {"iam:PassedToService": "ec2.amazonaws.com"},
            "volume's id": {"sts:ExternalId": "ACME_SFCRole=2_volume/a1="},
            "catalog's id": {"sts:ExternalId": "ACME_SFCRole=2_catalog/b2="},
            "account of databricks": {"sts:ExternalId": "0a1b2c3d-0000-4000-8000-000000000000"},
            "another account of databricks": {
                "sts:ExternalId": "9a1b2c3d-0000-4000-8000-000000000000"
            },
            "as itself": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/{STORAGE_ROLE}"},
            "below shop_clustered": {"s3:prefix": "shop_clustered_internal/users_internal/"},
            "below sales_clustered": {"s3:prefix": "sales_clustered_internal/orders_internal/"},
            "own statement": {
                "aws:userid": "AROA1:i-1",
                "redshift-data:statement-owner-iam-userid": "AROA1:i-1",
            },
            "statement of another": {
                "aws:userid": "AROA1:i-1",
                "redshift-data:statement-owner-iam-userid": "AROA1:i-2",
            },
            "plain http": {"aws:SecureTransport": "false"},
            "for our account": {"aws:SourceAccount": ACCOUNT},
            "for another account": {"aws:SourceAccount": "999"},
            "log of landing": {
                "aws:SourceArn": self.resources("landing")[0],
                "aws:SourceAccount": ACCOUNT,
            },
            "log of another bucket": {
                "aws:SourceArn": "arn:aws:s3:::another",
                "aws:SourceAccount": ACCOUNT,
            },
            "bootstrap role deploy": {"iam:ResourceTag/aws-cdk:bootstrap-role": "deploy"},
            "bootstrap role file-publishing": {
                "iam:ResourceTag/aws-cdk:bootstrap-role": "file-publishing"
            },
        }
        context = dict(BY_DEFAULT)
        if row.action == "s3:PutObject":
            context["s3:ObjectCreationOperation"] = "true"
        for name in filter(None, row.when.split(", ")):
            context |= known[name]
        return context


def test_the_table_holds(assembly: Assembly) -> None:
    assert Asked(assembly.templates).wrong() == []
    assert len(ROWS) >= 150
    assert len(set(ROWS)) == len(ROWS)
    assert {row.who for row in ROWS if row.may} > {"node", "fallback", "analyst", "self mutation"}


def statement(assembly: Assembly, path: str, sid: str) -> tuple[dict[str, Template], Any]:
    """A copy of the templates, and the statements of that id in the stack at `path`."""
    templates = {**assembly.templates, path: copy.deepcopy(assembly.templates[path])}
    found = [
        each
        for resource in templates[path]["Resources"].values()
        for each in resource.get("Properties", {}).get("PolicyDocument", {}).get("Statement", [])
        if each.get("Sid") == sid
    ]
    return templates, found


@pytest.mark.parametrize(
    ("stack", "sid", "change", "said"),
    [
        ("Cluster-cheap", "ReadLanding", {"Action": "s3:*"}, "node: s3:DeleteObject on landing"),
        ("Cluster-cheap", "KeepTables", {"Resource": "*"}, "node: s3:PutObject on prod:warehouse"),
        ("Cluster-cheap", "UseKeys", {"Resource": "*"}, "node: kms:Decrypt on prod:key"),
        ("Cluster-cheap", "OwnGroup", {"Resource": "*"}, "on group steady"),
        ("Cluster-steady", "LandStreams", {"Resource": f"{STORAGE}landingbucket6d60388f/*"},
         "streaming node: s3:PutObject on landing/orders"),
        ("Cluster-steady", "ListSource", {"Condition": {}}, "arn:aws:s3:::partner-drop ():"),
        ("Cluster-steady", "ReadSource", {"Action": ["s3:GetObject", "s3:DeleteObject"]},
         "streaming node: s3:DeleteObject on arn:aws:s3:::partner-drop/exports"),
        ("Cluster-steady", "ReadTopics", {"Resource": "*"}, "streaming node: kafka-cluster:Read"),
        ("Cluster-steady", "DecryptStreams", {"Condition": {}}, "(via lambda):"),
        ("Gateway", "Commands", {"Resource": "*"}, "network agent: s3:GetObject on landing"),
        ("Gateway", "Groups", {"Resource": "*"}, "SetDesiredCapacity on group gateway"),
        ("Server", "KeepState", {"Resource": "*"},
         "server: s3:PutObject on warehouse/shop_clustered"),
        ("Server", "EditDocuments", {"Resource": "*"},
         "server: s3:PutObject on configuration/teams"),
        ("Server", "AskCluster", {"Resource": "*"}, "/leader (if-match)"),
        ("Consumption", "ReadTables", {"Resource": "*"}, "analyst: s3:GetObject on landing"),
        ("Consumption", "ChangeNoTable", {"Effect": "Allow"},
         "snowflake catalog: glue:DeleteTable"),
        ("Consumption", "ChangeNoFile", {"Effect": "Allow"}, "snowflake volume: s3:DeleteObject"),
        ("Consumption", "ListTables", {"Condition": {}}, "(below sales_clustered)"),
        ("Cluster-steady", "MirrorToRedshift", {"Resource": "*"}, "redshift-data:ExecuteStatement"),
        ("Cluster-steady", "FollowOwnStatements", {"Condition": {}}, "(statement of another)"),
        ("Storage", "ConditionalWritesOnly", {"Effect": "Allow"}, "orders.json ():"),
        ("Storage", "ConditionalWritesOnly", {"Action": "s3:GetObject"}, "administrator: s3:Put"),
        ("Cluster-cheap", "CatalogTables", {"Action": "glue:GetTable"}, "allowed by nothing"),
        ("Cluster-cheap", "KeepTables", {"Resource": f"{STORAGE}warehousebucket56a35794/*"},
         "node: s3:PutObject on warehouse/sales_clustered_internal"),
        ("Cluster-cheap", "Coordinate",
         {"Resource": f"{STORAGE}configurationbucket4c9ee6ef/coordination/*"},
         "node: s3:PutObject on configuration/coordination/polynya-clustered-steady"),
        ("Cluster-cheap", "ReadTasks",
         {"Resource": f"{STORAGE}configurationbucket4c9ee6ef/*"},
         "node: s3:GetObject on configuration/teams/sales"),
        ("Storage", "ConditionalDeletesOnly", {"Action": "s3:GetObject"},
         "administrator: s3:DeleteObject on configuration/coordination"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_caught(
    assembly: Assembly, stack: str, sid: str, change: dict[str, Any], said: str
) -> None:
    templates, statements = statement(assembly, f"clustered/{stack}", sid)
    assert statements
    for each in statements:
        each.update(change)

    assert any(said in line for line in Asked(templates).wrong())


def test_a_dropped_deny_of_plain_http_is_caught(assembly: Assembly) -> None:
    path = "clustered/Storage"
    templates = {**assembly.templates, path: copy.deepcopy(assembly.templates[path])}
    for resource in templates[path]["Resources"].values():
        if resource["Type"] == "AWS::S3::BucketPolicy":
            document = resource["Properties"]["PolicyDocument"]
            document["Statement"] = [
                each for each in document["Statement"] if "SecureTransport" not in str(each)
            ]

    wrong = Asked(templates).wrong()
    assert any("plain http" in line for line in wrong)
    assert all("plain http" in line for line in wrong)


def test_a_permissions_boundary_of_the_context_bounds_every_role(assembly: Assembly) -> None:
    roles = [
        resource["Properties"].get("PermissionsBoundary")
        for template in assembly.templates.values()
        for resource in template.get("Resources", {}).values()
        if resource["Type"] == "AWS::IAM::Role"
    ]

    assert len(roles) > 30
    # Joined of parts, unless the account is known.
    ends = (":policy/polynya-boundary", ":policy/polynya-boundary']]}")
    assert all(str(boundary).endswith(ends) for boundary in roles)
    bounded = {line.split(" (")[0] for line in Asked(assembly.templates, BOUNDARY).wrong()}
    assert "node: kinesis:PutRecord on stream" in bounded
    assert "node: s3:DeleteObject on warehouse/shop_clustered/orders/data/1.parquet" in bounded
    assert not any(line.startswith(("node: s3:GetObject", "analyst")) for line in bounded)


def test_without_that_context_nothing_bounds_a_role() -> None:
    import aws_cdk as cdk
    from aws_cdk import assertions
    from aws_cdk import aws_iam as iam

    from app import bound_roles

    for context, bounded in (
        ({}, False),
        ({"permissions_boundary": "arn:aws:iam::123456789012:policy/b"}, True),
    ):
        app = cdk.App(context=context)
        bound_roles(app)
        stack = cdk.Stack(app, "Stack")
        iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        (role,) = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Role").values()
        assert ("PermissionsBoundary" in role["Properties"]) is bounded


def test_no_arn_is_bound_to_one_partition(assembly: Assembly) -> None:
    """China and GovCloud have partitions of their own; what was brought along names its own."""
    ours = json.dumps([t for path, t in assembly.templates.items() if path.startswith("dev/")])
    ours += json.dumps(assembly.templates["clustered/Cluster-cheap"])

    assert "arn:aws" not in ours
