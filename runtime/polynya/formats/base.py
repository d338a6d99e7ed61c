"""The protocol of a source format: what the engine asks of it, and what goes in and comes out.

A format is a package whose `format` module implements the protocol; its other modules hold its
tables and files, its reader and the order of its rows. AWS DMS fits in one module. The settings
that a task may use with a format are in `polynya.model.formats`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from polynya.formats.batch import (
    BatchLimits,
    DatasetBatch,
    FilePart,
    FileProgress,
    ReadLimits,
    Rejected,
)
from polynya.formats.eras import Era
from polynya.formats.files import NO_FOLDERS, Discovery, Folders
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import DataType
from polynya.store.object_store import ObjectInfo, ObjectStore


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What is known of a table before something is read for it.

    Attributes:
        dataset: its settings, as they are in force.
        schema: every source column so far.
        keys: key columns of earlier batches.
        done: by file, how many of its records the table has; needed where files are shared.
        called: what the source has called the table since it was renamed.
        key_names: the names that keys of its events have had; see `KeyNames`.
        eras: those of the log of its source; see `LogEras`.
    """

    dataset: ResolvedDataset
    schema: Mapping[str, DataType] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    done: Mapping[str, int] = field(default_factory=dict)
    called: str | None = None
    key_names: Sequence[tuple[str, ...]] = ()
    eras: Sequence[Era] = ()

    @property
    def source(self) -> str:
        """Name of the source table; that of the dataset where the settings name the files."""
        return self.dataset.landing.source or self.dataset.name


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Which files to read, and for which tables.

    Attributes:
        store: where the files are.
        files: what to read, in order; each from record `start` on.
        tables: by source table. Where files are shared all that there are, else the one table that
            the files belong to.
        limits: the batch ends between two records when one of them is reached.
        load: the files hold a full load. Formats whose files say so themselves do not look at it.
        only: of shared files, read the events of no other table.
        without: of shared files, leave out the events of these tables.
    """

    store: ObjectStore
    files: Sequence[FilePart]
    tables: Mapping[str, KnownTable]
    limits: ReadLimits = field(default_factory=BatchLimits)
    load: bool = False
    only: str | None = None
    without: frozenset[str] = frozenset()

    @property
    def table(self) -> KnownTable:
        """The table that files which are not shared belong to."""
        (table,) = self.tables.values()
        return table


@dataclass(frozen=True, slots=True)
class RereadRequest:
    """Quarantined records of one group and the tables they may be of.

    Groups are those of `LandingFormat.reread_groups`. Whole files are not among `records`: they are
    reread as files.
    """

    store: ObjectStore
    records: Sequence[Rejected]
    tables: Mapping[str, KnownTable]

    @property
    def table(self) -> KnownTable:
        """The table that records of files which are not shared belong to."""
        (table,) = self.tables.values()
        return table


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """What one read gave.

    Attributes:
        datasets: by source table.
        unrouted: accounting of the records without a table: messages other than changes and
            tables that the task leaves out (filtered), unreadable records (rejected). It has no
            rows. None where each table has its own files.
        left: names of renamed tables that a policy takes for new ones.
    """

    datasets: Mapping[str, DatasetBatch]
    unrouted: DatasetBatch | None = None
    left: frozenset[str] = frozenset()

    @property
    def one(self) -> DatasetBatch:
        """The batch of the only table."""
        (batch,) = self.datasets.values()
        return batch


class LandingFormat(Protocol):
    """The landing zone of one task, as its format reads it. It keeps no state between calls."""

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """Landed files by the table whose folder they are in.

        By default there are no such folders: the settings or the events name the tables.
        """
        del landed
        return NO_FOLDERS

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """What is to be read next, in the order of reading: the full load before the changes.

        Args:
            landed: files of the table's folders, else all files of the task.
            done: how far each was read.
            dataset: that they are read for.
        """
        ...

    def read(self, request: ReadRequest) -> ReadBatch:
        """Read the next batch: rows, rejected records and progress of the files.

        A file that cannot be read is one rejected record and complete; it never keeps the next file
        from being read. Where files are not shared there is a batch for the one table, also without
        any file.
        """
        ...

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """The files, in the groups whose quarantined records one batch can hold, in order."""
        ...

    def reread(self, request: RereadRequest) -> ReadBatch:
        """Read quarantined records again, with today's settings, from their raw bytes.

        `files` of the batches are empty, since no file was read.
        """
        ...

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files of a full load of one table, for a reload.

        `glob` names files below the landing path; None: those that the settings or the source say.

        Raises:
            OperationError: POLYNYA-LAKE-014, nothing can say where it lies.
        """
        ...

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """How the change identifiers of that time begin; None (default): they tell no time."""
        del began, dataset
        return None
