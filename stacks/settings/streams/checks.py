"""What well-formed `streams` and `captures` of a cluster can still have wrong."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.cluster import CLUSTER_STREAMS_UNREACHABLE
from polynya_constructs.regions import region_problem
from stacks.settings.stage import StageConfig
from stacks.settings.streams.settings import CaptureSourceSettings, StreamSourceSettings


def stream_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield what the nodes of a cluster could not read, land or reach."""
    for index, cluster in enumerate(stage.clusters):
        if cluster.streams is not None:
            path = ("clusters", index, "streams")
            yield from _missing(cluster.streams, path)
            yield from _twice(cluster.streams, path)
            yield from _elsewhere(stage, cluster.streams, path)
        if cluster.captures is not None:
            yield from _capture_problems(stage, cluster.captures, ("clusters", index, "captures"))


def _capture_problems(
    stage: StageConfig, captures: CaptureSourceSettings, path: NodePath
) -> Iterator[Problem]:
    streams = captures.as_streams
    if not captures.databases:
        message = "nodes connect to nothing but port 443, and no database is named"
        fix = "add `databases: [{security_group: …, port: 5432}]`"
        yield Problem(path, CLUSTER_STREAMS_UNREACHABLE(message, fix=fix))
    yield from _missing(streams, path)
    yield from _twice(streams, path, brokers="databases")
    yield from _elsewhere(stage, streams, path)


def _missing(streams: StreamSourceSettings, path: NodePath) -> Iterator[Problem]:
    if not streams.folders:
        message = "nodes land what they read in folders of the landing bucket, and none is named"
        fix = "add `folders` with the `folder` of each landing, by default the name of its task"
        yield Problem(path, CLUSTER_STREAMS_UNREACHABLE(message, fix=fix))
    if streams.msk and not streams.brokers:
        message = "nodes connect to nothing but port 443, and no brokers are named"
        fix = "add `brokers: [{security_group: …, port: 9098}]`"
        yield Problem((*path, "msk"), CLUSTER_STREAMS_UNREACHABLE(message, fix=fix))


def _twice(
    streams: StreamSourceSettings, path: NodePath, *, brokers: str = "brokers"
) -> Iterator[Problem]:
    named: dict[str, Iterable[tuple[Hashable, str]]] = {
        "folders": ((one, one) for one in streams.folders),
        "kinesis": (((one.name, one.region), one.name) for one in streams.kinesis),
        "msk": ((one.cluster_arn, one.cluster_arn) for one in streams.msk),
        "buckets": (((one.name, one.prefix), one.name) for one in streams.buckets),
        "secrets": ((one.name, one.name) for one in streams.secrets),
        brokers: ((one, f"port {one.port}") for one in streams.brokers),
    }
    for name, entries in named.items():
        seen: set[Hashable] = set()
        for index, (key, text) in enumerate(entries):
            if key in seen:
                message = f"`{text}` is named twice"
                yield Problem(
                    (*path, name, index),
                    CLUSTER_STREAMS_UNREACHABLE(message, fix="remove one of the two"),
                )
            seen.add(key)


def _elsewhere(
    stage: StageConfig, streams: StreamSourceSettings, path: NodePath
) -> Iterator[Problem]:
    """Yield what lies where the nodes' ways to AWS do not lead, and keys that encrypt nothing."""
    places: list[tuple[NodePath, str, str | None]] = []
    for index, stream in enumerate(streams.kinesis):
        place = (*path, "kinesis", index)
        region = stream.region or stage.region
        if stream.region:
            places.append(((*place, "region"), stream.region, None))
            if wrong := region_problem(stream.region):
                yield Problem((*place, "region"), CLUSTER_STREAMS_UNREACHABLE(wrong))
        yield from _key_elsewhere(stream.key_arn, region, place)
    for index, secret in enumerate(streams.secrets):
        place = (*path, "secrets", index)
        home = stage.region
        if secret.name.startswith("arn:"):
            home, account = secret.name.split(":")[3:5]
            places.append((place, home, account))
        yield from _key_elsewhere(secret.key_arn, home, place)
    for place, there, owner in places:
        yield from _unreached(stage, place, there, owner)


def _key_elsewhere(key_arn: str | None, region: str | None, place: NodePath) -> Iterator[Problem]:
    if key_arn and region and key_arn.split(":")[3] != region:
        message = f"the key is in {key_arn.split(':')[3]}, what it encrypts in {region}"
        yield Problem(
            (*place, "key_arn"),
            CLUSTER_STREAMS_UNREACHABLE(message, fix="name the key that encrypts it"),
        )


def _unreached(
    stage: StageConfig, place: NodePath, region: str, account: str | None
) -> Iterator[Problem]:
    network = stage.network
    if network.existing or network.outbound == "internet":
        return
    if stage.region and region != stage.region:
        message = f"it is in {region}, and the endpoints of this network lead to {stage.region}"
        yield Problem(
            place, CLUSTER_STREAMS_UNREACHABLE(message, fix="set `network.outbound: internet`")
        )
    known = (stage.account, *network.trusted_accounts)
    if account and stage.account and account not in known:
        message = f"endpoints of this network let nothing through that belongs to {account}"
        yield Problem(
            place,
            CLUSTER_STREAMS_UNREACHABLE(
                message, fix="name the account in `network.trusted_accounts`"
            ),
        )
