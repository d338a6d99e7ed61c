"""The stored versions of the records that a step may change, found while Spark computes its rows.

Which records these are is known as soon as the affected keys are, and long before their new rows. A
search takes the table over first, so that it looks at the snapshot which the step is based on.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

import pyarrow as pa

from polynya.lake.apply.apply import Applier
from polynya.lake.apply.in_memory import LOCAL_EVENTS
from polynya.lake.apply.run import ApplyRun, FoundVersions
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.lake.table.state import Reloading
from polynya.model.config.dataset import DELETING

#: Digits of the number of a step, which orders its events.
_DIGITS: Final = 20


def next_step(target: DatasetTable, now: datetime) -> Reloading:
    """What the events of a step have in common: its time, and its number as their place."""
    place = f"{target.state.copy.reloads + 1:0{_DIGITS}d}"
    return Reloading(DELETING, 0, now.isoformat(), place=place)


class StoredSearch:
    """Looks for the versions of one step of `target` at `now`, by a thread of its own.

    At the end of its block the thread has ended, too. `why_not` says why it does not look, as a
    sentence.
    """

    def __init__(self, target: DatasetTable, applier: Applier, now: datetime) -> None:
        self.why_not: str | None = "all rows are computed"
        self._target, self._applier, self._now = target, applier, now
        self._threads = ThreadPoolExecutor(1, "stored versions")
        self._entered: Future[None] | None = None
        self._looking: Future[_Found | str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._threads.shutdown()

    def start(self, affected: pa.Table) -> None:
        """Take the table over and look for the records with affected keys, if these are its keys.

        The table has had a step.
        """
        self.why_not = self._reason(affected)
        if self.why_not is None:
            self._entered = self._threads.submit(enter, self._target)
            self._looking = self._threads.submit(self._looked_up, affected)

    def _reason(self, affected: pa.Table) -> str | None:
        if not affected.num_rows:
            return "no key is affected"
        if set(affected.column_names) != set(self._target.known_keys()):
            return "its affected keys are not the keys of the table"
        if affected.num_rows > LOCAL_EVENTS:
            return f"{affected.num_rows:,} affected keys are too many"
        return None

    def enter(self) -> None:
        """Return once the table is taken over. Raises what `ownership.enter` raises."""
        if self._entered is None:
            enter(self._target)
        else:
            self._entered.result()

    def found(self, run: ApplyRun) -> FoundVersions | str:
        """The versions for a run, or why Spark finds them. Raises what a search raises."""
        assert self._looking is not None, "`why_not` says so"
        found = self._looking.result()
        if isinstance(found, str):
            return found
        if found.versions.snapshot != run.snapshot or found.keys != run.shape.keys:
            return "the table changed while its versions were looked for"
        return found.versions

    def _looked_up(self, affected: pa.Table) -> _Found | str:
        target = self._target
        with ApplyRun.of(target, target.shape()) as run:
            versions = _stored(run, self._applier, affected, next_step(target, self._now))
            return versions if isinstance(versions, str) else _Found(run.shape.keys, versions)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a search has found by these keys."""

    keys: tuple[str, ...]
    versions: FoundVersions


def _stored(
    run: ApplyRun, applier: Applier, affected: pa.Table, step: Reloading
) -> FoundVersions | str:
    """The stored versions of the records with affected keys, or why Spark finds them."""
    columns = {column["name"]: column for column in run.target.table.columns()}
    keys = run.shape.keys
    if any(key not in columns for key in keys):
        return "the table has no column for its keys yet"
    try:
        typed = pa.table(
            {key: affected.column(key).cast(arrow_type(columns[key]["type"])) for key in keys}
        )
    except pa.ArrowException as error:
        return f"a value does not fit the table: {error}"
    # No row of the table has a key with NULL.
    values = [typed.drop_null().column(key).combine_chunks() for key in keys]
    return applier.found(run, values, place=step.place, now=step.started_at)
