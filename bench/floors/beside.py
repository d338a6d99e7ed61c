"""Applies beside Paimon's merge-on-read, and history beside SCD2 by hand, as floors.

Each contender has a process of its own, as in `make bench-peers`, which has other sizes, and
24,000,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.floors.floor import Measured
from bench.floors.sizes import Sizes
from bench.peers import measure as peers
from bench.peers.contenders import CONTENDERS
from bench.peers.measure import Start
from bench.peers.process import Process
from bench.plots import apply_points

_BY_NAME = {one.name: one for one in CONTENDERS}


@dataclass(frozen=True, slots=True)
class Case:
    """Two contenders, the first one ours, on a table of which a share changes."""

    ours: str
    peer: str
    rows: int
    share: float
    at_least: float

    @property
    def count(self) -> int:
        """Events in a file."""
        return max(1, round(self.rows * self.share))


def cases(sizes: Sizes) -> tuple[Case, ...]:
    """What has a floor."""
    large, small = sizes.beside_rows
    return (
        Case("polynya", "paimon-mor", large, 0.01, 1.0),
        Case("polynya", "paimon-mor", small, 0.1, 1.0),
        Case("polynya", "paimon-mor", small, 0.001, 1.0),
        Case("polynya-history", "iceberg-scd2", small, 0.01, 4.0),
    )


def measure(folder: Path, case: Case, sizes: Sizes, start: Start = Process) -> Iterator[Measured]:
    """Both take in the same files in turns; no line where one of them cannot be run.

    Raises AssertionError for a wrong row.
    """
    chosen = [_BY_NAME[case.ours], _BY_NAME[case.peer]]
    own = peers.Sizes(
        rows=case.rows,
        count=case.count,
        warm_up=sizes.warm_up,
        rounds=sizes.rounds,
        memory=sizes.beside_memory,
    )
    results = list(peers.measure(chosen, own, folder / case.peer, start))
    for one in results:
        if one.failed:
            print(f"{one.contender.what}: not measured: {one.failed}", flush=True)
            return
        assert one.wrong == 0, f"{one.contender.what}: {one.wrong} wrong rows"
    ours, peer = results
    yield Measured(
        f"{case.count:,} changes on {case.rows:,} rows, {ours.contender.what}",
        ours.seconds,
        peer.seconds,
        peer.contender.what,
        case.at_least,
        f"`make bench-peers`, heap {own.memory}, median of {own.rounds} rounds after "
        f"{own.warm_up}, in turns",
        points=[
            point
            for one in results
            for point in apply_points(
                one.contender.name, rows=case.rows, count=case.count, seconds=one.seconds
            )
        ],
    )
