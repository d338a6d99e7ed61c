"""What was measured of one contender, and the table of all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.peers.contenders import POLYNYA, Contender

_HEADS = (
    "contender", "a batch", "of Polynya's time", "processor time", "written per event", "files",
    "full read", "peak memory", "right in order", "right when late",
)  # fmt: skip


@dataclass(slots=True)
class Result:
    """Figures of one contender; `failed` is the reason why there are none, or not all.

    `seconds`, `processor` and `written` (bytes) have a value for each round that counts; `read` are
    seconds of full reads. `wrong` rows came of the ordinary feed, `late` ones of the other one, by
    what was late.
    """

    contender: Contender
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    files: int | None = None
    read: Sequence[float] = ()
    peak: int = 0
    wrong: int | None = None
    late: Mapping[str, int] | None = None
    failed: str = ""

    def row(self, events: int, polynya: float | None) -> str:
        """The line of the table, given the events of a batch and Polynya's seconds for it."""
        if self.failed or not self.seconds:
            return f"| {self.contender.what} | not measured: {self.failed} |" + " |" * 8
        batch = statistics.median(self.seconds)
        cells = (
            self.contender.what,
            f"{batch:.2f} s ({min(self.seconds):.2f} to {max(self.seconds):.2f})",
            f"{batch / polynya:.2f} x" if polynya else "",
            f"{statistics.median(self.processor):.2f} s",
            f"{statistics.median(self.written) / events:,.0f} bytes",
            str(self.files),
            f"{statistics.median(self.read):.2f} s",
            f"{self.peak / 2**20:,.0f} MB",
            "yes" if self.wrong == 0 else f"**no**: {self.wrong:,} rows",
            _late(self.late or {}),
        )
        return f"| {' | '.join(cells)} |"


def table(results: Sequence[Result], events: int) -> str:
    """All lines as a table in Markdown."""
    ours = next((one.seconds for one in results if one.contender == POLYNYA), [])
    polynya = statistics.median(ours) if ours else None
    rows = [one.row(events, polynya) for one in results]
    return "\n".join([f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|", *rows])


def _late(wrong: Mapping[str, int]) -> str:
    if not wrong:
        return "yes"
    return "**no**: " + ", ".join(f"{what} ({count:,} rows)" for what, count in wrong.items())
