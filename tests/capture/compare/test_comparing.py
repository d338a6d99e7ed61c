"""A table and its Current, still and while it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.capture.compare.compare import ComparedTable, ComparisonResult, TableComparison
from polynya.capture.compare.digest import (
    ComparedColumn,
    TextForm,
    digest_keys,
    digest_ranges,
    digest_rows,
)
from polynya.capture.compare.ranges import DifferingRow, Fault, RowState
from polynya.model.types import BIGINT, STRING, DataType

COLUMNS = (ComparedColumn("id", TextForm.WHOLE), ComparedColumn("name", TextForm.TEXT))
Rows = dict[int, str]


def batches_of(rows: Mapping[int, str]) -> list[pa.RecordBatch]:
    ids, names = pa.array(list(rows), pa.int64()), pa.array(list(rows.values()), pa.string())
    return pa.table({"id": ids, "name": names}).to_batches(max_chunksize=3)


class World:
    """A table and its Current. `meanwhile` is done after each look at Current."""

    def __init__(self, source: Rows, current: Rows | None = None, *, versions: bool = True) -> None:
        self.source = dict(source)
        self.current = dict(source if current is None else current)
        self.versions: dict[int, int] = dict.fromkeys(source, 0)
        self.has_versions, self.moments, self.looks = versions, 0, 0
        self.meanwhile: Callable[[World], None] = lambda _: None

    def change(self, key: int, name: str | None) -> None:
        """Change a row of the source; Current has it at once, as a capture that is ahead."""
        for side in (self.source, self.current):
            if name is None:
                side.pop(key, None)
            else:
                side[key] = name
        self.versions[key] = self.versions.get(key, 0) + 1

    def moment(self) -> Snapshot:
        self.moments += 1
        return Snapshot(self)

    def columns(self) -> Mapping[str, DataType]:
        return {"id": BIGINT, "name": STRING}

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        assert list(columns) == ["id", "name"]
        self.looks += 1
        yield from batches_of(dict(self.current))
        self.meanwhile(self)


class Snapshot:
    """The source as it was."""

    position = "0/1"

    def __init__(self, world: World) -> None:
        self.rows_then, self.world = dict(world.source), world
        self.versions = dict(world.versions)

    def is_reached(self, offset: Any) -> bool:
        return True

    def columns(self, table: str) -> tuple[ComparedColumn, ...]:
        return COLUMNS

    def count(self, table: str, where: str | None) -> int:
        return len(self.rows_then)

    def ranges(self, table: str, layout: Any, bits: int, where: str | None) -> Any:
        return digest_ranges(batches_of(self.rows_then), layout, bits)

    def rows(self, table: str, layout: Any, bits: int, ranges: Any, where: str | None) -> Any:
        found = digest_rows(batches_of(self.rows_then), layout, bits, ranges)
        return self._versioned(found)

    def keys(self, table: str, layout: Any, keys: Any, where: str | None) -> Any:
        return self._versioned(digest_keys(batches_of(self.rows_then), layout, keys))

    def close(self) -> None:
        pass

    def _versioned(self, rows: dict[str, RowState]) -> dict[str, RowState]:
        if not self.world.has_versions:
            return rows
        return {
            key: RowState(one.key, one.digest, one.copies, f"v{self.versions[int(one.key)]}")
            for key, one in rows.items()
        }


def compare(world: World, key: tuple[str, ...] = ("id",)) -> ComparisonResult:
    comparison = TableComparison(world, world.moment(), wait=lambda _: None)
    return comparison.compare(ComparedTable("public.t", "shop.t", key), world)


def test_equal_tables_have_no_difference_after_one_look():
    world = World({n: f"n{n}" for n in range(100)})

    verdict = compare(world)

    assert (verdict.differences, verdict.undecided, verdict.is_whole) == ((), (), True)
    assert (verdict.source_rows, verdict.current_rows, world.looks) == (100, 100, 1)


def test_rows_that_differ_are_named_by_their_keys():
    rows = {n: f"n{n}" for n in range(100)}
    current = {n: ("other" if n == 7 else name) for n, name in rows.items() if n != 8} | {200: "x"}

    verdict = compare(World(rows, current))

    assert verdict.differences == (
        DifferingRow("200", Fault.SURPLUS, 0, 1),
        DifferingRow("7", Fault.DIFFERENT, 1, 1),
        DifferingRow("8", Fault.MISSING, 1, 0),
    )


def test_a_row_that_is_twice_in_current_differs():
    world = World({1: "a", 2: "b"})
    world.batches = lambda _: batches_of({1: "a", 2: "b"}) + batches_of({2: "b"})  # type: ignore[method-assign]

    assert compare(world).differences == (DifferingRow("2", Fault.DIFFERENT, 1, 2),)


def test_current_that_is_ahead_of_the_moment_is_no_difference():
    world = World(dict.fromkeys(range(50), "a"))
    first = world.moment()
    for n in range(0, 50, 5):
        world.change(n, "b")

    verdict = TableComparison(world, first, lambda _: None).compare(
        ComparedTable("public.t", "shop.t", ("id",)), world
    )

    assert (verdict.differences, verdict.undecided) == ((), ())


def test_a_row_that_changes_whenever_it_is_looked_at_stays_undecided():
    world = World({1: "a", 2: "b"}, {1: "a", 2: "b"})
    first = world.moment()
    world.change(1, "c")
    count = iter(range(100))
    world.meanwhile = lambda one: one.change(1, f"c{next(count)}")
    held = dict(world.current)
    world.batches = lambda _: _changing(world, held)  # type: ignore[method-assign]

    verdict = TableComparison(world, first, lambda _: None).compare(
        ComparedTable("public.t", "shop.t", ("id",)), world
    )

    assert verdict.undecided == ("1",)
    assert verdict.differences == ()


def _changing(world: World, held: Rows) -> Iterator[pa.RecordBatch]:
    """Current ahead of every moment: what it shows changes before and after each look."""
    world.meanwhile(world)
    yield from batches_of(dict(world.current))
    world.meanwhile(world)


def test_a_difference_is_found_among_rows_that_change():
    world = World(dict.fromkeys(range(50), "a"), {n: "a" for n in range(50) if n != 13})
    count = iter(range(10_000))
    world.meanwhile = lambda one: [one.change(n, f"b{next(count)}") for n in range(20, 30)]

    verdict = compare(world)

    assert verdict.differences == (DifferingRow("13", Fault.MISSING, 1, 0),)


def test_without_versions_a_difference_has_to_be_seen_twice():
    world = World({1: "a"}, {1: "b"}, versions=False)

    assert compare(world).differences == (DifferingRow("1", Fault.DIFFERENT, 1, 1),)
    assert world.moments == 3


def test_without_a_key_rows_are_counted():
    world = World({1: "a", 2: "a"}, {1: "a", 3: "a"}, versions=False)

    verdict = compare(world, key=())

    assert [(one.fault, one.source, one.current) for one in verdict.differences] == [
        (Fault.MISSING, 1, 0),
        (Fault.SURPLUS, 0, 1),
    ]


NAMES = st.dictionaries(st.integers(0, 40), st.text("ab", max_size=2), max_size=30)


@settings(max_examples=12)
@given(NAMES, NAMES)
def test_the_differences_are_those_of_the_rows(source, current):
    verdict = compare(World(source, current))

    wanted = {n for n in source.keys() | current.keys() if source.get(n) != current.get(n)}
    assert {int(one.key) for one in verdict.differences} == wanted
    assert verdict.is_whole
