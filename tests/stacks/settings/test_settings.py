"""Stage and pipeline files: what is wrong is said with its line, before anything is synthesized."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from polynya.model.config.fields import Frozen
from polynya.model.errors import ConfigErrors
from stacks.settings.cluster import ClusterSettings, NetworkAgentSettings, ScheduleSettings
from stacks.settings.consumption import (
    AthenaSettings,
    ConsumptionSettings,
    EmrServerlessSettings,
    FirehoseSettings,
    LakeFormationSettings,
    QuickSightSettings,
    RedshiftSettings,
)
from stacks.settings.loader import load_deployment
from stacks.settings.mirrors import MirrorTargetSettings, RedshiftTargetSettings
from stacks.settings.network import ExistingVpc, NetworkSettings
from stacks.settings.readers import (
    DatabricksSettings,
    LakeGrantSettings,
    OutsideTrustSettings,
    SnowflakeSettings,
)
from stacks.settings.server import LoadBalancerSettings, ServerSettings
from stacks.settings.stage import (
    BucketSettings,
    CatalogSettings,
    StageConfig,
    StorageSettings,
    StreamSettings,
)
from stacks.settings.streams.settings import (
    BrokerSettings,
    CaptureSourceSettings,
    DatabaseSettings,
    KinesisSourceSettings,
    MskSettings,
    SecretSettings,
    SourceBucketSettings,
    StreamSourceSettings,
)

ROOT = Path(__file__).resolve().parents[3]
HEAD = "apiVersion: polynya/v1\nkind: stage\nname: dev\n"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d-0000-4000-8000-000000000000"
EXISTING = """network:
  existing:
    vpc_id: vpc-0a1b2c3d
    cidr: 10.9.0.0/16
    availability_zones: [eu-central-1a, eu-central-1b]
    private_subnet_ids: [subnet-0a1b2c3d, subnet-1a1b2c3d]
"""
EIGHT_STREAMS = "clusters: [{name: a, strategy: low_cost}]\nconsumption:\n  firehose:\n" + "".join(
    f"  - {{name: s{n}, prefix: p{n}, buffer_seconds: 300}}\n" for n in range(8)
)
TWO_OWNERS = (
    "catalog: {databases: [s]}\n"
    "clusters: [{name: a, project: x, databases: [s]}, {name: b, databases: [s]}]"
)
CLUSTER = "clusters:\n- {name: main, boot: tests/stacks/boot.sh, "
QUICKSIGHT = "arn:aws:quicksight:us-west-1:123456789012:user/default/ana"
THREE_ZONES = "network: {availability_zones: 3}\n"
PIPELINE = """apiVersion: polynya/v1
kind: pipeline
source:
  connection_arn: >-
    arn:aws:codeconnections:eu-west-1:123456789012:connection/1a2b3c4d-0000-4000-8000-000000000000
  repository: me/lakehouse
