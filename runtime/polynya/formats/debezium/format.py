"""Debezium behind the protocol of formats: one file feeds many tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from polynya.formats.base import ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import FileProgress
from polynya.formats.debezium.reader import read_debezium
from polynya.formats.debezium.reread import reread_debezium
from polynya.formats.debezium.tables import as_known, scope_of
from polynya.formats.files.discovery import Discovery, matching, unread
from polynya.formats.files.folders import NO_FOLDERS, Folders
from polynya.formats.files.full_load import nothing_to_reload
from polynya.formats.files.ordered import not_passed
from polynya.formats.landed.batch import is_landed_batch
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo


class DebeziumFormat:
    """Change events as lines of JSON, in Avro files, or as messages that a stream landed."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._scope = scope_of(task)

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """None: each event names its table."""
        del landed
        return NO_FOLDERS

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """All files of the task, by name. Landed batches of a stream land in that order."""
        del dataset
        files = not_passed(landed, done, is_landed_batch)
        return unread(matching(files, self._root, "**/*", done=done), done)

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch of all tables."""
        return read_debezium(request, as_known(self._scope, request.tables))

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """All together: their raw bytes are JSON."""
        del dataset
        return [set(files)]

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined lines again."""
        return reread_debezium(request, as_known(self._scope, request.tables))

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """Refused: a snapshot is not told from the events around it."""
        del landed, glob
        raise nothing_to_reload(
            dataset,
            "a capture has no files of a full load",
            fix="take a new snapshot with the connector: its records are upserts; docs/reload.md "
            "says how to find those that are gone",
        )

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """None: positions in a log tell no time."""
        del began, dataset
        return None
