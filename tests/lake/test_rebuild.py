"""`rebuild` derives the tables from kept events, and `verify` proves that they equal their fold."""

from __future__ import annotations

from typing import Any

from polynya.engine.rebuild import RebuildResult, rebuild
from polynya.lake.verify import Verdict, verify
from tests.lake.lab import Feed, Lab, clear, drop, put

COLUMNS = ("id", "name", "city")


def lived_in(lab: Lab, **how: Any) -> Feed:
    """A dataset that keeps its events: a first load, a late event, a truncate, a pending one."""
    users = lab.feed(**{"changes_retention": "keep", "initial_load": "load/*.json", **how})
    users.land(
        *({"id": key, "name": f"n{key}", "city": "Rio"} for key in range(1, 5)), file="load/1.json"
    )
    users.apply()
    users.apply(put(1, 9, name="Anna"), drop(2, 8), put(3, 9, name="Cy"))
    users.apply(put(1, 5, name="late"), drop(3, 7))
    users.apply(clear(6), put(5, 12, name="Eve"), put(2, 20, name="Ben again"))
    users.copy(put(1, 30, name="pending"))
    return users


def again(users: Feed, **parts: Any) -> RebuildResult:
    """Rebuild, as `polynya rebuild` does."""
    return rebuild(users.lab.context(**parts), users.dataset)


def names(verdict: Verdict) -> list[str]:
    """Rules that do not hold."""
    return [finding.rule for finding in verdict.findings]


def mended(result: RebuildResult) -> tuple[int, int, int]:
    """What a rebuild mended."""
    return result.restored, result.corrected, result.surplus


def test_smoke(lab: Lab) -> None:
    users = lived_in(lab)
    verdict = verify(users.table())
    print(verdict)
    print(users.changes("id", "hdr__operation", "hdr__store"))
    assert not verdict.findings
    before = users.history(*COLUMNS)
    print(again(users))
    assert users.history(*COLUMNS) == before
    print(verify(users.table()))
    print(again(users))
