"""What a part of the newcomer's way came to: checks that hold or do not, as a table and as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to hold. `problems` say what does not; `figures` are what was measured."""

    part: str
    name: str
    problems: tuple[str, ...] = ()
    said: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    #: Why it could not be tried on this machine.
    left_out: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def outcome(self) -> str:
        """One word for the table."""
        if self.left_out:
            return "left out"
        return "ok" if self.holds else "FAILED"

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {**asdict(self), "outcome": self.outcome}


#: Does the work of a check: gives its problems, or a check of its own with figures.
Work = Callable[[], Check | Iterable[str]]


@dataclass(frozen=True, slots=True)
class Trial:
    """A check that can be made by itself."""

    part: str
    name: str
    work: Work

    def made(self) -> Check:
        """The check."""
        return tried(self.part, self.name, self.work)


def tried(part: str, name: str, work: Work) -> Check:
    """A check by its work; what that fails with does not hold either."""
    began = time.monotonic()
    try:
        found = work()
        check = found if isinstance(found, Check) else Check(part, name, tuple(found))
    except Exception as error:  # one check that fails does not stop the others
        check = Check(part, name, (f"{type(error).__name__}: {error}",))
    return replace(check, part=part, name=name, seconds=time.monotonic() - began)


def table(checks: Sequence[Check]) -> str:
    """The checks as lines for people."""
    rows = [(one.part, one.name, one.outcome, f"{one.seconds:.0f} s", _note(one)) for one in checks]
    widths = [max(len(row[place]) for row in [_HEAD, *rows]) for place in range(4)]
    lines = []
    for row in [_HEAD, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    return "\n".join(lines)


_HEAD = ("part", "check", "", "took", "")


def _note(check: Check) -> str:
    return check.left_out or check.said
