"""A preview of the next landed batch of a stream, read from its source; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from polynya.engine.commands.preview import preview_of
from polynya.engine.commands.preview_fold import DatasetPreview, PreviewMessages
from polynya.engine.commands.preview_records import NextRecords, PreviewTable
from polynya.formats.base import ReadRequest
from polynya.formats.batch import BatchLimits, FilePart
from polynya.formats.landed import Lost
from polynya.formats.registry import format_of
from polynya.lake.copy.values import Session
from polynya.model.config.aws import AwsAccess
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import PolynyaError
from polynya.model.project_transforms import registry_of
from polynya.store.clock import Clock
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.streams.landing import LandedLog, SampleBatch, StreamLander, sample
from polynya.streams.registry import source_of
from polynya.streams.source import BEHIND_UNITS, MessageSource

#: Most messages and bytes of them that are read.
_MOST_RECORDS: Final = 1_000
_MOST_BYTES: Final = 16 * 1024 * 1024


#: Opens the source of a landing.
OpenSource: TypeAlias = Callable[[StreamingLanding], MessageSource]


def source_opener(
    session: Session, access: AwsAccess, clock: Clock, landing: ObjectStore | None = None
) -> OpenSource:
    """Opens the sources of landings; `session` is started for a source that Spark reads.

    `landing` is the landing zone, which a source that is never read directly may need.
    """

    def opened(task: StreamingLanding) -> MessageSource:
        # Only Kafka is read by Spark.
        spark: Any = session() if task.source.kafka is not None else None
        return source_of(spark, task, access, clock, landing)

    return opened


@dataclass(frozen=True, slots=True)
class LandingPreviewer:
    """Previews landings from their sources.

    `landing` is the landing zone, which is only read; `session` is started where a source is read
    by Spark; `folder` is an empty one that the caller removes; `clock` says which dates are past;
    `limit` is how many records and refusals are shown.
    """

    landing: ObjectStore
    access: AwsAccess
    session: Session
    folder: Path
    clock: Clock
    limit: int

    def previews(self, task: StreamingLanding) -> Iterator[DatasetPreview | PolynyaError]:
        """Preview the landed tables of a landing; an error where one cannot be read."""
        small_task = with_small_batches(task, self.limit)
        try:
            opened = source_opener(self.session, self.access, self.clock, self.landing)
            source = opened(small_task)
            streams_found = source.find()
            if streams_found.refused is not None:
                yield streams_found.refused
            for table, streams in streams_found.tables.items():
                yield self._preview(small_task, source, table, streams)
        except PolynyaError as error:
            yield error

    def _preview(
        self, task: StreamingLanding, source: MessageSource, table: str, streams: tuple[str, ...]
    ) -> DatasetPreview:
        log = LandedLog(self.landing, task.place, table)
        read = sample(StreamLander(task, source, log), log, streams, self.clock.now())
        lost = lost_in_words(read.lost)
        seen = preview_of(_records_of(task, read, self.folder), self.session, self.limit)
        content = task.content.type
        unit = BEHIND_UNITS[source.kind]
        messages = PreviewMessages(source.kind, content, streams, read.messages, read.behind, unit)
        return replace(
            seen,
            dataset=f"{task.name}/{table}",
            messages=messages,
            records=(),
            notes=(*seen.notes, *lost),
        )


def lost_in_words(lost: Iterable[Lost]) -> list[str]:
    """What a source no longer has, in words."""
    return [f"{loss.at}: {loss.begin} to {loss.end} is lost ({loss.why})" for loss in lost]


def with_small_batches(task: StreamingLanding, limit: int) -> StreamingLanding:
    """The task with little to read, and nothing to delete in its source."""
    batch = task.batch.model_copy(
        update={
            "max_records": min(task.batch.max_records, max(_MOST_RECORDS, limit)),
            "max_bytes": min(task.batch.max_bytes, _MOST_BYTES),
        }
    )
    changed: dict[str, Any] = {"batch": batch}
    if task.source.files is not None:
        files = task.source.files.model_copy(update={"delete_after_load": False})
        changed["source"] = task.source.model_copy(update={"files": files})
    return task.model_copy(update=changed)


def _records_of(task: StreamingLanding, read: SampleBatch, folder: Path) -> NextRecords:
    """The messages as records that a table would append."""
    reading = _reading(task)
    preview = PreviewTable(resolved(reading, reading.datasets[0]))
    if not read.messages:
        return NextRecords(reading, preview, None)
    store = LocalObjectStore(folder)
    store.put_if_absent(read.path, read.data)
    table, parts = preview.table, [FilePart(read.path, len(read.data))]
    request = ReadRequest(store, parts, {table.source: table}, BatchLimits())
    return NextRecords(reading, preview, format_of(reading).read(request).one, len(parts))


def _reading(task: StreamingLanding) -> StorageTask:
    """A task that would append all records of the messages."""
    return StorageTask.model_validate(
        {
            "apiVersion": task.apiVersion,
            "kind": "storage",
            "name": task.name,
            "schema": task.name,
            "landing": {"path": task.place, "format": "stream", **registry_of(task)},
            "datasets": [{"name": "messages", "path": "*/*", "mode": "append_only"}],
        }
    )
