"""What differs between the formats whose source tables have folders of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polynya.landing.batch import DatasetBatch, FilePart, Limits, Rejected
from polynya.landing.dms import names as dms
from polynya.landing.dms.reader import read_dms, reparse_dms
from polynya.landing.errors import UnreadableFileError
from polynya.landing.folders import TableOf
from polynya.model.datatypes import DataType
from polynya.model.task import ResolvedDataset, StorageTask
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
        reading_order: sort key of paths: the full load before the changes.
        companion_of: the file that has to land before this one can be read, None for none.
        kind_of: how a file's bytes are written, "" for a foreign name; records of two kinds make
            two batches.
    """

    table_of: TableOf
    reading_order: Callable[[str], Any]
    companion_of: Callable[[str], str | None]
    kind_of: Callable[[str], str]
    read: Reader
    reparse: Reparser


def delivered(task: StorageTask) -> Delivered:
    """The format of a task."""
    return Delivered(
        table_of=dms.table_of_dms(task.landing),
        reading_order=dms.reading_order,
        companion_of=lambda _: None,
        kind_of=_kind_of,
        read=_read_dms,
        reparse=_reparse_dms,
    )


def _kind_of(path: str) -> str:
    try:
        return dms.kind_of(path)
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
