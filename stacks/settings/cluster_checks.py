"""What well-formed `clusters` and `network_agent` of a stage file can still have wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.cluster import STAGE_CONTRADICTS, STAGE_UNKNOWN
from polynya_constructs.cluster.capacity import CapacityError
from polynya_constructs.cluster.instance_types import architecture_of, check_instance_types
from polynya_constructs.cluster.strategies import STRATEGIES
from stacks.settings.cluster import ClusterSettings
from stacks.settings.stage import StageConfig

PROJECT: Final = Path(__file__).resolve().parents[2]
"""The folder below which boot scripts lie."""

_RESERVED: Final = {"gateway": "the network agent", "server": "the server"}
"""Names of other groups, beside which the groups of the clusters are called, and whose they are."""

_USER_DATA_BYTES: Final = 16_384
"""What EC2 takes as user data."""


def cluster_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield what no cluster can be, and boot scripts that are not there."""
    for index, cluster in enumerate(stage.clusters):
        path: NodePath = ("clusters", index)
        if (whose := _RESERVED.get(cluster.name)) is not None:
            message = f"`{cluster.name}` is the name of {whose}"
            yield Problem((*path, "name"), STAGE_CONTRADICTS(message, fix="choose another one"))
        try:
            _ = cluster.bounds
        except CapacityError as wrong:
            setting = wrong.setting if wrong.setting in cluster.model_fields_set else "strategy"
            yield Problem((*path, setting), STAGE_CONTRADICTS(str(wrong)))
        if cluster.arrival_hints and not stage.stream.enabled:
            message = "hints for nodes travel on the workload stream, which this stage has not"
            fix = "set `stream: {enabled: true}`, or remove `arrival_hints`"
            yield Problem((*path, "arrival_hints"), STAGE_CONTRADICTS(message, fix=fix))
        yield from _mirror_problems(stage, cluster, (*path, "mirrors"))
        yield from _boot_problems(cluster.boot, (*path, "boot"))
    yield from _overlapping_projects(stage)
    yield from _database_problems(stage)
    if agent := stage.network_agent:
        path = ("network_agent",)
        try:
            check_instance_types([agent.instance_type], architecture_of(agent.instance_type))
        except ValueError as wrong:
            yield Problem((*path, "instance_type"), STAGE_CONTRADICTS(str(wrong)))
        yield from _boot_problems(agent.boot, (*path, "boot"))


def idle_nodes(cluster: ClusterSettings) -> str | None:
    """What to say of a cluster that may have more nodes than there is to share."""
    most = max([cluster.maximum, *(each.maximum or 0 for each in cluster.schedules)])
    if cluster.datasets is None or most <= cluster.datasets:
        return None
    return (
        f"cluster {cluster.name} may have {most} nodes for {cluster.datasets} datasets, and one "
        "node at a time works on a dataset: the others idle. fix: lower `maximum`, or correct "
        "`datasets`"
    )


def unread_streams(cluster: ClusterSettings) -> str | None:
    """What to say of a cluster that may have no node, and then reads no stream or database."""
    if not cluster.sources or cluster.capacity.minimum > 0 or cluster.looks_at_sources:
        return None
    source = "stream" if cluster.streams else "database"
    return (
        f"cluster {cluster.name} may have no node, and what waits in a {source} wakes none: its "
        f"{source}s are read only while other work keeps a node. fix: set `source_look_minutes: 1` "
        "or `minimum: 1`"
    )


def unreached_mirrors(stage: StageConfig, cluster: ClusterSettings) -> str | None:
    """What to say of a cluster with secrets of mirrors whose nodes reach nothing outside of AWS."""
    closed = stage.network.existing is None and stage.network.outbound == "endpoints"
    if not closed or cluster.mirrors is None or not cluster.mirrors.secrets:
        return None
    return (
        f"nodes of cluster {cluster.name} reach no address outside of AWS, such as those of "
        "Snowflake and Databricks. fix: set `network.outbound: internet`, or use a VPC with a way "
        "to them"
    )


def shared_streams(stage: StageConfig, cluster: ClusterSettings) -> str | None:
    """What to say of a cluster that records for other clusters wake: a count has no prefixes."""
    empty = STRATEGIES[cluster.strategy].starts_from_zero and len(stage.clusters) > 1
    streams = stage.streams_that_wake(cluster) if empty and not cluster.landing else ()
    if not streams:
        return None
    names = ", ".join(each.name for each in streams)
    return (
        f"records on their way in {names} wake cluster {cluster.name} and keep its last node, also "
        "those for other clusters. fix: name the folders of its tasks in its `landing`"
    )


