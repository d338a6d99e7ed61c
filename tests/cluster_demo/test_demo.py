"""A short form of the demo: real agents, a kill, a Spot notice; and a judge that sees damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster_demo import __main__ as demo
from tests.cluster_demo import captured, judge, servers
from tests.oracle.fold import Event
from tests.oracle.packs.driver import ROOT

ONE = captured.Dataset("lines", "log", False, ("qty",), [Event(("a",), 1, "upsert", {"qty": "1"})])


@pytest.mark.spark
@pytest.mark.slow
def test_nodes_that_die_and_nodes_that_are_taken_back_lose_nothing(tmp_path: Path) -> None:
    said: list[str] = []

    assert demo.tell(tmp_path / "demo", rows=120, short=True, out=said.append) == 0, said

    text = "\n".join(said)
    assert "0 lost, 0 duplicated" in text
    # No vacuous pass: units were taken over, and handed over.
    assert "2 faults" in text
    assert " takeovers" in text
    assert " released" in text


def test_a_demo_without_kinesis_says_so_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "PROGRAM", tmp_path / "main.js")

    with servers.stream(tmp_path) as told:
        assert told.text.startswith("NO KINESIS")
        assert told.name == str(tmp_path / "stream")


def test_make_installs_what_stands_in_for_kinesis_before_the_demo() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert "\ncluster-demo: node_modules/.package-lock.json\n" in makefile


def test_the_capture_is_dealt_by_key_and_each_part_keeps_its_order() -> None:
    tables = captured.datasets(50)

    assert len(tables) == 6
    keys = [{event.key for event in one.events} for one in tables if one.keyed]
    assert not keys[0] & keys[1]
    for one in tables:
        assert len(one.events) == 50
        places = [event.sequence for event in one.events]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("rows", "lost", "surplus"),
    [([(1, "1")], 0, 0), ([], 1, 0), ([(1, "1"), (1, "1")], 0, 1), ([(1, "2")], 1, 1)],
)
def test_the_judge_sees_a_row_that_is_lost_twice_or_wrong(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, str]], lost: int, surplus: int
) -> None:
    def read(*_given: object) -> list[dict[str, object]]:
        head = {"hdr__partition": "all", "id": "a", "op": "upsert"}
        stored = [{**head, "n": n, "qty": qty} for n, qty in rows]
        return [*stored, {**head, "hdr__partition": "asset_state", "n": None, "qty": None}]

    monkeypatch.setitem(judge.READERS, "planted", read)
    monkeypatch.setattr(judge, "internal_table", lambda *_: ("s", "t"))

    (verdict,) = judge.judge(Path(), [ONE], "planted")

    assert (verdict.lost, verdict.surplus) == (lost, surplus)
