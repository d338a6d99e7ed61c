"""How rows leave the table in an apply: by position deletes, or with the file that they are in.

`rewriting.py` decides for each data file; here is what the decision needs, and what it does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.rewriting import Losing, Rewriting, choose, together
from polynya.lake.apply.run import Run
from polynya.lake.iceberg.deletes.positions import Deleted, counted, deleted_places, positions
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.reading import is_read_by, stored_file
from polynya.lake.iceberg.rewriting import Source, write_live_rows
from polynya.lake.iceberg.staging import parted, write_part
from polynya.model.contract.headers import Partition
from polynya.store.data_files import DataFiles

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """What a step removes.

    `places` are rows that get position deletes, None for none. `again` has the data files that are
    written again: those of each group become one. `drop` are delete files that nothing needs then.
    Other rows may join a group of up to `joining_bytes`: in a larger file they would widen the
    range of its keys.
    """

    places: pa.Table | None
    store: DataFiles | None = None
    again: Sequence[Sequence[Source]] = ()
    drop: Sequence[DeleteFile] = ()
    joining_bytes: int = 0

    @property
    def files(self) -> list[DataFile]:
        """Data files that leave the table."""
        return [source.file for group in self.again for source in group]

    @property
    def counts(self) -> Mapping[str, str]:
        """What the summary of the snapshot says."""
        return {"polynya.rewritten-files": str(len(self.files))} if self.again else {}

    def stage(self, table: IcebergTable, rows: pa.Table | None = None) -> list[DataFile]:
        """Write the live rows of the files; those of `rows` go to the same files where they can.

        `rows` are versions in memory that the step writes besides.
        """
        staged: list[DataFile | None] = []
        left = {} if rows is None else dict(parted(table, rows))
        for group in self.again:
            assert self.store is not None, "what was chosen can be read"
            small = sum(source.file.size_bytes for source in group) <= self.joining_bytes
            also = left.pop(group[0].file.slot, None) if small else None
            staged.append(write_live_rows(table, self.store, group, also))
        staged += (write_part(table, slot, some) for slot, some in left.items())
        return [file for file in staged if file is not None]


@dataclass(frozen=True, slots=True)
class _Found:
    """What can be known of the deletes of a run: its live files, and the rows deleted so far."""

    files: Sequence[DataFile]
    store: DataFiles
    deleted: Deleted


def plan_removal(
    run: Run, places: pa.Table | None, deleted: Deleted | None, rewriting: Rewriting
) -> Removal:
    """Decide how rows go whose places are given (`staging.PLACES`).

    `deleted` are the rows of Current and Prior that are deleted so far, None where nobody has read
    that yet.
    """
    if places is None or (run.fresh is not None and run.fresh.instead):
        return Removal(places)
    found = _found(run, deleted)
    if isinstance(found, str):
        log.debug("position deletes in %s: %s", run.target.table.name, found)
        return Removal(places)
    mine = found.deleted.places_of(places).drop_null()
    dead = pa.concat_arrays([found.deleted.places, mine])
    sources = _sources(run.target.table, found, dead, rewriting)
    if not sources:
        return Removal(places)
    gone = [source.file.path for group in sources for source in group]
    names = pa.array(gone, pa.string())
    kept = places.filter(pc.invert(pc.is_in(places.column("file_path"), value_set=names)))
    return Removal(
        places=kept if kept.num_rows else None,
        store=found.store,
        again=sources,
        drop=found.deleted.only_named_by(gone, (file.path for file in found.files)),
        joining_bytes=rewriting.together_bytes,
    )


def _found(run: Run, deleted: Deleted | None) -> _Found | str:
    """What is known, or why files cannot be written again."""
    table = run.target.table
    store = table.reach().reads
    if isinstance(store, str):
        return store
    files = [
        file for partition in (Partition.CURRENT, Partition.PRIOR)
        for file in table.files(partition, run.snapshot)
    ]  # fmt: skip
    if deleted is None:
        deletes = table.position_deletes(run.snapshot)
        try:
            paths = [file.path for file in files]
            deleted = None if deletes is None else deleted_places(store, paths, deletes)
        except (OSError, pa.ArrowInvalid) as error:
            table.forget_deletes()
            return f"a file of deletes was not read: {error}"
    if deleted is None:
        return "there are deletes of another kind, or in another place"
    return _Found(files, store, deleted)


def _sources(
    table: IcebergTable, found: _Found, dead: pa.Array, rewriting: Rewriting
) -> list[list[Source]]:
    """The files that are written again, those that become one together.

    `dead` are places, some perhaps twice.
    """
    numbers = {path: number for number, path in enumerate(found.deleted.paths)}
    at_most = counted(dead)
    losing: list[Losing] = []
    gone: dict[str, pa.Array] = {}
    for file in found.files:
        number = numbers[file.path]
        if at_most.get(number, 0) < max(1, rewriting.share * file.rows):
            continue
        if not _reads(table, found.store, file):
            log.debug("position deletes for %s: Arrow does not read all of it", file.path)
            continue
        gone[file.path] = pc.unique(positions(dead, number))
        losing.append(Losing(file, len(gone[file.path])))
    again: list[Losing] = []
    for choice in choose(losing, rewriting):
        word = "written again" if choice.again else "position deletes"
        log.debug("%s for %s: %s", word, choice.losing.file.path, choice.reason)
        if choice.again:
            again.append(choice.losing)
    return [
        [
            Source(one.file, stored_file(found.store, one.file.path), gone[one.file.path])
            for one in group
        ]
        for group in together(again, rewriting)
    ]


def _reads(table: IcebergTable, store: DataFiles, file: DataFile) -> bool:
    """Whether all columns of a file, as the table has them now, can be read here."""
    if not is_read_by(store, file.path):
        return False
    try:
        return stored_file(store, file.path).reads_all(table.columns())
    except (OSError, pa.ArrowInvalid):
        return False
