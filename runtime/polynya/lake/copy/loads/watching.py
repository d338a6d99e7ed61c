"""How far the tasks of a load have come, told while Spark waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.formats.loads import LoadPlan, Report

_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class SoFar:
    """What the tasks of a plan have read and what is left of it: `left_files` not wholly."""

    rows: int
    read_bytes: int
    left_bytes: int
    left_files: int


#: Is told how far a load has come.
TellSoFar: TypeAlias = Callable[[SoFar], None]


def so_far(plan: LoadPlan, reports: Mapping[int, Report]) -> SoFar:
    """How far a plan has come, of whose splits these have their report."""
    left = [split for split in plan.splits if split.number not in reports]
    left_bytes = sum(split.size for split in left)
    return SoFar(
        rows=sum(report.records for report in reports.values()),
        read_bytes=sum(split.size for split in plan.splits) - left_bytes,
        left_bytes=left_bytes,
        left_files=len({split.file for split in left}),
    )


@contextmanager
def watched(
    plan: LoadPlan, reports: Callable[[], Mapping[int, Report]], tell: TellSoFar
) -> Iterator[None]:
    """Tell how far a plan has come whenever tasks ended, until the end of the block."""
    over = threading.Event()

    def watch() -> None:
        known = 0
        while not over.wait(_LOOK_SECONDS):
            found = dict(reports())
            if len(found) > known:
                known = len(found)
                tell(so_far(plan, found))

    thread = threading.Thread(target=watch, name="load", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
