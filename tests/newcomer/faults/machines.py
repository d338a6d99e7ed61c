"""Machines that are broken: what a command says, and the tables after the fix that it names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.newcomer.checks import Check, Trial
from tests.newcomer.faults.ground import RUN, Ground
from tests.newcomer.faults.judging import Wanted, problems, unseemly
from tests.newcomer.faults.places import can_mount, enlarge, on_small_disk, read_only
from tests.oracle.packs.read_back import internal_table, metadata_location

PART: Final = "machines"
_GARBAGE: Final = b"this is no catalog " * 300
_ASCII: Final = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "LANG": "C"}
_ALPHA: Final = "\N{GREEK SMALL LETTER ALPHA}"
_GREEK: Final = ("query", f"SELECT '{_ALPHA}' AS letter")
_READING: Final = (("status",), ("plan",), ("query", "SELECT 1 AS one"))


@dataclass(frozen=True)
class Case:
    """A fault, what is said of it, and how many commands the fix names.

    Attributes:
        spoil: does the damage.
        wanted: how `run --once` ends.
        fixes: so many commands the error has to name; they are run as they stand.
        extra: environment in which the fault is; to leave it is the fix.
        also: other commands that have to say the same.
        doctor: the check of `doctor` that has to fail.
    """

    name: str
    wanted: Wanted
    spoil: Callable[[Ground], object] = lambda _: None
    fixes: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)
    also: tuple[tuple[str, ...], ...] = ()
    doctor: str = ""


def _catalog(content: Callable[[bytes], bytes]) -> Callable[[Ground], object]:
    return lambda ground: ground.catalog.write_bytes(content(ground.catalog.read_bytes()))


def _without_metadata(ground: Ground) -> None:
    Path(metadata_location(ground.folder, *internal_table("shop", "orders"))).unlink()


_DAMAGED: Final = Wanted(4, ("POLYNYA-LAKE-040",))
_LOST: Final = Wanted(1, ("POLYNYA-LAKE-041",))
_HEAP: Final = Wanted(2, ("POLYNYA-CFG-031",))
CASES: Final = (
    Case(
        "catalog.db is garbage",
        _DAMAGED,
        _catalog(lambda _: _GARBAGE),
        fixes=1,
        also=_READING,
        doctor="catalog",
    ),
    Case(
        "catalog.db is cut to a half",
        _DAMAGED,
        _catalog(lambda text: text[: len(text) // 2]),
        fixes=1,
        doctor="catalog",
    ),
    Case(
        "catalog.db is cut in its header",
        _DAMAGED,
        _catalog(lambda text: text[:60]),
        fixes=1,
        doctor="catalog",
    ),
    Case(
        "catalog.db is empty",
        _LOST,
        _catalog(lambda _: b""),
        fixes=1,
        also=_READING,
        doctor="catalog",
    ),
    Case(
        "catalog.db is gone",
        _LOST,
        lambda ground: ground.catalog.unlink(),
        fixes=1,
        doctor="catalog",
    ),
    Case(
        "metadata is missing",
        Wanted(1, ("POLYNYA-LAKE-043",)),
        _without_metadata,
        fixes=1,
        also=(("status",), ("verify",), ("query", "SELECT count(*) FROM shop.orders")),
        doctor="catalog",
    ),
    Case(
        "POLYNYA_DRIVER_MEMORY=lots",
        _HEAP,
        extra={"POLYNYA_DRIVER_MEMORY": "lots"},
        doctor="memory",
    ),
    Case(
        "POLYNYA_DRIVER_MEMORY=64m",
        _HEAP,
        extra={"POLYNYA_DRIVER_MEMORY": "64m"},
        doctor="memory",
    ),
)
#: KiB that are left: too little for the catalog, for a file, for what follows it.
_ROOMS: Final = (0, 24, 200)


def trials(ground: Ground) -> Iterator[Trial]:
    """Each fault by itself."""
    for case in CASES:
        yield Trial(PART, case.name, partial(_broken, ground, case))
    for room in _ROOMS:
        yield Trial(PART, f"disk full, {room} KiB left", partial(_full, ground, room))
    for name, work in (
        ("read-only warehouse", _read_only),
        ("read-only landing folder", _read_only_landing),
        ("ASCII terminal", _ascii),
        ("copied project", _copied),
        ("moved project", _moved),
        ("warehouse deleted between runs", _deleted),
    ):
        yield Trial(PART, name, partial(work, ground))


def _broken(ground: Ground, case: Case) -> list[str]:
    ground.restore()
    case.spoil(ground)
    found = []
    for verb in case.also:
        found += problems(ground.call(*verb, extra=case.extra), case.wanted)
    printed = ground.call(*RUN, extra=case.extra)
    found += problems(printed, case.wanted)
    if case.doctor:
        found += _unseen_by_doctor(ground, case)
    found += ground.fixed_by(printed, case.fixes)
    return [*found, *ground.goes_on()]


def _unseen_by_doctor(ground: Ground, case: Case) -> list[str]:
    """The fault has to be a failed check of its name, with a fix, and nothing unseemly."""
    printed = ground.call("doctor", "--json", extra=case.extra)
    lines = [json.loads(line) for line in printed.output.splitlines()]
    failed = {one["name"]: one for one in lines if one.get("status") == "fail"}
    found = unseemly(printed.output + printed.errors)
    if case.doctor not in failed:
        found.append(f"doctor does not find it (`{case.doctor}`):\n{printed.output}")
    elif not failed[case.doctor]["fix"]:
        found.append(f"doctor names no fix: {failed[case.doctor]}")
    return found


def _full(ground: Ground, room: int) -> Check | list[str]:
    if not can_mount():
        return _left_out()
    ground.restore()
    kept = ground.folder.with_name("kept")
    printed = ground.call(*RUN, within=on_small_disk(ground.warehouse, room, kept))
    enlarge(ground.warehouse, kept)
    found = problems(printed, Wanted(4, ("POLYNYA-DEP-011",)))
    return [*found, *ground.goes_on()]


def _read_only(ground: Ground) -> Check | list[str]:
    if not can_mount():
        return _left_out()
    ground.restore()
    within = read_only(ground.warehouse)
    found = problems(ground.call(*RUN, within=within), Wanted(4, ("POLYNYA-DEP-010",)))
    found += problems(ground.call("status", within=within), Wanted(0))
    return [*found, *ground.goes_on()]


def _read_only_landing(ground: Ground) -> Check | list[str]:
    """Nothing is written where the files land."""
    if not can_mount():
        return _left_out()
    ground.restore()
    within = read_only(ground.folder / "landing")
    found = problems(ground.call(*RUN, within=within), Wanted(0))
    return [*found, *ground.goes_on()]


def _ascii(ground: Ground) -> list[str]:
    ground.restore()
    found = problems(ground.call(*RUN, extra=_ASCII), Wanted(0))
    found += problems(ground.call("status", extra=_ASCII), Wanted(0))
    found += problems(ground.call(*_GREEK, extra=_ASCII), Wanted(2, ("POLYNYA-CLI-010",)))
    utf8 = {**_ASCII, "PYTHONIOENCODING": "utf-8"}
    found += problems(ground.call(*_GREEK, extra=utf8), Wanted(0, says=(_ALPHA,)))
    found += problems(ground.call(*_GREEK, "--json", extra=_ASCII), Wanted(0, says=("\\u03b1",)))
    return [*found, *ground.goes_on()]


def _copied(ground: Ground) -> list[str]:
    """The copy is refused until it has adopted its tables; the original is not touched."""
    ground.restore()
    copy = ground.at("copy")
    shutil.copytree(ground.folder, copy.folder, symlinks=True)
    before = _content(ground.warehouse)
    found = _adopted(copy)
    if _content(ground.warehouse) != before:
        found.append("the warehouse of the original was changed")
    shutil.rmtree(copy.folder)
    return [*found, *ground.goes_on()]


def _moved(ground: Ground) -> list[str]:
    ground.restore()
    moved = ground.at("moved")
    ground.folder.rename(moved.folder)
    found = _adopted(moved)
    shutil.rmtree(moved.folder)
    return found


def _adopted(ground: Ground) -> list[str]:
    wanted = Wanted(1, ("POLYNYA-LAKE-042",))
    found = []
    for verb in _READING:
        found += problems(ground.call(*verb), wanted)
    printed = ground.call(*RUN)
    found += problems(printed, wanted)
    return [*found, *ground.fixed_by(printed, 1), *ground.goes_on()]


def _deleted(ground: Ground) -> list[str]:
    """All that landed is still there: the next run does everything again."""
    ground.restore()
    shutil.rmtree(ground.warehouse)
    return [*problems(ground.call("status"), Wanted(0)), *ground.goes_on()]


def _content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _left_out() -> Check:
    return Check(PART, "", left_out="no mount namespaces for this user on this machine")
