"""How much is measured, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows, records and rounds of each part.

    A `load` is repeated `loads` times, each in new processes. Rounds in the warm process count
    after some that do not: `warm_up` of the large ones, `step_warm_up` of the small ones. Queries
    of a table of `view_rows` rows have rounds of their own. So many files as `waiting_idle` are
    measured before the load that others may wait for. `view_shares` are shares of the records with
    pending changes beside those that have a floor. `beside_rows` are those of the tables beside
    Paimon: of which 1 % changes, and of which 10 % and 0.1 % do.
    """

    load_rows: int = 2_000_000
    load_files: int = 8
    loads: int = 3
    step_rows: int = 35_000
    step_records: int = 1_000
    step_warm_up: int = 16
    apply_rows: tuple[int, ...] = (1_000_000, 2_000_000, 6_000_000)
    apply_fraction: float = 0.01
    warm_up: int = 2
    rounds: int = 5
    reload_rows: int = 1_000_000
    waiting_rows: int = 2_000_000
    waiting_idle: int = 5
    view_rows: int = 1_000_000
    view_warm_up: int = 12
    view_rounds: int = 9
    view_shares: tuple[float, ...] = ()
    limit_rows: tuple[int, ...] = (1_000_000, 6_000_000)
    read_rows: int = 1_000_000
    beside_rows: tuple[int, int] = (6_000_000, 1_000_000)
    beside_memory: str = "2g"


#: Enough to see that all contenders get the same result.
TINY = Sizes(
    load_rows=2_000,
    load_files=2,
    loads=1,
    step_rows=500,
    step_records=50,
    step_warm_up=0,
    apply_rows=(1_000,),
    apply_fraction=0.05,
    warm_up=0,
    rounds=2,
    reload_rows=1_000,
    waiting_rows=2_000,
    waiting_idle=1,
    view_rows=1_000,
    view_warm_up=0,
    view_rounds=1,
    limit_rows=(1_000,),
    read_rows=1_000,
    beside_rows=(1_000, 1_000),
)