promotions:
"""


EMR = "{application_id: 00f1, execution_role: 'arn:aws:iam::123456789012:role/jobs', code: ['s3://code/']}"
CLOSED = "network: {interface_endpoints: [autoscaling, glue, logs, kinesis-streams]}"
ENDPOINTS_ONLY = "network.interface_endpoints: nodes here reach AWS by endpoints only, and need"


def wrong(directory: Path, **files: str) -> list[str]:
    """What loading says about these files, a line for each error."""
    directory = directory / "config"
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.yml").write_text(text)
    with pytest.raises(ConfigErrors) as raised:
        load_deployment(directory, environment={})
    return str(raised.value).splitlines()


def test_the_stages_of_the_repository_are_right() -> None:
    deployment = load_deployment(ROOT / "config", environment={})

    dev, prod = deployment.stage("dev"), deployment.stage("prod")
    assert (dev.network.zone_count, prod.network.zone_count) == (2, 3)
    assert not dev.remove_data
    assert not prod.remove_data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("netwrk: {}", "4:1: netwrk: unknown key `netwrk`; did you mean `network`? allowed here: "),
        (
            "network:\n  endpoint_zone: 1",
            "5:3: network.endpoint_zone: unknown key `endpoint_zone`; did you mean `e",
        ),
        (
            "network: {interface_endpoints: [kineses-streams]}",
            "4:33: network.interface_endpoints[0]: the text `kineses-streams` is not one of",
        ),
        ("account: 012345678901", "4:1: account: an account is text of 12 digits; put it in q"),
        ("account: '1234'", "4:1: account: `1234` is not an account of 12 digits"),
        ("region: Frankfurt", "4:1: region: `Frankfurt` is not a region such as eu-central-1"),
        ("remove_data: sometimes", "4:1: remove_data: true or false is expected here"),
        ("network: {cidr: 10.40.0.1/16}", "4:11: network.cidr: `10.40.0.1/16` is not an IPv4"),
        ("network: {cidr: 8.8.0.0/16}", "4:11: network.cidr: `8.8.0.0/16` is not private"),
        ("network: {cidr: 10.0.0.0/8}", "4:11: network.cidr: a network of /8; a VPC here has /16"),
        (
            "network: {availability_zones: 1}",
            "4:11: network.availability_zones: one Availability Zone: when it fails, everything",
        ),
        (
            "network: {availability_zones: [eu-west-1a, eu-west-1a]}",
            "4:44: network.availability_zones[1]: zone `eu-west-1a` is named twice",
        ),
        (
            "network: {subnet_prefix: 28}",
            "4:11: network.subnet_prefix: a subnet of /28 has 11 addresses; 4 endpoints and 16",
        ),
        (
            "network: {cidr: 10.40.0.0/24, subnet_prefix: 25, availability_zones: 3}",
            "4:31: network.subnet_prefix: 3 subnets of /25 do not fit into 10.40.0.0/24",
        ),
        ("network: {endpoint_zones: 3}", "4:11: network.endpoint_zones: 3 zones, and the net"),
        (
            "network:\n  connected_networks: [192.168.0.0/16, 10.0.0.0/8]",
            "5:40: network.connected_networks[1]: 10.0.0.0/8 overlaps 10.40.0.0/16, the network of",
        ),
        (EXISTING + "  cidr: 10.1.0.0/16", "10:3: network.cidr: `cidr` means nothing beside"),
        (
            EXISTING + "    route_table_ids: [rtb-0a1b2c3d]",
            "10:5: network.existing.route_table_ids: 1 for 2 subnets",
        ),
        (
            EXISTING.replace("[eu-central-1a, eu-central-1b]", "[eu-central-1a]"),
            "8:5: network.existing.availability_zones: 1 for 2 subnets",
        ),
        (
            EXISTING + "  connected_networks: [10.9.9.0/24]",
            "10:24: network.connected_networks[0]: 10.9.9.0/24 overlaps 10.9.0.0/16",
        ),
        (
            "storage: {landing: {existing: {name: Upper_Case}}}",
            "4:32: storage.landing.existing.name: `Upper_Case` is not a bucket name",
        ),
        (
            f"region: eu-west-1\nstorage: {{key_arn: '{KEY}'}}",
            "5:11: storage.key_arn: it is in eu-central-1, the stage in eu-west-1",
        ),
        (
            "region: eu-west-1\nnetwork: {availability_zones: [eu-west-1a, eu-west-2b]}",
            "5:44: network.availability_zones[1]: it is in eu-west-2, the stage in eu-west-1",
        ),
        (
            "stream:\n  existing_arn: arn:aws:kinesis:eu-west-1:123456789012:stream/s\n  shards: 2",
            "6:3: stream.shards: `shards` means nothing beside `existing_arn`",
        ),
        ("stream: {shards: 0}", "4:10: stream.shards: `0` is out of range; write"),
        ("catalog: {databases: [Shop]}", "4:23: catalog.databases[0]: `Shop` is not a Glue"),
        (
            CLUSTER + "instance_types: [m7i.xlarge]}",
            "5:44: clusters[0].instance_types: instance type m7i.xlarge is x86_64, the cluster arm",
        ),
        (CLUSTER + "minimum: 9}", "5:44: clusters[0].minimum: minimum 9 is not between"),
        (
            CLUSTER + "strategy: consistent_low_latency, maximum: 1}",
            "5:44: clusters[0].strategy: minimum 2 is not between 0 and maximum 1",
        ),
        (
            CLUSTER.replace("tests/stacks/boot.sh", "LICENSE") + "}",
            "5:16: clusters[0].boot: LICENSE is no script: an instance would not run it",
        ),
        (CLUSTER.replace("main", "gateway") + "}", "5:4: clusters[0].name: `gateway` is the name"),
        (CLUSTER + "project: ../prod}", "5:44: clusters[0].project: `../prod` is not a prefix of"),
        (CLUSTER + "project: coordination/x}", "5:44: clusters[0].project: `coordination/x` is"),
        (CLUSTER + "target: '--debug'}", "5:44: clusters[0].target: "),
        (CLUSTER + "strategy: cheap}", "5:44: clusters[0].strategy: the text `cheap` is not"),
        (CLUSTER.replace("boot.sh", "boat.sh") + "}", "5:16: clusters[0].boot: there is no file"),
        (CLUSTER.replace("tests/", "../") + "}", "5:16: clusters[0].boot: "),
        (
            CLUSTER + "schedules: [{name: night, cron: 0 22 * *, minimum: 0}]}",
            "5:44: clusters[0].schedules: schedules[0]: cron is '0 22 * *'; write five fields",
        ),
        (
            CLUSTER + "strategy: no_scaling, predictive: forecast_only}",
            "5:66: clusters[0].predictive: strategy no_scaling has no policy that would take back",
        ),
        ("consumption: {redshift: {}}", "4:15: consumption.redshift: Redshift Serverless wants"),
        (
            THREE_ZONES + "consumption: {redshift: {base_capacity: 64}}",
            "5:15: consumption.redshift: max_capacity 32 is below base_capacity 64",
        ),
        (
            "athena: {enabled: false}\nconsumption: {sagemaker: {}}",
            "5:15: consumption.sagemaker: `sagemaker` queries in the Athena workgroup, which",
        ),
        (
            "consumption: {lake_formation: {readers: ['arn:aws:iam::123456789012:role/r']}}",
            "4:32: consumption.lake_formation.readers: there is no database that readers could",
        ),
        (
            "consumption: {lake_formation: {readers: [everybody]}}",
            "4:42: consumption.lake_formation.readers[0]: `everybody` is not the ARN of an IAM",
        ),
        (
            "consumption: {firehose: [{name: a, prefix: web}, {name: b, prefix: web/clicks}]}",
            "4:60: consumption.firehose[1].prefix: web/clicks and web of `a` would mix files",
        ),
        (
            "consumption: {firehose: [{name: a, prefix: firehose-errors/a}]}",
            "4:36: consumption.firehose[0].prefix: `firehose-errors/a` is not a folder such as",
        ),
        (
            "consumption: {quicksight: {owner: ana}}",
            "4:28: consumption.quicksight.owner: `ana` is not a QuickSight user or group",
        ),
        (
            "consumption: {emr_serverless: {release: latest}}",
            "4:32: consumption.emr_serverless.release: `latest` is not a release such as",
        ),
        (
            "network_agent: {boot: tests/stacks/boot.sh, instance_type: t4g.smal}",
            "4:45: network_agent.instance_type: there is no instance type 't4g.smal'; did you mean",
        ),
        (CLUSTER + "maximum: true}", "5:44: clusters[0].maximum: a whole number is expected"),
        ("region: eu-centrl-1", "4:1: region: there is no region eu-centrl-1; did you mean eu-cen"),
        (
            "clusters: [{name: main}]\nnetwork: {interface_endpoints: []}",
            "5:11: network.interface_endpoints: nodes here reach AWS by endpoints only, and need a",
        ),
        (
            f"clusters: [{{name: a, emr_serverless: [{EMR}]}}]\n{CLOSED}",
            f"5:11: {ENDPOINTS_ONLY} emr-serverless",
        ),
        (
            "clusters: [{name: a, glue_jobs: ['a b']}]",
            "4:34: clusters[0].glue_jobs[0]: `a b` is not the name of a Glue job",
        ),
        (
            f"clusters: [{{name: a, emr_serverless: [{EMR}]}}]".replace("00f1", "/x"),
            "4:40: clusters[0].emr_serverless[0].application_id: `/x` is not the id of an",
        ),
        (
            f"clusters: [{{name: a, emr_serverless: [{EMR}]}}]".replace("s3://code/", "s3://code"),
            "4:124: clusters[0].emr_serverless[0].code[0]: `s3://code` is not an object in S3",
        ),
        (
            TWO_OWNERS.replace("project: x, databases: [s]", "project: x"),
            "5:13: clusters[0].name: with several clusters it is not known whose tables these",
        ),
        (
            "catalog: {databases: [s]}\nclusters: [{name: a, databases: [r]}]",
            "5:34: clusters[0].databases[0]: the stage has no database `r`",
        ),
        (
            "stream: {enabled: false}\nclusters: [{name: a, arrival_hints: true}]",
            "5:22: clusters[0].arrival_hints: hints for nodes travel on the workload stream, which",
        ),
        (EIGHT_STREAMS, "14:28: consumption.firehose[7].buffer_seconds: an alarm looks at 7"),
        (
            TWO_OWNERS,
            "5:73: clusters[1].databases[0]: database `s` is that of cluster `a`, too; let the",
        ),
        (
            "clusters: [{name: a, project: x/y}, {name: b, project: x}]",
            "4:47: clusters[1].project: project `x` and that of cluster `a` overlap; give both",
        ),
        ("clusters: [{name: a, datasets: 0}]", "4:22: clusters[0].datasets: `0` is out of range"),
        (
            "clusters: [{name: a, instance_types: [t4g.nano]}]",
            "4:22: clusters[0].instance_types: instance type t4g.nano is too small: a node needs 8",
        ),
        (
            "clusters: [{name: a, instance_types: [m7g.metal]}]",
            "4:22: clusters[0].instance_types: instance type m7g.metal is a whole machine",
        ),
        (
            "clusters: [{name: a, instance_types: [g5g.xlarge]}]",
            "4:22: clusters[0].instance_types: instance type g5g.xlarge has processors that nodes",
        ),
        ("network: {availability_zones: 10}", "4:11: network.availability_zones: 10 zones; a reg"),
        ("network: {availability_zones: many}", "4:11: network.availability_zones: write how many"),
        (
            "region: us-west-1\nnetwork: {availability_zones: 3}",
            "5:11: network.availability_zones: 3 zones, and an account has 2 in us-west-1",
        ),
        (
            "network: {availability_zones: [eu-west-1a, eu-west-1f]}",
            "4:44: network.availability_zones[1]: there is no Availability Zone eu-west-1f",
        ),
        (
            "region: us-west-1\nconsumption:\n  quicksight:\n    owner: " + QUICKSIGHT,
            "6:3: consumption.quicksight: us-west-1 does not offer the service that",
        ),
        ("region: ${env:NOWHERE}", "4:1: region: environment variable `NOWHERE` is not set"),
        ("network: [", "5:1: not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (first, *others) = wrong(tmp_path, dev=f"{HEAD}{text}\n")

    assert first.startswith(f"config/dev.yml:{said}")
    assert others == []


def test_stages_and_the_pipeline_are_checked_against_each_other(tmp_path: Path) -> None:
    overlap = "config/prod.yml:4:11: network.cidr: 10.40.128.0/18 overlaps 10.40.0.0/16"
    unknown = "config/pipeline.yml:9:5: promotions[1].stage: there is no stage `deb`"

    said = wrong(
        tmp_path,
        dev=HEAD + "network: {cidr: 10.40.0.0/16}\n",
        prod=HEAD + "network: {cidr: 10.40.128.0/18}\n",
        pipeline=PIPELINE + "  - stage: prod\n  - stage: deb\n  - stage: prod\n",
    )

    assert said == [
        "config/prod.yml:3:1: name: the stage is called `dev`, its file prod; write `name: prod`",
        f"{overlap} of config/dev.yml; give each stage a network of its own",
        f"{unknown}; did you mean `dev`? allowed here: dev, prod",
        "config/pipeline.yml:10:5: promotions[2]: stage `prod` is named twice",
    ]


@pytest.mark.parametrize(
    ("dev", "prod", "clash"),
    [
        ("", "", True),
        ("region: eu-west-1\n", "region: eu-west-1\n", True),
        ("region: eu-west-1\n", "", True),
        ("region: eu-west-1\n", "region: eu-west-2\n", False),
        ("account: '123456789012'\n", "account: '123456789013'\n", False),
    ],
)
def test_stages_that_may_share_a_catalog_name_the_stage_in_their_databases(
    tmp_path: Path, dev: str, prod: str, clash: bool
) -> None:
    catalog = "catalog: {databases: [shop]}\n"
    files = {
        "dev": HEAD + "network: {cidr: 10.1.0.0/16}\n" + dev + catalog,
        "prod": HEAD.replace("dev", "prod") + prod + catalog,
    }

    if clash:
        (said,) = wrong(tmp_path, **files)
        assert "catalog.databases[0]: database `shop` is that of config/dev.yml, too" in said
        assert said.endswith("name the stage in it, such as `shop_prod`")
    else:
        for name, text in files.items():
            (tmp_path / f"{name}.yml").write_text(text)
        assert len(load_deployment(tmp_path, environment={}).stages) == 2


def test_a_folder_needs_a_stage_and_a_stage_one_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    twice = tmp_path / "twice"
    twice.mkdir()
    (twice / "dev.yml").write_text(HEAD)
    (twice / "dev.json").write_text("{}")

    for folder, said in (("empty", "there is no stage file"), ("twice", "describe the same")):
        with pytest.raises(ConfigErrors, match=said):
            load_deployment(tmp_path / folder)


def test_the_settings_need_no_cdk() -> None:
    """Checking a file must not start Node.js."""
    code = (
        "import sys, pathlib; from stacks.settings.loader import load_deployment; "
        "load_deployment(pathlib.Path('config')); assert 'aws_cdk' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_the_page_names_every_setting_and_its_examples_are_right(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()

    models: tuple[type[Frozen], ...]
    models = (StageConfig, NetworkSettings, ExistingVpc, StorageSettings, BucketSettings)
    models += (StreamSettings, CatalogSettings, ClusterSettings, NetworkAgentSettings)
    models += (AthenaSettings, ScheduleSettings, ConsumptionSettings, LakeFormationSettings)
    models += (StreamSourceSettings, KinesisSourceSettings, MskSettings, SourceBucketSettings)
    models += (SecretSettings, BrokerSettings, CaptureSourceSettings, DatabaseSettings)
    models += (RedshiftSettings, EmrServerlessSettings, FirehoseSettings, QuickSightSettings)
    models += (SnowflakeSettings, DatabricksSettings, OutsideTrustSettings, LakeGrantSettings)
    models += (MirrorTargetSettings, RedshiftTargetSettings, ServerSettings, LoadBalancerSettings)
    names = {name for model in models for name in model.model_fields}
    assert {name for name in names if not re.search(rf"\b{name}\b", page)} == set()
    pages = page + (ROOT / "docs" / "cluster.md").read_text()
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", pages, re.DOTALL)):
        directory = tmp_path / str(number)
        directory.mkdir()
        whole = text if text.startswith("apiVersion") else HEAD + text
        (directory / "dev.yml").write_text(whole)
        assert load_deployment(directory, environment={}).stage("dev")
