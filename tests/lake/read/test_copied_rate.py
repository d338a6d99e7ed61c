"""How fast a dataset is copied, by what the snapshots of its newest copies say."""

from __future__ import annotations

from polynya.lake.read.inspect import RATE_COPIES, copied_per_second


def rate(*snapshots: tuple[float, int | None]) -> float | None:
    """Of snapshots at some seconds, each with the records of a copy; None: it was no copy."""
    return copied_per_second(
        [
            {
                "timestamp-ms": int(1000 * at),
                "summary": {} if rows is None else {"polynya.rows-in": str(rows)},
            }
            for at, rows in snapshots
        ]
    )


def test_the_records_after_the_first_of_the_newest_copies_count() -> None:
    slow = [(float(at), 1) for at in range(100)]
    fast = [(100.0 + at, 50) for at in range(1 + RATE_COPIES)]

    assert rate((0, 9), (10, 20), (15, None), (20, 40)) == 3.0
    assert rate(*slow, *fast) == 50.0


def test_one_copy_has_no_rate() -> None:
    assert rate() is None
    assert rate((0, 9), (4, None)) is None
