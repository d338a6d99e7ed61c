"""All that a source gives once more, read as a reload does."""

from __future__ import annotations

from polynya.streams.source import Again, LandingLimits


def read_all(again: Again, limits: LandingLimits) -> tuple[list[bytes], list[str]]:
    """The messages, and why some are lost, as often as it is told."""
    values: list[bytes] = []
    lost: list[str] = []
    position = again.begin
    while True:
        wanted = again.stream.next(again.streams, position, limits, once=True)
        lost += [one.why for one in wanted.lost]
        if wanted.is_nothing:
            return values, lost
        if wanted.records:
            taken = again.stream.read(wanted, limits)
            values += taken.rows["value"].to_pylist()
            position = taken.end
        else:
            position = wanted.end
