"""What a well-formed stage or pipeline file can still have wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Final

from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.cluster import (
    STAGE_CONTRADICTS,
    STAGE_NETWORK_UNFIT,
    STAGE_UNKNOWN,
)
from polynya_constructs.regions import SERVICES, has_zone, lacks, region_problem, zone_count
from stacks.settings.cluster_checks import cluster_problems
from stacks.settings.consumption_checks import consumption_problems
from stacks.settings.network import ExistingVpc, NetworkSettings
from stacks.settings.pipeline import PipelineConfig
from stacks.settings.server_checks import server_problems
from stacks.settings.stage import StageConfig
from stacks.settings.streams.checks import stream_problems

_RESERVED_ADDRESSES: Final = 5  # of each subnet, by AWS
_MOST_DATABASES: Final = 440  # of 500 resources of a stack; the others are buckets and the like
_ROOM_FOR_NODES: Final = 16  # capacity rebalancing and instance refresh double a group for a while


def stage_problems(stage: StageConfig, stem: str) -> Iterator[Problem]:
    """Yield the problems of one stage that need no other file; `stem` is its file's name."""
    if stage.name != stem:
        message = f"the stage is called `{stage.name}`, its file {stem}"
        yield Problem(("name",), STAGE_UNKNOWN(message, fix=f"write `name: {stem}`"))
    yield from _contradictions(stage)
    yield from _network_problems(stage)
    yield from _elsewhere(stage)
    yield from _region_problems(stage)
    yield from _repeated(stage.catalog.databases, ("catalog", "databases"), "database")
    yield from _too_many_databases(stage)
    yield from _repeated([each.name for each in stage.clusters], ("clusters",), "cluster")
    yield from cluster_problems(stage)
    yield from server_problems(stage)
    yield from stream_problems(stage)
    yield from consumption_problems(stage)


def overlapping_stages(stages: Mapping[str, StageConfig]) -> Iterator[tuple[str, Problem]]:
    """Yield, with its file, each stage whose network overlaps that of an earlier file.

    Sooner or later stages are reached from the same place, and routes need distinct networks.
    Stages in VPCs that exist may share one.
    """
    networks = [(file, stage.network) for file, stage in stages.items()]
    for index, (file, mine) in enumerate(networks):
        for other_file, other in networks[:index]:
            shared = mine.existing and other.existing
            if not shared and IPv4Network(mine.network).overlaps(IPv4Network(other.network)):
                path = ("network", *(("existing",) if mine.existing else ()), "cidr")
                message = f"{mine.network} overlaps {other.network} of {other_file}"
                fix = "give each stage a network of its own"
                yield file, Problem(path, STAGE_NETWORK_UNFIT(message, fix=fix))


def pipeline_problems(
    pipeline: PipelineConfig, stages: Iterable[str], described: Mapping[str, StageConfig]
) -> Iterator[Problem]:
    """Yield what is wrong with the pipeline.

    `stages` are the names of all stage files, `described` those that can be read, by name.
    """
    names = list(stages)
    for index, promotion in enumerate(pipeline.promotions):
        path = ("promotions", index, "stage")
        if promotion.stage not in names:
            message = f"there is no stage `{promotion.stage}`"
            yield Problem(path, STAGE_UNKNOWN(message, fix=suggest(promotion.stage, names)))
    promoted = [promotion.stage for promotion in pipeline.promotions]
    yield from _repeated(promoted, ("promotions",), "stage")
    yield from _unreachable_stages(pipeline, described)


def _unreachable_stages(
    pipeline: PipelineConfig, stages: Mapping[str, StageConfig]
) -> Iterator[Problem]:
    """Yield stages elsewhere than a pipeline that does not know where it is itself.

    A pipeline that deploys to another account or region has a key or a bucket for it, and needs
    its own account and region in their names.
    """
    account, region = pipeline.environment(stages)
    if account and region:
        return
    for index, promotion in enumerate(pipeline.promotions):
        stage = stages.get(promotion.stage)
        if stage is None:
            continue
        elsewhere = [
            f"{key} {there}"
            for key, there, here in (
                ("account", stage.account, account),
                ("region", stage.region, region),
            )
            if there not in (None, here)
        ]
        if elsewhere:
            unknown = " and ".join(
                key for key, here in (("account", account), ("region", region)) if here is None
            )
            message = (
                f"stage `{promotion.stage}` is in {' and '.join(elsewhere)}, and the {unknown} of "
                "the pipeline itself is not known"
            )
            first = pipeline.promotions[0].stage
            fix = f"write `account` and `region` here, or in config/{first}.yml"
            yield Problem(("promotions", index, "stage"), STAGE_CONTRADICTS(message, fix=fix))