def _mirror_problems(
    stage: StageConfig, cluster: ClusterSettings, path: NodePath
) -> Iterator[Problem]:
    """Yield mirrors without a target, twice the same one, and workgroups of others."""
    if cluster.mirrors is None:
        return
    if not cluster.mirrors.secrets and not cluster.mirrors.redshift:
        fix = "name `secrets` or `redshift`, or remove it"
        yield Problem(path, STAGE_CONTRADICTS("`mirrors` names nothing to use", fix=fix))
    secrets = [one.name for one in cluster.mirrors.secrets]
    targets = [one.workgroup_arn or one.cluster or "" for one in cluster.mirrors.redshift]
    databases = [one.database for one in cluster.mirrors.redshift]
    in_databases = zip(targets, databases, strict=True)
    named: list[tuple[str, list[tuple[str, object]]]] = [
        ("secrets", list(zip(secrets, secrets, strict=True))),
        ("redshift", list(zip(targets, in_databases, strict=True))),
    ]
    for key, entries in named:
        for index, (name, same) in enumerate(entries):
            if same in [other for _, other in entries[:index]]:
                message, place = f"`{name}` is named twice", (*path, key, index)
                yield Problem(place, STAGE_CONTRADICTS(message, fix="remove one of the two"))
    for index, arn in enumerate(targets):
        region, account = arn.split(":")[3:5] if arn.startswith("arn:") else (None, None)
        for what, there, here in (
            ("region", region, stage.region),
            ("account", account, stage.account),
        ):
            if there and here and there != here:
                message = f"the workgroup is in {what} {there}, the nodes are in {here}"
                place = (*path, "redshift", index, "workgroup_arn")
                yield Problem(
                    place, STAGE_CONTRADICTS(message, fix="name a workgroup beside the stage")
                )


def _overlapping_projects(stage: StageConfig) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, cluster in enumerate(stage.clusters):
        if cluster.boot is not None:
            continue
        for project, other in seen.items():
            mine, theirs = f"{cluster.project}/", f"{project}/"
            # One project is parted among clusters by its tasks, which name theirs.
            if mine != theirs and (mine.startswith(theirs) or theirs.startswith(mine)):
                message = f"project `{cluster.project}` and that of cluster `{other}` overlap"
                key = "project" if "project" in cluster.model_fields_set else "name"
                fix = "give both the same project, or two of which none lies in the other"
                yield Problem(("clusters", index, key), STAGE_CONTRADICTS(message, fix=fix))
        seen[cluster.project] = cluster.name


def _database_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield databases that the stage has not, that two clusters write, or that nobody named."""
    there = (*stage.catalog.databases, *stage.catalog.existing_databases)
    owners: dict[str, ClusterSettings] = {}
    for index, cluster in enumerate(stage.clusters):
        path: NodePath = ("clusters", index)
        if cluster.databases is None and there and len(stage.clusters) > 1:
            message = "with several clusters it is not known whose tables these nodes keep"
            fix = "name its `databases`, one for each `schema` of its tasks; `[]` for none"
            yield Problem((*path, "name"), STAGE_CONTRADICTS(message, fix=fix))
        for number, name in enumerate(cluster.databases or ()):
            place = (*path, "databases", number)
            if name not in there:
                message = f"the stage has no database `{name}`"
                yield Problem(place, STAGE_CONTRADICTS(message, fix=suggest(name, there)))
            # Of one project a task may go from one cluster to the other.
            elif name in owners and owners[name].project != cluster.project:
                message = f"database `{name}` is that of cluster `{owners[name].name}`, too"
                fix = "let the clusters of one project keep the tables of a database"
                yield Problem(place, STAGE_CONTRADICTS(message, fix=fix))
            owners.setdefault(name, cluster)


def _boot_problems(boot: str | None, path: NodePath) -> Iterator[Problem]:
    if boot is None:
        return
    script = PROJECT / boot
    if not script.is_file():
        fix = "write the path from the folder in which app.py lies"
        yield Problem(path, STAGE_UNKNOWN(f"there is no file {boot}", fix=fix))
        return
    content = script.read_bytes()
    if len(content) > _USER_DATA_BYTES:
        message = f"{boot} is larger than the {_USER_DATA_BYTES} bytes that EC2 takes"
        yield Problem(path, STAGE_CONTRADICTS(message, fix="fetch the larger part from S3 in it"))
    if not content.startswith(b"#!") or not _is_utf8(content):
        message = f"{boot} is no script: an instance would not run it"
        yield Problem(
            path, STAGE_CONTRADICTS(message, fix="begin it with a line such as #!/bin/bash")
        )


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
