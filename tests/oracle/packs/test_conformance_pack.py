"""The packs of conformance cases: a right engine passes, a wrong one does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import Case, covered
from tests.oracle.expect import current_rows, history_rows
from tests.oracle.fold import fold
from tests.oracle.packs.conformance import Group, groups, pack, quarantined
from tests.oracle.values import canonical


def _answer(group: Group) -> list[dict]:
    """What a right engine answers to the group's statement."""
    rows = []
    for case in group.cases:
        events = [
            case.event(group.shifted(case, row), load=load)
            for load, some in ((True, case.seed), (False, case.rows))
            for row in some
        ]
        shown = (
            history_rows(case, fold(events)) if case.history else current_rows(case, fold(events))
        )
        rows += [dict(zip(case.out_cols, canonical(row), strict=True)) for row in shown]
    return rows


@pytest.mark.parametrize("variation", VARIATIONS)
def test_right_answers_pass_and_wrong_ones_do_not(variation: str) -> None:
    for group in groups(variation, alone=variation == "given"):
        rows = _answer(group)

        assert group.mismatches(rows) == []
        assert rows == [] or group.mismatches(rows[1:])
        assert rows == [] or group.mismatches([*rows, rows[0]])


def test_every_case_lands_once_per_variation(tmp_path: Path) -> None:
    all_groups = {name: groups(name, alone=name == "given") for name in VARIATIONS}
    for several in all_groups.values():
        assert sorted(case.id for group in several for case in group.cases) == sorted(
            case.id for case in covered()
        )
        assert quarantined(several) == sum(case.quarantined for case in covered()) > 0

    landed = pack(tmp_path, all_groups)
    landed.write_project()
    for step in range(landed.steps):
        landed.land(step)

    single = tmp_path / "landing" / "single"
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in single.rglob("*.json"))
    native = [case for case in covered() if case.unmodified is None]
    assert lines == sum(len(case.rows) + len(case.seed) for case in native)
    assert max(map(_events, native)) == landed.steps


def test_cases_that_share_a_dataset_keep_apart_by_key(tmp_path: Path) -> None:
    shared = [group for group in groups("reversed", alone=False) if len(group.cases) > 1]
    group = max(shared, key=lambda group: len(group.cases))
    first, second = group.cases[:2]

    keys = {group.shifted(case, case.rows[0])[case.keys[0]] for case in (first, second)}

    assert len(keys) == 2
    assert json.loads(json.dumps(group.landing().settings))["keys"] == list(first.keys)


def _events(case: Case) -> int:
    return len(case.rows)
