"""Databases that two stages would both create, in the one Glue catalog of an account and region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from polynya.model.documents.problems import Problem
from polynya.model.error_catalogue.cluster import STAGE_CONTRADICTS
from stacks.settings.stage import StageConfig


def shared_databases(stages: Mapping[str, StageConfig]) -> Iterator[tuple[str, Problem]]:
    """Yield, with its file, each database that an earlier file has where both stages may be.

    The second stage that creates it fails. One that does not say where it is may be anywhere.
    """
    seen: list[tuple[str, StageConfig]] = []
    for file, mine in stages.items():
        for other_file, other in seen:
            if _may_be_together(mine, other):
                for problem in _shared(mine, other, other_file):
                    yield file, problem
        seen.append((file, mine))


def _shared(mine: StageConfig, other: StageConfig, other_file: str) -> Iterator[Problem]:
    for part in ("databases", "existing_databases"):
        for index, name in enumerate(getattr(mine.catalog, part)):
            if name in other.catalog.all_databases:
                message = f"database `{name}` is that of {other_file}, too"
                fix = f"name the stage in it, such as `{name}_{mine.name}`"
                yield Problem(("catalog", part, index), STAGE_CONTRADICTS(message, fix=fix))


def _may_be_together(one: StageConfig, other: StageConfig) -> bool:
    accounts, regions = {one.account, other.account}, {one.region, other.region}
    return all(len(places) == 1 or None in places for places in (accounts, regions))
