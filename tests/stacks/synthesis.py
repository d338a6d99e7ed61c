"""Synthesis in this process: the stages of `config/`, and four made up here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.package import Dependencies
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.stage import StageConfig

ROOT = Path(__file__).resolve().parents[2]
ARN = "arn:aws:{service}:eu-central-1:123456789012:{resource}"
BOOT = "tests/stacks/boot.sh"
KEY = ARN.format(service="kms", resource="key/1a2b3c4d-0000-4000-8000-000000000000")
MSK = "cluster/web/1a2b3c4d-0000-4000-8000-000000000000-5"
# Every kind of source, and one of each that asks for more than the least.
STREAMS: dict[str, Any] = {
    "folders": ["clicks", "web/exports"],
    "kinesis": ["clicks", {"name": "orders-%", "region": "eu-west-1"},
                {"name": "private", "key_arn": KEY}],
    "msk": [{"cluster_arn": ARN.format(service="kafka", resource=MSK),
             "topics": ["clicks", "orders-%"], "groups": ["spark-kafka-%"]}],
    "buckets": [{"name": "partner-drop", "prefix": "exports"},
                {"name": "partner-outbox", "delete": True, "key_arn": KEY}],
    "secrets": ["kafka/clicks",
                {"name": ARN.format(service="secretsmanager", resource="secret:registry-1a2B3c"),
                 "key_arn": KEY}],
    "brokers": [{"cidr": "10.50.0.0/16", "port": 9098}],
}  # fmt: skip
# A gateway: nodes near a database.
CAPTURES: dict[str, Any] = {
    "folders": ["shop_db"],
    "secrets": ["shop/postgres"],
    "databases": [{"security_group": "sg-0a1b2c3d", "port": 5432}],
}
WORKGROUP = ARN.format(
    service="redshift-serverless", resource="workgroup/1a2b3c4d-0000-4000-8000-000000000000"
)
TOPIC_KEY = ARN.format(service="kms", resource="key/1a2b3c4d-0000-4000-8000-000000000001")
# Together they have every kind of policy. The package of one is built, that of the other is not.
CLUSTERS: dict[str, dict[str, Any]] = {
    "cheap": {
        "strategy": "low_cost",
        "landing": ["orders", "web/clicks", "web/orders"],
        "databases": ["shop_clustered"],
        "schedules": [
            {"name": "morning", "cron": "0 7 * * 1-5", "time_zone": "Europe/Berlin", "minimum": 1},
            {"name": "evening", "cron": "0 19 * * *", "time_zone": "Europe/Berlin", "minimum": 0},
        ],
    },
    "steady": {
        "strategy": "consistent_low_latency",
        "databases": ["sales_clustered"],
        "emr_serverless": [
            {
                "application_id": "00f1abc",
                "execution_role": "arn:aws:iam::123456789012:role/polynya-jobs",
                "code": ["s3://acme-code/jobs/"],
            }
        ],
        "glue_jobs": ["polynya-jobs"],
        "predictive": "forecast_only",
        "architecture": "x86_64",
        "streams": STREAMS,
        "arrival_hints": True,
        "mirrors": {
            "secrets": ["snowflake/analytics"],
            "redshift": [{"workgroup_arn": WORKGROUP}, {"cluster": "reports", "database": "dev"}],
        },
        "notifications": {
            "topics": [
                {"arn": ARN.format(service="sns", resource="ops"), "key_arn": TOPIC_KEY},
                ARN.format(service="sns", resource="sales"),
            ],
            "secrets": ["notifications/chat"],
        },
        "project": "teams/sales",
        "target": "prod",
    },
    # Its sources are looked at while it has no node.
    "asleep": {
        "strategy": "low_cost",
        "landing": ["web"],
        "databases": [],
        "project": "web",
        "jobs": {"emr_serverless": {"architecture": "x86_64", "max_vcpu": 16}, "glue": {}},
        "streams": {
            "folders": ["web"],
            "kinesis": ["orders"],
            "msk": [{"cluster_arn": ARN.format(service="kafka", resource=MSK), "topics": ["web"]}],
            "secrets": ["kafka/web"],
            "brokers": [{"cidr": "10.50.0.0/16", "port": 9098}],
        },
    },
}
# Behind a load balancer; another stage has one on the instance of its network agent.
SERVER: dict[str, Any] = {
    "load_balancer": {
        "certificate_arn": ARN.format(
            service="acm", resource="certificate/1a2b3c4d-0000-4000-8000-000000000000"
        ),
        "networks": ["10.0.0.0/8", "192.168.4.0/22"],
    },
    "iam_identities": True,
    "secrets": ["polynya/oidc"],
    "target": "prod",
    "notify": ["ops@example.com"],
}
READER = "arn:aws:iam::123456789012:role/germany"
SNOWFLAKE = "arn:aws:iam::210987654321:user/abcd-s-acme1234"
# Every engine that a stage may name; the other stages name none.
ENGINES = {
    "lake_formation": {
        "admins": ["arn:aws:iam::123456789012:role/steward"],
        "readers": ["arn:aws:iam::123456789012:role/analyst"],
        "tags": {"domain": {"sales": ["sales_clustered"]}},
        "grants": [
            {"reader": READER, "database": "shop_clustered"},
            {
                "reader": READER,
                "database": "shop_clustered_internal",
                "table": "orders_internal",
                "columns": ["id", "total"],
            },
            {
                "reader": READER,
                "database": "shop_clustered_internal",
                "table": "users_internal",
                "rows": "country = 'DE'",
            },
            {"reader": READER, "tags": {"domain": ["sales"]}},
        ],
    },
    "snowflake": {
        "databases": ["shop_clustered"],
        "catalog_linked": True,
        "volume": {"user_arn": SNOWFLAKE, "external_id": "ACME_SFCRole=2_volume/a1="},
        "catalog": {"user_arn": SNOWFLAKE, "external_id": "ACME_SFCRole=2_catalog/b2="},
    },
    "databricks": {"external_id": "0a1b2c3d-0000-4000-8000-000000000000"},
    "redshift": {},
    "emr_serverless": {},
    "firehose": [
        {"name": "clicks", "prefix": "web/clicks"},
        {
            "name": "orders",
            "prefix": "web/orders",
            "buffer_seconds": 300,
            "source_arn": ARN.format(service="kinesis", resource="stream/orders"),
        },
    ],
    "quicksight": {"owner": ARN.format(service="quicksight", resource="user/default/ana")},
    "sagemaker": {},
}
VPC = {
    "vpc_id": "vpc-0a1b2c3d",
    "cidr": "10.9.0.0/16",
    "availability_zones": ["eu-central-1a", "eu-central-1b"],
    "private_subnet_ids": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"],
}


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a synthesis wrote: where, of which packages, templates by the path of their stack."""

    directory: Path
    packages: Path
    templates: dict[str, dict[str, Any]]
    protected: dict[str, bool]


