"""Landed batches of streams behind the protocol of formats: each dataset reads one folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from polynya.formats.base import ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery
from polynya.formats.files.folders import NO_FOLDERS, Folders
from polynya.formats.stream import tables
from polynya.formats.stream.reader import read_stream
from polynya.formats.stream.reread import reread_stream
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo


class StreamFormat:
    """What tasks of kind `streaming_landing` land."""

    def __init__(self, task: StorageTask) -> None:
        del task

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """None: the settings name the folders."""
        del landed
        return NO_FOLDERS

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The landed batches after the newest one that was read."""
        return tables.unread_of(landed, done, dataset)

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch of one dataset; see `read_stream`."""
        return ReadBatch({request.table.source: read_stream(request)})

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """All together: what was kept of each message says what it is."""
        del dataset
        return [set(files)]

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined messages again."""
        return ReadBatch({request.table.source: reread_stream(request)})

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """All landed batches from the first one on."""
        return tables.full_load(landed, dataset, glob)

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """None: numbers of landed batches tell no time."""
        del began, dataset
        return None
