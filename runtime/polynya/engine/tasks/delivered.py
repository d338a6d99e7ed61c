"""What differs between the formats whose source tables have folders of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polynya.formats.batch import DatasetBatch, FilePart, Limits, Rejected
from polynya.formats.dms.names import kind_of as dms_kind
from polynya.formats.dms.names import reading_order, table_of_dms
from polynya.formats.dms.reader import read_dms, reparse_dms
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.folders import TableOf
from polynya.formats.replicate.names import is_load, metadata_path, table_of_replicate
from polynya.formats.replicate.names import kind_of as replicate_kind
from polynya.formats.replicate.reader import read_replicate
from polynya.formats.replicate.replay import reparse_replicate
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.model.datatypes import DataType
from polynya.store.object_store import ObjectStore


class Reader(Protocol):
    """Reads the next batch of one table; `keys` are those of earlier batches."""

    def __call__(
        self,
        source: ObjectStore,
        dataset: ResolvedDataset,
        files: Sequence[FilePart],
        known: Mapping[str, DataType],
        keys: tuple[str, ...],
        *,
        limits: Limits,
    ) -> DatasetBatch:
        """Read."""
        ...


class Reparser(Protocol):
    """Reads quarantined records of one table and one kind of file again, as one batch."""

    def __call__(
        self,
        source: ObjectStore,
        dataset: ResolvedDataset,
        records: Sequence[Rejected],
        known: Mapping[str, DataType],
        keys: tuple[str, ...],
    ) -> DatasetBatch:
        """Read."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """One format.

    Attributes:
        table_of: the source table of a path below the landing folder.
        is_load: whether a path belongs to a full load.
        reading_order: sort key of paths: the full load before the changes.
        companion_of: the file that has to land before this one can be read, None for none.
        kind_of: how a file's bytes are written, "" for a foreign name; records of two kinds make
            two batches.
    """

    table_of: TableOf
    is_load: Callable[[str], bool]
    reading_order: Callable[[str], Any]
    companion_of: Callable[[str], str | None]
    kind_of: Callable[[str], str]
    read: Reader
    reparse: Reparser


def delivered(task: StorageTask) -> Delivered:
    """The format of a task."""
    if task.landing.format == "replicate":
        return Delivered(
            table_of=table_of_replicate,
            is_load=lambda path: is_load(path, task.landing.path),
            reading_order=lambda path: (not is_load(path, task.landing.path), path),
            companion_of=metadata_path,
            kind_of=lambda path: _kind(replicate_kind, path),
            read=read_replicate,
            reparse=reparse_replicate,
        )
    return Delivered(
        table_of=table_of_dms(task.landing),
        is_load=lambda path: reading_order(path)[0] == 0,
        reading_order=reading_order,
        companion_of=lambda _: None,
        kind_of=lambda path: _kind(dms_kind, path),
        read=_read_dms,
        reparse=_reparse_dms,
    )


def _kind(kind_of: Callable[[str], str], path: str) -> str:
    try:
        return kind_of(path)
    except UnreadableFileError:
        return ""


def _read_dms(
    source: ObjectStore,
    dataset: ResolvedDataset,
    files: Sequence[FilePart],
    known: Mapping[str, DataType],
    keys: tuple[str, ...],
    *,
    limits: Limits,
) -> DatasetBatch:
    del keys  # the configuration names them
    return read_dms(source, dataset, files, known, limits)


def _reparse_dms(
    source: ObjectStore,
    dataset: ResolvedDataset,
    records: Sequence[Rejected],
    known: Mapping[str, DataType],
    keys: tuple[str, ...],
) -> DatasetBatch:
    del source, keys  # the raw bytes are enough
    return reparse_dms(records, dataset, known)
