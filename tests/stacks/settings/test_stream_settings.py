"""`streams` and `captures` of a cluster: what cannot be is said with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.model.errors import ConfigErrors
from stacks.settings.cluster_checks import shared_streams, unread_streams
from stacks.settings.loader import load_deployment
from stacks.settings.stage import StageConfig
from stacks.settings.streams.settings import StreamSourceSettings
from tests.stacks.synthesis import CAPTURES, STREAMS

HEAD = "apiVersion: polynya/v1\nkind: stage\nname: dev\nregion: eu-central-1\n"
CLUSTER = "clusters: [{name: a, minimum: 1, streams: {"
LANDED = CLUSTER + "folders: [x], "
AT = "clusters[0].streams"
CAPTURED = "clusters: [{name: a, minimum: 1, captures: {"
DATABASES = "databases: [{cidr: 10.1.0.0/16, port: 5432}]"
OF = "clusters[0].captures"
ACCOUNT = "account: '123456789012'\n"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1a2b3c4d-0000-4000-8000-000000000000"
MSK = "arn:aws:kafka:eu-central-1:123456789012:cluster/web/1a2b3c4d-0000-4000-8000-000000000000-5"
SECRET = "arn:aws:secretsmanager:eu-central-1:999999999999:secret:theirs-1a2B3c"


def stage(**streams: Any) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    return StageConfig.model_validate({**head, "clusters": [{"name": "a", "streams": streams}]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LANDED + "kineses: []}}]", f"{AT}.kineses: unknown key `kineses`; did you mean"),
        (LANDED + "kinesis: [a/b]}}]", f"{AT}.kinesis[0]: `a/b` is not the name of a Kinesis"),
        (
            LANDED + "kinesis: [{name: a, shards: 1}]}}]",
            f"{AT}.kinesis[0].shards: unknown key `shards`",
        ),
        (LANDED + "kinesis: [a, b, a]}}]", f"{AT}.kinesis[2]: `a` is named twice"),
        (CLUSTER + "kinesis: [a]}}]", f"{AT}: nodes land what they read in folders of the land"),
        (CLUSTER + "folders: [../x]}}]", f"{AT}.folders[0]: `../x` is not a folder such as"),
        (
            LANDED + f"kinesis: [{{name: a, key_arn: '{KEY}'}}]}}}}]",
            f"{AT}.kinesis[0].key_arn: the key is in eu-west-1, what it encrypts in eu-central-1",
        ),
        (
            LANDED + "kinesis: [{name: a, region: eu-west-1}]}}]",
            f"{AT}.kinesis[0].region: it is in eu-west-1, and the endpoints of this network lead",
        ),
        (
            LANDED + f"msk: [{{cluster_arn: '{MSK}', topics: [a]}}]}}}}]",
            f"{AT}.msk: nodes connect to nothing but port 443, and no brokers are named",
        ),
        (
            LANDED + "msk: [{cluster_arn: web, topics: [a]}]}}]",
            f"{AT}.msk[0].cluster_arn: `web` is not the ARN of an MSK cluster",
        ),
        (
            LANDED + f"msk: [{{cluster_arn: '{MSK}', topics: ['a b']}}]}}}}]",
            f"{AT}.msk[0].topics[0]: `a b` is not the name of a topic",
        ),
        (
            LANDED + "buckets: [{name: drop, prefix: exports/*}]}}]",
            f"{AT}.buckets[0].prefix: `exports/*` is not a prefix such as",
        ),
        (
            LANDED + "buckets: [{name: drop, delete: 1}]}}]",
            f"{AT}.buckets[0].delete: true or false is expected here",
        ),
        (LANDED + "secrets: ['a b']}}]", f"{AT}.secrets[0]: `a b` is not a secret: its name"),
        (LANDED + "brokers: [{port: 9098}]}}]", f"{AT}.brokers[0]: name either `security_group`"),
        (
            LANDED + "brokers: [{cidr: 0.0.0.0/0, port: 9098}]}}]",
            f"{AT}.brokers[0].cidr: `0.0.0.0/0` is too wide; name the networks of the brokers",
        ),
        (
            LANDED + "brokers: [{security_group: web, port: 9098}]}}]",
            f"{AT}.brokers[0].security_group: `web` is not a security group such as sg-",
        ),
        (
            f"account: '123456789012'\n{LANDED}secrets: ['{SECRET}']}}}}]",
            f"{AT}.secrets[0]: endpoints of this network let nothing through that belongs to 9999",
        ),
        (CAPTURED + "folders: [x]}}]", f"{OF}: nodes connect to nothing but port 443, and no data"),
        (CAPTURED + f"{DATABASES}}}}}]", f"{OF}: nodes land what they read in folders of the land"),
        (
            CAPTURED + "folders: [x], databases: [{port: 1, cidr: 10.0.0.0/8}, {port: 1, cidr: "
            "10.0.0.0/8}]}}]",
            f"{OF}.databases[1]: `port 1` is named twice",
        ),
        (
            CAPTURED + f"folders: [x], {DATABASES}, kinesis: [a]}}}}]",
            f"{OF}.kinesis: unknown key `kinesis`",
        ),
        (
            f"{ACCOUNT}{CAPTURED}folders: [x], {DATABASES}, secrets: [{SECRET}]}}}}]",
            f"{OF}.secrets[0]: endpoints of this network let nothing through that belongs to 9999",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "dev.yml").write_text(f"{HEAD}{text}\n")

    with pytest.raises(ConfigErrors) as raised:
        load_deployment(tmp_path, environment={})

    (only,) = str(raised.value).splitlines()
    assert f"dev.yml:{text.count(chr(10)) + 5}:" in only
    assert said in only


def test_a_name_alone_is_short_for_the_whole() -> None:
    streams = StreamSourceSettings.model_validate({"kinesis": ["a"], "secrets": ["b"]})

    assert [one.name for one in (*streams.kinesis, *streams.secrets)] == ["a", "b"]
    assert StreamSourceSettings.model_validate(STREAMS).buckets[0].delete is False


def test_what_streams_need_has_an_endpoint() -> None:
    assert {"kinesis-streams", "secretsmanager"} <= set(stage(**STREAMS).endpoints)
    silent = stage().model_copy(update={"stream": stage().stream.model_copy(update={"enabled": 0})})
    assert {"kinesis-streams", "secretsmanager"}.isdisjoint(silent.endpoints)


def test_a_cluster_that_may_be_empty_says_that_it_reads_no_stream_then() -> None:
    def said(**cluster: Any) -> str | None:
        head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
        clusters = [{"name": "a", **cluster}]
        return unread_streams(
            StageConfig.model_validate({**head, "clusters": clusters}).clusters[0]
        )

    off: dict[str, Any] = {"strategy": "low_cost", "source_look_minutes": 0}
    assert "set `source_look_minutes: 1` or" in str(said(**off, streams=STREAMS))
    databases = str(said(**off, captures=CAPTURES))
    assert "what waits in a database wakes none: its databases are read only" in databases
    assert said(**off) is None
    assert said(strategy="low_cost", streams=STREAMS) is None
    assert said(strategy="low_latency", streams=STREAMS) is None


def test_records_on_their_way_wake_the_clusters_into_whose_folders_they_land() -> None:
    """Others only if they name no folders, which synthesis warns of: a count has no prefixes."""
    stream = {"name": "orders", "prefix": "web/orders", "buffer_seconds": 300}
    folders: dict[str, list[str]] = {
        "theirs": ["stock", "web/orders-old"],
        "own": ["web"],
        "inside": ["web/orders/eu"],
        "all": [],
    }
    document = {
        "apiVersion": "polynya/v1", "kind": "stage", "name": "dev",
        "consumption": {"firehose": [stream, stream | {"name": "clicks", "buffer_seconds": 60}]},
        "clusters": [
            {"name": name, "strategy": "low_cost", "landing": landing}
            for name, landing in folders.items()
        ],
    }  # fmt: skip
    stage = StageConfig.model_validate(document)

    woken = {
        one.name: [each.name for each in stage.streams_that_wake(one)] for one in stage.clusters
    }
    assert woken == {"theirs": [], "own": ["orders"], "inside": ["orders"], "all": ["orders"]}
    said = {one.name: shared_streams(stage, one) for one in stage.clusters}
    assert {name for name, warning in said.items() if warning} == {"all"}
    assert "records on their way in orders wake cluster all" in str(said["all"])
    alone = stage.model_copy(update={"clusters": stage.clusters[-1:]})
    assert shared_streams(alone, alone.clusters[0]) is None
