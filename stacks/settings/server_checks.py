"""What a well-formed `server` of a stage file can still have wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.documents.problems import Problem, suggest
from polynya.model.error_catalogue.cluster import STAGE_CONTRADICTS, STAGE_UNKNOWN
from polynya_constructs.cluster.instance_types import (
    architecture_of,
    check_instance_types,
    memory_gib,
)
from stacks.settings.cluster import ClusterSettings
from stacks.settings.server import ServerSettings
from stacks.settings.stage import StageConfig

_TABLES_GIB: Final = 8
"""Spark's heap, what it needs beside it, the server and the system."""

_OWN: Final = ("instance_type", "root_volume_gib", "spot")


def server_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield what no server can be."""
    server = stage.server
    if server is None:
        return
    yield from _instance_problems(stage, server)
    yield from _cluster_problems(stage, server)
    if server.load_balancer and stage.region:
        region = server.load_balancer.certificate_arn.split(":")[3]
        if region != stage.region:
            message = f"it is in {region}, the stage in {stage.region}"
            fix = "name a certificate of the stage's region"
            path = ("server", "load_balancer", "certificate_arn")
            yield Problem(path, STAGE_CONTRADICTS(message, fix=fix))


def _instance_problems(stage: StageConfig, server: ServerSettings) -> Iterator[Problem]:
    kind, setting = server.instance_type, ("server", "instance_type")
    if server.node == "network_agent":
        agent = stage.network_agent
        if agent is None:
            message = "the stage has no network agent"
            fix = "add `network_agent: {}`, or leave `node` out"
            yield Problem(("server", "node"), STAGE_CONTRADICTS(message, fix=fix))
            return
        if agent.boot is not None:
            message = "the network agent boots by a script of yours, which starts no server"
            fix = "leave `node` out"
            yield Problem(("server", "node"), STAGE_CONTRADICTS(message, fix=fix))
        for name in _OWN:
            if name in server.model_fields_set:
                message = f"`{name}` means nothing on the instance of the network agent"
                fix = "remove it, or leave `node` out"
                yield Problem(("server", name), STAGE_CONTRADICTS(message, fix=fix))
        kind, setting = agent.instance_type, ("network_agent", "instance_type")
    else:
        try:
            check_instance_types([kind], architecture_of(kind))
        except ValueError as wrong:
            yield Problem(setting, STAGE_CONTRADICTS(str(wrong)))
            return
    if server.tables and memory_gib(kind) < _TABLES_GIB:
        message = f"`server.tables` needs an instance of {_TABLES_GIB} GiB, and {kind} is smaller"
        place = setting if setting[0] == "server" else ("server", "tables")
        yield Problem(place, STAGE_CONTRADICTS(message, fix="name a larger one, such as t4g.large"))


def _cluster_problems(stage: StageConfig, server: ServerSettings) -> Iterator[Problem]:
    names = [each.name for each in stage.clusters]
    same = [each.name for each in stage.clusters if each.project == server.project]
    if server.cluster is None:
        if len(same) > 1:
            message = f"the clusters {', '.join(same)} share its project"
            fix = "name the one that gets its requests: `cluster`"
            yield Problem(("server",), STAGE_CONTRADICTS(message, fix=fix))
    elif server.cluster not in names:
        message = f"the stage has no cluster `{server.cluster}`"
        yield Problem(
            ("server", "cluster"), STAGE_UNKNOWN(message, fix=suggest(server.cluster, names))
        )
    elif server.cluster not in same:
        message = f"cluster `{server.cluster}` has another project than `{server.project}`"
        fix = "name a cluster with the same `project`"
        yield Problem(("server", "cluster"), STAGE_CONTRADICTS(message, fix=fix))


def served_cluster(stage: StageConfig, server: ServerSettings) -> ClusterSettings | None:
    """The cluster that gets the requests of the server; None if no cluster has its project."""
    for each in stage.clusters:
        if each.project == server.project and server.cluster in {None, each.name}:
            return each
    return None


def unreached_login(stage: StageConfig) -> str | None:
    """What to say of a load balancer whose server reaches no provider of logins."""
    closed = stage.network.existing is None and stage.network.outbound == "endpoints"
    if stage.server is None or stage.server.load_balancer is None or not closed:
        return None
    return (
        "the server behind the load balancer reaches no address outside of AWS, and so no provider "
        "of logins (`oidc` of access.yml). fix: set `network.outbound: internet`, or use a VPC "
        "with a way to it; tokens work without"
    )
