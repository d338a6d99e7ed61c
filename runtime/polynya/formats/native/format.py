"""Native files behind the protocol of formats: each dataset names its files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from polynya.formats.base import ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery
from polynya.formats.files.folders import NO_FOLDERS, Folders
from polynya.formats.native import reread, tables
from polynya.formats.native.reader import read_native
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo


class NativeFormat:
    """json, csv, parquet, avro and orc. Settings of the task reach it through its datasets."""

    def __init__(self, task: StorageTask) -> None:
        del task

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """None: the settings name the tables."""
        del landed
        return NO_FOLDERS

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The files of `initial_load`, then those of `path`."""
        return tables.unread_of(landed, done, dataset)

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch of one dataset."""
        return ReadBatch({request.table.source: read_native(request)})

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """Full load and events apart."""
        return reread.groups_of(files, dataset)

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined records again."""
        return ReadBatch({request.table.source: reread.reread_native(request)})

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files of `initial_load`."""
        return tables.full_load(landed, dataset, glob)

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """None: the columns of `sequence_by` need not tell a time."""
        del began, dataset
        return None
