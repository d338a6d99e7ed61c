"""A streaming transform becomes a storage task over the landed batches of its landing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from polynya.model.config.mapping import MappedColumn
from polynya.model.config.settings import Dataset, Landing, SchemaRegistry
from polynya.model.config.stream_content import RegistryAvroContent
from polynya.model.config.stream_landing import StreamingLanding, landed_table, reading
from polynya.model.config.task import StorageTask
from polynya.model.config.transform import INGESTION_DATE, StreamingTransform
from polynya.model.documents.files import DocumentFile
from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import MapNode
from polynya.model.error_catalogue.streams import (
    MERGE_NEEDS_KEY,
    NO_INGESTION_DATE,
    SETTING_NOT_FOR_APPENDS,
    TRANSFORM_SOURCE_UNKNOWN,
    TRANSFORM_STREAM_UNCLEAR,
)
from polynya.model.formats import rules_of
from polynya.model.headers import LANDED_AT, TIME_HEADERS
from polynya.model.names import shown

#: Settings of a transform that a dataset has under the same name.
_SAME: Final = (
    "mode", "nested", "where", "except_columns", "history", "sequence_by", "timestamp",
    "schema_evolution", "on_bad_record", "sort_by", "retention", "optional_columns",
    "replace_elements",
)  # fmt: skip
_RENAMED: Final = {"soft_delete": "apply_as_deletes", "snapshot_expiry": "maintenance"}


def transform_problems(
    task: StreamingTransform, landings: Mapping[str, StreamingLanding]
) -> Iterator[Problem]:
    """Yield why a transform cannot be a storage task."""
    landing = landings.get(task.from_)
    if landing is None:
        known = ", ".join(sorted(landings))
        yield Problem(
            ("from",),
            TRANSFORM_SOURCE_UNKNOWN(
                task=shown(task.from_),
                fix=f"name one of: {known}" if known else "add one to `tasks/`",
            ),
        )
        return
    yield from _stream_problems(task, landing)
    keys = [index for index, column in enumerate(task.columns) if column.key is not None]
    if task.mode == "append_only" and keys:
        error = SETTING_NOT_FOR_APPENDS("an append-only table has no key")
        yield Problem(("columns", keys[0], "key"), error)
    if task.mode == "merge" and not keys:
        yield Problem(("columns",) if task.columns else ("mode",), MERGE_NEEDS_KEY())
    if task.mode == "append_only" and task.soft_delete:
        error = SETTING_NOT_FOR_APPENDS("an append-only table deletes nothing")
        yield Problem(("soft_delete",), error)
    if _wants_date(task, landing) and _date(landing) is None:
        yield Problem(
            ("partition_by",) if task.partition_by else ("retention",),
            NO_INGESTION_DATE(column=INGESTION_DATE),
        )


def as_storage(task: StreamingTransform, landing: StreamingLanding) -> StorageTask:
    """The storage task that a right transform is."""
    name = task.table or task.name
    columns = task.columns
    date = _date(landing)
    if date is not None and _wants_date(task, landing):
        columns = (*columns, date)
    # What is not written here may come from the defaults of the project.
    settings: dict[str, Any] = {
        one: getattr(task, one) for one in _SAME if one in task.model_fields_set
    }
    if columns:
        settings["columns"] = columns
    if task.soft_delete is not None:
        settings |= {"apply_as_deletes": task.soft_delete, "delete_mode": "soft"}
    if task.partition_by is not None or date is not None:
        by_day = (INGESTION_DATE,)
        settings["partition_by"] = by_day if task.partition_by is None else task.partition_by
    if "snapshot_expiry" in task.model_fields_set:
        settings["maintenance"] = {"snapshot_expiry": {"age": task.snapshot_expiry}}
    table = _landed(task, landing)
    read = {"path": landing.place, "format": "stream", **registry_of(landing)}
    made = StorageTask(
        apiVersion=task.apiVersion,
        kind="storage",
        name=task.name,
        schema_=task.schema_ or task.from_,
        landing=Landing.model_validate(read),
        datasets=(Dataset.model_validate({"name": name, "path": f"{table}/*", **settings}),),
        rules=task.rules,
        apply=task.apply,
        batch=task.batch,
        views=task.views,
        engine=task.engine,
        cluster=task.cluster or (landing.cluster if landing.direct else None),
    )
    if not landing.direct:
        return made
    return reading(made, landing, table)


def registry_of(landing: StreamingLanding) -> dict[str, SchemaRegistry]:
    """The registry that is asked about a landing's messages, and who logs in to it.

    Landed batches name its address too, but anybody may have written them.
    """
    content = landing.content
    if not isinstance(content, RegistryAvroContent):
        return {}
    return {"schema_registry": content.schema_registry}


def with_registry(task: StorageTask, landings: Iterable[StreamingLanding]) -> StorageTask:
    """The task with the registry of the landing whose folder it reads, unless it names its own."""
    if task.landing.schema_registry is not None:
        return task
    if "schema_registry" not in rules_of(task.landing.format).landing_settings:
        return task
    registries = [
        registry_of(landing) for landing in landings if landing.place == task.landing.path
    ]
    if not any(registries):
        return task
    return task.model_copy(update={"landing": task.landing.model_copy(update=registries[0])})


def of_transform(problem: Problem) -> Problem:
    """A problem of the storage task, with the path that the transform has for it."""
    path = problem.path[2:] if problem.path[:1] == ("datasets",) else problem.path
    names = {new: old for old, new in _RENAMED.items()}
    return replace(problem, path=tuple(names.get(str(part), part) for part in path))


def with_storage_names(file: DocumentFile) -> DocumentFile:
    """The file of a transform, in which settings are found by the names of a dataset, too."""
    document = file.document
    if not isinstance(document, MapNode):
        return file
    entries = dict(document.entries)
    for old, new in _RENAMED.items():
        if old in entries:
            entries[new] = entries[old]
    return replace(file, document=replace(document, entries=entries))


def _stream_problems(task: StreamingTransform, landing: StreamingLanding) -> Iterator[Problem]:
    tables = _tables(landing)
    if task.stream is None and len(tables) != 1:
        names = f": {', '.join(tables)}" if tables else ""
        yield Problem(
            ("from",),
            TRANSFORM_STREAM_UNCLEAR(
                f"the landing {shown(task.from_)} may have several landed tables{names}",
                fix="name the topic or stream as `stream`",
            ),
        )
    elif task.stream is not None and not _may_have(landing, task.stream):
        yield Problem(
            ("stream",),
            TRANSFORM_STREAM_UNCLEAR(
                f"the landing {shown(task.from_)} does not land {shown(task.stream)}",
                fix=f"name one of: {', '.join(tables)}" if tables else "name a topic that it takes",
            ),
        )


def _landed(task: StreamingTransform, landing: StreamingLanding) -> str:
    """The landed table that a right transform reads."""
    tables = _tables(landing)
    return tables[0] if len(tables) == 1 else landed_table(task.stream or "")


def _tables(landing: StreamingLanding) -> list[str]:
    """The landed tables that its file names; none where a wildcard may find any."""
    if landing.into.table is not None:
        return [landing.into.table]
    if landing.source.files is not None:
        return [landing.name]
    if any("%" in stream for stream in landing.streams):
        return []
    return sorted({landed_table(stream) for stream in landing.streams})


def _may_have(landing: StreamingLanding, stream: str) -> bool:
    tables = _tables(landing)
    return not tables or landed_table(stream) in {landed_table(table) for table in tables}


def _wants_date(task: StreamingTransform, landing: StreamingLanding) -> bool:
    """Whether the table needs the day of ingestion, and no column of the user's is that."""
    if any(column.name.lower() == INGESTION_DATE for column in task.columns):
        return False
    terms = task.partition_by
    if terms is None:
        by_default = _date(landing) is not None
    else:
        by_default = any(term.column == INGESTION_DATE for term in terms)
    retained = task.retention is not None and task.retention.column == INGESTION_DATE
    return by_default or retained


def _date(landing: StreamingLanding) -> MappedColumn | None:
    """The column with the day of ingestion, None where messages have no time for good."""
    (source,) = landing.source.chosen
    time = {str(name): header for name, header in TIME_HEADERS.items()}.get(source)
    if time is None and not landing.direct:
        time = LANDED_AT
    if time is None:
        return None
    return MappedColumn(name=INGESTION_DATE, expression=f"CAST({time} AS DATE)")
