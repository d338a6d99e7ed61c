"""AWS DMS behind the protocol of formats: a folder for each table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from polynya.formats.base import ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import FileProgress
from polynya.formats.dms import order, reread
from polynya.formats.dms.reader import read_dms
from polynya.formats.dms.tables import is_load, reading_order, table_of_dms
from polynya.formats.files.discovery import Discovery, unread
from polynya.formats.files.folders import Folders, sorted_out
from polynya.formats.files.full_load import full_load_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import included
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo


class DmsFormat:
    """Files of AWS DMS on S3."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._table_of = table_of_dms(task.landing)
        self._included = partial(included, task)

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """Landed files by the table whose folder they are in."""
        return sorted_out(landed, self._root, self._table_of, self._included)

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The full load, then changes as they were written."""
        del dataset
        found = unread(landed, done)
        files = sorted(found.files, key=lambda part: reading_order(part.path))
        return replace(found, files=tuple(files))

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch of one table."""
        return ReadBatch({request.table.source: read_dms(request)})

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """CSV and Parquet apart."""
        del dataset
        return reread.groups_of(files)

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined records again."""
        return ReadBatch({request.table.source: reread.reread_dms(request)})

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files that DMS calls LOAD and a number."""
        return full_load_of(landed, dataset, glob, table_of=self._table_of, is_load=is_load)

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """Changes begin with their time, unless `sequence_by` orders them."""
        return order.place_of_load(began, dataset)
