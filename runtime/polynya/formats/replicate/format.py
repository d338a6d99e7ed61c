"""Qlik Replicate behind the protocol of formats: a folder for each table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from polynya.formats.base import ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery, unread
from polynya.formats.files.folders import Folders, sorted_out
from polynya.formats.files.full_load import full_load_of
from polynya.formats.replicate import order, reread
from polynya.formats.replicate.reader import read_replicate
from polynya.formats.replicate.tables import is_load, metadata_path, table_of_replicate
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import included
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo


class ReplicateFormat:
    """Files of Qlik Replicate on S3, each with its `.dfm` file."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._included = partial(included, task)

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """Landed files by the table whose folder they are in; each waits for its `.dfm` file."""
        return sorted_out(landed, self._root, table_of_replicate, self._included, metadata_path)

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The full load, then changes, by name."""
        del dataset
        found = unread(landed, done)
        files = sorted(found.files, key=lambda part: not is_load(part.path, self._root))
        return replace(found, files=tuple(files))

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch of one table."""
        return ReadBatch({request.table.source: read_replicate(request)})

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """CSV, JSON and Parquet apart."""
        del dataset
        return reread.groups_of(files)

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined records again."""
        return ReadBatch({request.table.source: reread.reread_replicate(request)})

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files that are in no folder of changes."""
        return full_load_of(
            landed,
            dataset,
            glob,
            table_of=table_of_replicate,
            is_load=lambda path: is_load(path, self._root),
        )

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """Change sequences begin with their time."""
        del dataset
        return order.place_of_load(began)
