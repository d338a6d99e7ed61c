"""What landed and the tables, read by DuckDB, beside what was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.packs.read_back import internal_table, read_duckdb
from tests.streams_demo import truth
from tests.streams_demo.messages import KINDS, Message
from tests.streams_demo.project import SCHEMA, STREAM
from tests.streams_demo.truth import Row

Stored = Sequence[Mapping[str, Any]]

_LINES = ("hdr__partition", "hdr__quarantine", *truth.LINES)
_TIMES = ("hdr__from_timestamp", "hdr__to_timestamp")
_USERS = ("hdr__partition", "hdr__quarantine", "hdr__operation", *_TIMES, *truth.USERS)


@dataclass(frozen=True)
class Verdict:
    """What was compared: rows that have to be there, those that are lost, doubled, or wrong.

    A row is wrong that nobody wrote, such as a version with another end; what it should have been
    is lost then.
    """

    name: str
    wanted: int
    found: int
    lost: int
    doubled: int
    wrong: int

    @property
    def holds(self) -> bool:
        """Whether all of it is right."""
        return not (self.lost or self.doubled or self.wrong)


def judge(folder: Path, source: str, written: Sequence[Message]) -> list[Verdict]:
    """All that became of the messages of a source."""
    lines = read_duckdb(folder, *internal_table(SCHEMA, f"{source}_lines"), _LINES)
    users = read_duckdb(folder, *internal_table(SCHEMA, f"{source}_users"), _USERS)
    return verdicts(source, written, landed_values(folder, source), lines, users)


def verdicts(
    source: str, written: Sequence[Message], landed: Iterable[bytes], lines: Stored, users: Stored
) -> list[Verdict]:
    """The same of rows at hand."""
    compared = {
        "landed messages": (truth.landed(written), ((value,) for value in landed)),
        "lines, appended": (truth.lines(written), _plain(lines)),
        "lines, quarantine": (truth.quarantine(written, keyed=False), _refused(lines)),
        "users, current": (truth.current(written), _versions(users, "current")),
        "users, history": (truth.versions(written), _versions(users, "current", "prior")),
        "users, quarantine": (truth.quarantine(written, keyed=True), _refused(users)),
    }
    return [_verdict(f"{source} {name}", *both) for name, both in compared.items()]


def landed_values(folder: Path, source: str) -> list[bytes]:
    """The messages in the landed batches of a source."""
    return [row[0] for row in _landed(folder, source, "value")]


def shards(folder: Path) -> int:
    """Shards of which records landed."""
    return len({*_landed(folder, "kinesis", "hdr__kinesis_shard")})


def _landed(folder: Path, source: str, column: str) -> list[Row]:
    import duckdb

    batches = str(folder / "landing" / source / STREAM / "batch-*.parquet")
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {column} FROM read_parquet(?)", [batches]).fetchall()


def _verdict(name: str, wanted: Iterable[Row], found: Iterable[Row]) -> Verdict:
    right, there = Counter(wanted), Counter(found)
    lost, surplus = right - there, there - right
    doubled = sum(count for row, count in surplus.items() if row in right)
    wrong = surplus.total() - doubled
    return Verdict(name, right.total(), there.total(), lost.total(), doubled, wrong)


def _plain(stored: Stored) -> Iterator[Row]:
    for row in stored:
        if row["hdr__partition"] not in ("asset_state", "quarantine"):
            yield tuple(row[name] for name in truth.LINES)


def _versions(stored: Stored, *parts: str) -> Iterator[Row]:
    for row in stored:
        if row["hdr__partition"] in parts:
            values = [row[name] for name in truth.USERS[1:]]
            times = [row[name] for name in _TIMES]
            yield row["user_id"], row["hdr__operation"], *times, *values
        elif row["hdr__partition"] == "changes":
            yield "not applied", row["user_id"], row["n"]


def _refused(stored: Stored) -> Iterator[Row]:
    for row in stored:
        if row["hdr__partition"] == "quarantine":
            # Before the message stands a line with what the source says of it.
            _, _, value = row["hdr__quarantine"]["raw"].partition(b"\n")
            rule = row["hdr__quarantine"]["rule"]
            yield KINDS.get(rule, rule), value
