"""What well-formed readers of a stage file can still have wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.cluster import STAGE_CONTRADICTS
from stacks.settings.consumption import LakeFormationSettings
from stacks.settings.readers import DatabricksSettings, SnowflakeSettings
from stacks.settings.stage import StageConfig


def reader_problems(stage: StageConfig) -> Iterator[Problem]:
    """Yield readers of databases and tags that the stage has not, and of a bucket they cannot."""
    engines, there = stage.consumption, stage.catalog.all_databases
    for name, settings in (("snowflake", engines.snowflake), ("databricks", engines.databricks)):
        if settings is not None:
            yield from _outside_problems(stage, name, settings)
    if governed := engines.lake_formation:
        yield from _tag_problems(governed, there)
        yield from _grant_problems(governed, there)


def _outside_problems(
    stage: StageConfig, name: str, settings: SnowflakeSettings | DatabricksSettings
) -> Iterator[Problem]:
    path: NodePath = ("consumption", name)
    if not stage.databases_read(settings.databases):
        message = f"`{name}` finds no database to read"
        yield Problem(path, STAGE_CONTRADICTS(message, fix="name one in `catalog.databases`"))
    for index, database in enumerate(settings.databases or ()):
        place = (*path, "databases", index)
        yield from _unknown_database(database, stage.catalog.all_databases, place)
    bucket = stage.storage.warehouse.existing
    if bucket and "." in bucket.name:
        message = f"`{name}` reads no bucket with a dot in its name, such as {bucket.name}"
        yield Problem(path, STAGE_CONTRADICTS(message, fix="use another warehouse"))


def _tag_problems(governed: LakeFormationSettings, there: Sequence[str]) -> Iterator[Problem]:
    tagged: set[tuple[str, str]] = set()
    for tag, values in governed.tags.items():
        for value, databases in values.items():
            for index, database in enumerate(databases):
                place = ("consumption", "lake_formation", "tags", tag, value, index)
                yield from _unknown_database(database, there, place)
                if (tag, database) in tagged:
                    message = f"`{database}` gets tag `{tag}` twice; it can have one value of it"
                    yield Problem(place, STAGE_CONTRADICTS(message, fix="remove one of the two"))
                tagged.add((tag, database))


def _grant_problems(governed: LakeFormationSettings, there: Sequence[str]) -> Iterator[Problem]:
    for index, grant in enumerate(governed.grants):
        place: NodePath = ("consumption", "lake_formation", "grants", index)
        if grant.reader in governed.readers:
            message = "this reader is among `readers`, who read every database"
            fix = "remove it from `readers`, or remove this grant"
            yield Problem((*place, "reader"), STAGE_CONTRADICTS(message, fix=fix))
        if grant.database:
            yield from _unknown_database(grant.database, there, (*place, "database"))
        for name, wanted in (grant.tags or {}).items():
            known = list(governed.tags.get(name, {}))
            for value in wanted:
                if value not in known:
                    message = f"no database gets tag `{name}` with value `{value}`"
                    how = suggest(value, known) or "name it in `tags`"
                    yield Problem((*place, "tags", name), STAGE_CONTRADICTS(message, fix=how))


def _unknown_database(name: str, there: Sequence[str], path: NodePath) -> Iterator[Problem]:
    if name not in there:
        message = f"the stage has no database `{name}`"
        yield Problem(path, STAGE_CONTRADICTS(message, fix=suggest(name, there)))
