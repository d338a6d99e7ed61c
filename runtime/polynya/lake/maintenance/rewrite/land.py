"""Let groups that were written again take the place of their files, in one commit.

Between the snapshot that was read and the commit, rows of these files may have been deleted. The
new files are not written again for that: where each of their rows was is known, so that the same
commit deletes the same rows in them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.deletes.positions import Deleted, deleted_places, of_files
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.staging import PLACES
from polynya.lake.maintenance.rewrite.facts import Seen, reader_of
from polynya.lake.maintenance.rewrite.plan import REWRITTEN
from polynya.lake.maintenance.rewrite.write import StagedGroup
from polynya.lake.table.dataset import DatasetTable
from polynya.observe.trace import span


@dataclass(frozen=True, slots=True)
class Landed:
    """Which groups were committed, and which were dropped: with what was in their way."""

    made: tuple[StagedGroup, ...]
    dropped: tuple[tuple[StagedGroup, str], ...]
    dropped_deletes: int = 0


@span("land rewrite")
def land(target: DatasetTable, seen: Seen, groups: Sequence[StagedGroup]) -> Landed:
    """Commit what still holds. No apply is at work, and nobody else commits (`between_applies`).

    The staged files of groups that do not hold are removed. Raises what a commit raises, and
    OSError.
    """
    table, snapshot = target.table, target.state.snapshot
    assert snapshot is not None, "files were read from a snapshot"
    live = {file.path for partition in REWRITTEN for file in table.files(partition, snapshot)}
    deleted = _deleted_now(table, seen, snapshot, live)
    made: list[StagedGroup] = []
    dropped: list[tuple[StagedGroup, str]] = []
    places: list[pa.Table] = []
    for one in groups:
        found = _moved(one, seen, deleted, live)
        if isinstance(found, str):
            dropped.append((one, found))
        else:
            made.append(one)
            places.append(found)
    table.drop_files(path for one, _ in dropped for path in one.paths)
    if not made:
        return Landed((), tuple(dropped))
    assert not isinstance(deleted, str)
    gone = [one.file for staged in made for one in staged.group.files]
    drop = deleted.only_named_by((file.path for file in gone), live)
    removed = pa.concat_tables(places)
    target.commit(
        apply=target.state.apply,
        add=[one.file for staged in made for one in staged.files],
        remove=gone,
        removed=removed if removed.num_rows else None,
        drop=drop,
        summary={
            "polynya.step": "rewrite-data-files",
            "polynya.reason": made[0].group.reason,
            "polynya.rewritten-files": str(len(gone)),
        },
    )
    return Landed(tuple(made), tuple(dropped), len(drop))


def _deleted_now(table: IcebergTable, seen: Seen, snapshot: int, live: Set[str]) -> Deleted | str:
    """Rows that are deleted by now, with the numbers of `seen`; or why nobody knows.

    A delete file never changes: only new ones are read, unless one of before is gone that named a
    live file, because a vector or a rewrite took its place.
    """
    if snapshot == seen.snapshot:
        return seen.deleted
    deletes = table.position_deletes(snapshot)
    if deletes is None:
        return "somebody wrote equality deletes, or position deletes that are no Parquet"
    here = {one.place for one in deletes}
    lost = any(one.place not in here and names & live for one, names in seen.deleted.named)
    known = {} if lost else {one.place: names for one, names in seen.deleted.named}
    new = [one for one in deletes if one.place not in known]
    read = deleted_places(reader_of(table, new), seen.deleted.paths, new)
    if read is None:
        return "delete files are in another place than the table"
    if lost:
        return read
    still = [(one, names) for one, names in seen.deleted.named if one.place in here]
    places = pa.concat_arrays([seen.deleted.places, read.places])
    return Deleted(seen.deleted.paths, places, (*still, *read.named))


def _moved(
    staged: StagedGroup, seen: Seen, deleted: Deleted | str, live: Set[str]
) -> pa.Table | str:
    """Places in the new files of rows that were deleted meanwhile; or why no new file is of use."""
    if isinstance(deleted, str):
        return deleted
    if any(one.file.path not in live for one in staged.group.files):
        return "another step has removed or rewritten some of its files"
    parts = [PLACES.empty_table()]
    if deleted is seen.deleted:
        return parts[0]
    numbers = [one.number for one in staged.group.files]
    before, now = (of_files(one.places, numbers) for one in (seen.deleted, deleted))
    if len(before.filter(pc.is_in(before, value_set=now))) < len(before):
        return "rows that were deleted are there again: the table was rolled back"
    new = now.filter(pc.invert(pc.is_in(now, value_set=before)))
    for one in staged.files:
        at = pc.index_in(new, value_set=one.places()).drop_null()
        count = len(at)
        parts.append(
            pa.table(
                [
                    pa.repeat(pa.scalar(one.file.partition, pa.string()), count),
                    pa.repeat(pa.scalar(one.file.path, pa.string()), count),
                    at.cast(pa.int64()),
                ],
                schema=PLACES,
            )
        )
    found = pa.concat_tables(parts)
    if found.num_rows != len(new):
        return "rows were deleted that were not read"
    return found
