"""What a run did, gathered from its events, for the lines at its end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from polynya.model.errors import PolynyaError, SuspendedError
from polynya.observe.capture import CaptureLanded
from polynya.observe.data import BatchCopied, DatasetApplied, ExtractApplied, ReloadLoaded
from polynya.observe.events import Event, line
from polynya.observe.streams import StreamLanded

if TYPE_CHECKING:
    from rich.table import Table

#: Datasets of the table at the end; the log of a run has all of them.
_MOST_ROWS: Final = 50


@dataclass(slots=True)
class _Tally:
    """Records of one dataset or landed table, and how often it was applied."""

    landed: int = 0
    records: int = 0
    copied: int = 0
    quarantined: int = 0
    applies: int = 0


@dataclass(slots=True)
class RunReport:
    """What happened in a run of a project. Told by its threads, read at its end."""

    project: str
    _tallies: dict[str, _Tally] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: Event) -> None:
        """Take note of what happened."""
        with self._lock:
            tally = self._tallies.setdefault(event.subject, _Tally())
            match event:
                case BatchCopied():
                    tally.records += event.rows_in
                    tally.copied += event.rows_out
                    tally.quarantined += event.rows_quarantined
                case ReloadLoaded():
                    tally.records += event.rows_in
                    tally.copied += event.rows_loaded
                    tally.quarantined += event.rows_quarantined
                case StreamLanded():
                    tally.landed += event.records
                case CaptureLanded():
                    tally.landed += event.events
                case DatasetApplied() | ExtractApplied():
                    tally.applies += 1

    @property
    def landed(self) -> int:
        """Records of streams and databases that were landed."""
        return sum(one.landed for one in self._tallies.values())

    @property
    def records(self) -> int:
        """Records that were read."""
        return sum(one.records for one in self._tallies.values())

    @property
    def copied(self) -> int:
        """Records that entered a table."""
        return sum(one.copied for one in self._tallies.values())

    @property
    def quarantined(self) -> int:
        """Records that were set aside."""
        return sum(one.quarantined for one in self._tallies.values())

    @property
    def applied(self) -> int:
        """Datasets whose pending changes were applied."""
        return sum(one.applies > 0 for one in self._tallies.values())

    @property
    def nothing_new(self) -> bool:
        """Whether no record was read or landed and nothing was applied."""
        return not self.records and not self.applied and not self.landed

    def figures(self) -> dict[str, int]:
        """For programs."""
        return {
            **({"landed": self.landed} if self.landed else {}),
            "records": self.records,
            "copied": self.copied,
            "quarantined": self.quarantined,
            "applied": self.applied,
        }

    def line(self, seconds: float, *, failures: int) -> str:
        """The last line of a run that took so long, the start of Spark included."""
        if self.nothing_new:
            what = "nothing was copied" if failures else "nothing new"
            return line("done", self.project, f"{what}, in {seconds:.1f} s")
        rate = self.records / seconds if seconds else 0
        quarantined = f", {self.quarantined:,} quarantined" if self.quarantined else ""
        landed = f"{self.landed:,} record{'' if self.landed == 1 else 's'} landed, "
        applied = f", {self.applied:,} dataset{'' if self.applied == 1 else 's'} applied"
        return line(
            "done",
            self.project,
            f"{landed if self.landed else ''}"
            f"{self.copied:,} of {self.records:,} records copied{quarantined}"
            f"{applied if self.applied else ''} in {seconds:.1f} s ({rate:,.0f}/s)",
        )

    def table(self, failures: Mapping[str, PolynyaError]) -> Table | None:
        """Datasets that somebody has to look at; None when there are none."""
        rejecting = {name for name, one in self._tallies.items() if one.quarantined}
        names = sorted(rejecting | set(failures))
        if not names:
            return None
        from rich.table import Table

        table = Table("dataset", "copied", "quarantined", "state", "what to do")
        for name in names[:_MOST_ROWS]:
            tally = self._tallies.get(name, _Tally())
            state, advice = _state(name, tally, failures.get(name))
            style = "red" if name in failures else "yellow"
            table.add_row(
                name, f"{tally.copied:,}", f"{tally.quarantined:,}", state, advice, style=style
            )
        if len(names) > _MOST_ROWS:
            table.add_row(f"and {len(names) - _MOST_ROWS:,} more", "", "", "", "")
        return table


def _state(name: str, tally: _Tally, failure: PolynyaError | None) -> tuple[str, str]:
    """How it is with a dataset, and what helps."""
    if failure is not None:
        word = "suspended" if isinstance(failure, SuspendedError) else "failed"
        return f"{word} ({failure.code})", failure.fix or f"polynya explain {failure.code}"
    state = "goes on" if tally.copied else "no record could be copied"
    return state, f"polynya quarantine list {name}"