def findings(directory: Path) -> list[str]:
    """Rule and place of each finding in the report of a synthesis, warnings too."""
    report = json.loads((directory / "validation-report.json").read_text())
    return [
        f"{violation['ruleName']} {construct['constructPath']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    ]


def made_up_stages() -> list[StageConfig]:
    """Everything brought along; data that may go, or lacks a key for it; clusters and engines."""

    def stage(name: str, **settings: Any) -> StageConfig:
        head = {"apiVersion": "polynya/v1", "kind": "stage", "name": name}
        return StageConfig.model_validate({**head, **settings})

    return [
        stage(
            "borrowed",
            account="123456789012",
            region="eu-central-1",
            network={
                "existing": {**VPC, "route_table_ids": ["rtb-0a1b2c3d", "rtb-1a1b2c3d"]},
                "interface_endpoints": ["kinesis-streams"],
            },
            storage={
                "key_arn": KEY,
                "landing": {"existing": {"name": "their-landing", "key_arn": KEY}},
                "configuration": {"existing": {"name": "their-configuration"}},
            },
            stream={"existing_arn": ARN.format(service="kinesis", resource="stream/theirs")},
            # The one strategy that no other stage here has.
            clusters=[
                {
                    "name": "quick",
                    "strategy": "low_latency",
                    "maximum": 6,
                    "streams": {
                        "folders": ["clicks"],
                        "brokers": [{"security_group": "sg-0a1b2c3d", "port": 9096}],
                    },
                    "captures": CAPTURES,
                    "mirrors": {"secrets": ["snowflake/loader"]},
                }
            ],
            machine_images={"arm64": "ami-0a1b2c3d4e5f60718"},
            network_agent={"instance_type": "t4g.large"},
            server={"node": "network_agent", "tables": True},
            catalog={"existing_databases": ["theirs"]},
        ),
        stage(
            "removable",
            remove_data=True,
            network={"availability_zones": ["eu-west-1a", "eu-west-1b"], "outbound": "internet"},
            catalog={"databases": ["gone"]},
        ),
        stage(
            "clustered",
            catalog={"databases": ["shop_clustered", "sales_clustered"]},
            clusters=[
                {"name": name, "maximum": 6, "notify": ["ops@example.com"]} | settings
                for name, settings in CLUSTERS.items()
            ],
            network={"availability_zones": 3, "session_manager": True},
            network_agent={"notify": ["ops@example.com"]},
            server=SERVER,
            consumption=ENGINES,
        ),
        stage("halfway", remove_data=True, network={"existing": VPC}),
    ]  # fmt: skip


def small_package(folder: Path, files: Path, architecture: Architecture) -> None:
    """Build a package as `make package` does, of other files."""
    dependencies = Dependencies.of(ROOT, folder, architecture)
    dependencies.write({"site-packages": files, "jars": files})


def with_pipeline(folder: Path) -> Path:
    """Copy the stages of `config/` and the pipeline of its examples to a folder."""
    for path in (*(ROOT / "config").glob("*.yml"), ROOT / "config" / "examples" / "pipeline.yml"):
        shutil.copy(path, folder)
    return folder


def synthesize(directory: Path, *, packages: Path, extra: Sequence[StageConfig] = ()) -> Assembly:
    """Synthesize the stages of `config/`, the pipeline, and `extra` stages, to a directory."""
    with tempfile.TemporaryDirectory() as folder:
        written = load_deployment(with_pipeline(Path(folder)), environment={})
    deployment = Deployment((*written.stages, *extra), written.pipeline)
    return synthesize_deployment(directory, deployment, packages=packages, removable="removable")


def synthesize_deployment(
    directory: Path, deployment: Deployment, *, packages: Path, removable: str
) -> Assembly:
    """Synthesize a deployment, with the second key to the data of the stage `removable`."""
    version = subprocess.check_output(["node", "--version"], text=True).strip("v\n").split(".")[0]
    os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = version
    import aws_cdk as cdk

    from app import build_app

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context["polynya:removeDataOnDestroy"] = removable
    context["permissions_boundary"] = "polynya-boundary"
    context["polynya:packages"] = str(packages)
    app = build_app(cdk.App(outdir=str(directory), context=context), deployment)
    app.synth()
    stacks = {node.node.path: node for node in app.node.find_all() if cdk.Stack.is_stack(node)}
    files = {path.name: path for path in directory.rglob("*.template.json")}
    return Assembly(
        directory=directory,
        packages=packages,
        templates={
            path: json.loads(files[stack.template_file].read_text())
            for path, stack in stacks.items()
        },
        protected={path: bool(stack.termination_protection) for path, stack in stacks.items()},
    )
