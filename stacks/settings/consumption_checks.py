"""What well-formed `consumption` of a stage file can still have wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.cluster import STAGE_CONTRADICTS
from polynya_constructs.cluster.strategies import MOST_STREAMS, STRATEGIES
from polynya_constructs.query.redshift_limits import LEAST_ZONES, check_capacity
from stacks.settings.consumption import ALARM_SECONDS, FirehoseSettings
from stacks.settings.reader_checks import reader_problems
from stacks.settings.stage import StageConfig


def consumption_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield engines that lack what they need, and streams that would mix their files."""
    engines = stage.consumption
    path: NodePath
    for name in ("quicksight", "sagemaker"):
        if getattr(engines, name) and not stage.athena.enabled:
            message = f"`{name}` queries in the Athena workgroup, which `athena.enabled` turns off"
            yield Problem(
                ("consumption", name), STAGE_CONTRADICTS(message, fix="remove one of the two")
            )
    governed = engines.lake_formation
    if governed and governed.readers and not stage.catalog.databases:
        path = ("consumption", "lake_formation", "readers")
        message = "there is no database that readers could read"
        yield Problem(path, STAGE_CONTRADICTS(message, fix="name one in `catalog.databases`"))
    yield from reader_problems(stage)
    if engines.redshift:
        path = ("consumption", "redshift")
        if stage.network.zone_count < LEAST_ZONES:
            message = f"Redshift Serverless wants subnets in {LEAST_ZONES} zones"
            fix = f"set `network.availability_zones` to {LEAST_ZONES}"
            yield Problem(path, STAGE_CONTRADICTS(message, fix=fix))
        try:
            check_capacity(engines.redshift.base_capacity, engines.redshift.max_capacity)
        except ValueError as wrong:
            yield Problem(path, STAGE_CONTRADICTS(str(wrong)))
    yield from _mixed_streams(engines.firehose)
    held, wakes = engines.held_back, [STRATEGIES[each.strategy] for each in stage.clusters]
    if len(held) > MOST_STREAMS and any(strategy.starts_from_zero for strategy in wakes):
        index = engines.firehose.index(held[MOST_STREAMS])
        message = f"an alarm looks at {MOST_STREAMS} streams that hold records back, at most"
        fix = f"hold them for {ALARM_SECONDS} seconds at most: then their files wake a cluster"
        path = ("consumption", "firehose", index, "buffer_seconds")
        yield Problem(path, STAGE_CONTRADICTS(message, fix=fix))


def _mixed_streams(streams: Sequence[FirehoseSettings]) -> Iterator[Problem]:
    for index, stream in enumerate(streams):
        for other in streams[:index]:
            path: NodePath = ("consumption", "firehose", index)
            if stream.name == other.name:
                message = f"delivery stream `{stream.name}` is named twice"
                yield Problem((*path, "name"), STAGE_CONTRADICTS(message))
            mine, theirs = f"{stream.prefix}/", f"{other.prefix}/"
            if mine.startswith(theirs) or theirs.startswith(mine):
                message = f"{stream.prefix} and {other.prefix} of `{other.name}` would mix files"
                fix = "give each a folder of its own"
                yield Problem((*path, "prefix"), STAGE_CONTRADICTS(message, fix=fix))