def _contradictions(stage: StageConfig) -> Iterator[Problem]:
    """Yield settings of something new beside `existing`, which would go unheard."""
    parts = (
        (("network",), stage.network, "existing",
         {"cidr", "availability_zones", "subnet_prefix", "flow_log_days"}),
        (("storage", "landing"), stage.storage.landing, "existing", {"old_versions_days"}),
        (("storage", "configuration"), stage.storage.configuration, "existing",
         {"old_versions_days"}),
        (("storage", "warehouse"), stage.storage.warehouse, "existing", {"old_versions_days"}),
        (("stream",), stage.stream, "existing_arn", {"shards", "retention_hours"}),
    )  # fmt: skip
    for path, settings, existing, own in parts:
        if getattr(settings, existing):
            for name in sorted(settings.model_fields_set & own):
                message = f"`{name}` means nothing beside `{existing}`"
                yield Problem(
                    (*path, name), STAGE_CONTRADICTS(message, fix="remove one of the two")
                )


def _network_problems(stage: StageConfig) -> Iterator[Problem]:
    network, endpoints = stage.network, stage.endpoints
    zones_path: NodePath = ("network", "availability_zones")
    if network.existing:
        zones_path = ("network", "existing", "availability_zones")
        yield from _existing_problems(network.existing)
    else:
        yield from _size_problems(network, endpoints)
        yield from _closed_problems(stage)
    if network.zone_count < 2:
        message = "one Availability Zone: when it fails, everything stops"
        yield Problem(zones_path, STAGE_CONTRADICTS(message, fix="name at least 2"))
    if not isinstance(network.availability_zones, int):
        yield from _repeated(network.availability_zones, zones_path, "zone")
    if network.endpoint_zones and network.endpoint_zones > network.zone_count:
        message = f"{network.endpoint_zones} zones, and the network has {network.zone_count}"
        yield Problem(("network", "endpoint_zones"), STAGE_CONTRADICTS(message))
    yield from _repeated(endpoints, ("network", "interface_endpoints"), "endpoint")
    for index, text in enumerate(network.connected_networks):
        if IPv4Network(text).overlaps(IPv4Network(network.network)):
            message = f"{text} overlaps {network.network}, the network of this stage"
            fix = "choose another `cidr`: no route can tell the two apart"
            path = ("network", "connected_networks", index)
            yield Problem(path, STAGE_NETWORK_UNFIT(message, fix=fix))


def _existing_problems(vpc: ExistingVpc) -> Iterator[Problem]:
    subnets = len(vpc.private_subnet_ids)
    for name, given in (
        ("availability_zones", len(vpc.availability_zones)),
        ("route_table_ids", len(vpc.route_table_ids) or subnets),
    ):
        if given != subnets:
            message = f"{given} for {subnets} subnets"
            fix = "name one for each of `private_subnet_ids`, in the same order"
            yield Problem(("network", "existing", name), STAGE_CONTRADICTS(message, fix=fix))
    yield from _repeated(
        vpc.availability_zones, ("network", "existing", "availability_zones"), "zone"
    )
    yield from _repeated(
        vpc.private_subnet_ids, ("network", "existing", "private_subnet_ids"), "subnet"
    )


def _closed_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield endpoints without which no node of a network without other ways gets into service."""
    network = stage.network
    if network.outbound == "internet" or not (stage.clusters or stage.server):
        return
    missing = [one for one in network.needed(stage.calls) if one not in stage.endpoints]
    if missing:
        message = f"nodes here reach AWS by endpoints only, and need {', '.join(missing)}"
        fix = "leave `interface_endpoints` out, or set `outbound: internet`"
        path = ("network", "interface_endpoints")
        yield Problem(path, STAGE_CONTRADICTS(message, fix=fix))


def _size_problems(network: NetworkSettings, endpoints: Sequence[str]) -> Iterator[Problem]:
    vpc = IPv4Network(network.cidr)
    if not 16 <= vpc.prefixlen <= 24:
        message = f"a network of /{vpc.prefixlen}; a VPC here has /16 to /24"
        yield Problem(("network", "cidr"), STAGE_NETWORK_UNFIT(message))
        return
    addresses = 2 ** (32 - network.subnet_prefix)
    path = ("network", "subnet_prefix")
    if addresses * network.zone_count > vpc.num_addresses:
        message = f"{network.zone_count} subnets of /{network.subnet_prefix} do not fit into {vpc}"
        fix = "make the subnets smaller (a larger number) or the network larger"
        yield Problem(path, STAGE_NETWORK_UNFIT(message, fix=fix))
    usable = addresses - _RESERVED_ADDRESSES
    needed = len(endpoints) + _ROOM_FOR_NODES
    if usable < needed:
        message = (
            f"a subnet of /{network.subnet_prefix} has {usable} addresses; "
            f"{len(endpoints)} endpoints and {_ROOM_FOR_NODES} nodes need {needed}"
        )
        fix = "make the subnets larger (a smaller number)"
        yield Problem(path, STAGE_NETWORK_UNFIT(message, fix=fix))


def _elsewhere(stage: StageConfig) -> Iterator[Problem]:
    """Yield keys, streams and zones of a region in which the stage is not; none could be used."""
    for path, region in _regions(stage):
        if stage.region and region != stage.region:
            message = f"it is in {region}, the stage in {stage.region}"
            yield Problem(path, STAGE_CONTRADICTS(message, fix="name one of the stage's region"))


def _regions(stage: StageConfig) -> Iterator[tuple[NodePath, str]]:
    """Yield the region of everything in the file that names one."""
    arns: list[tuple[NodePath, str | None]] = [
        (("storage", "key_arn"), stage.storage.key_arn),
        (("stream", "existing_arn"), stage.stream.existing_arn),
    ]
    for name in ("landing", "configuration", "warehouse"):
        bucket = getattr(stage.storage, name).existing
        arns.append((("storage", name, "existing", "key_arn"), bucket.key_arn if bucket else None))
    yield from ((path, arn.split(":")[3]) for path, arn in arns if arn)
    network = stage.network
    zones = network.existing.availability_zones if network.existing else network.availability_zones
    place = ("network", "existing") if network.existing else ("network",)
    if not isinstance(zones, int):
        for index, zone in enumerate(zones):
            yield (*place, "availability_zones", index), zone[:-1]


def _too_many_databases(stage: StageConfig) -> Iterator[Problem]:
    made = len(stage.catalog.made_databases)
    if made > _MOST_DATABASES:
        message = (
            f"{made} Glue databases with those of internal tables; one stack can make "
            f"{_MOST_DATABASES}"
        )
        fix = "make the others yourself, and name them in `existing_databases`"
        yield Problem(("catalog", "databases"), STAGE_CONTRADICTS(message, fix=fix))


def _region_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield a region that there is not, and zones or services that it does not have."""
    network = stage.network
    zones = network.existing.availability_zones if network.existing else network.availability_zones
    place: NodePath = ("network", "existing") if network.existing else ("network",)
    if not isinstance(zones, int):
        for index, zone in enumerate(zones):
            if region_problem(zone[:-1]) or not has_zone(zone):
                path = (*place, "availability_zones", index)
                yield Problem(path, STAGE_CONTRADICTS(f"there is no Availability Zone {zone}"))
    if stage.region is None:
        return
    if wrong := region_problem(stage.region):
        yield Problem(("region",), STAGE_CONTRADICTS(wrong))
        return
    most = zone_count(stage.region)
    if isinstance(zones, int) and zones > most:
        message = f"{zones} zones, and an account has {most} in {stage.region}"
        yield Problem((*place, "availability_zones"), STAGE_CONTRADICTS(message))
    engines: list[tuple[NodePath, str]] = [
        (("consumption", name), name) for name in SERVICES if getattr(stage.consumption, name, None)
    ]
    if stage.athena.enabled:
        engines.append((("athena",), "athena"))
    for path, name in engines:
        if lacks(stage.region, name):
            message = f"{stage.region} does not offer the service that `{name}` needs"
            yield Problem(
                path, STAGE_CONTRADICTS(message, fix="leave it out, or choose another region")
            )


def _repeated(values: Iterable[str], path: NodePath, what: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield Problem((*path, index), STAGE_CONTRADICTS(f"{what} `{value}` is named twice"))
        seen.add(value)
