"""The check of random histories sees nothing in right tables and something in wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.oracle.emit import UNAVAILABLE, debezium_lines
from tests.oracle.fold import UPSERT, Event, Version, fold
from tests.oracle.histories import Shape, captured_history, native_history, seeded
from tests.oracle.packs.datasets import Dataset, arrivals
from tests.oracle.packs.driver import RunOutcome
from tests.oracle.packs.pack import Pack, alternating
from tests.oracle.values import EPOCH, canonical

SHAPE = Shape(keys=("id", "part"), columns=("name", "amount", "note"), loads=20, truncates=5)


def _dataset(**settings: object) -> Dataset:
    events = captured_history(seeded(3), SHAPE, 30)
    return Dataset(
        "s", "t", SHAPE.keys, SHAPE.columns, arrivals(events, 3, 5), format="debezium", **settings
    )


def _views(dataset: Dataset) -> list[list[dict]]:
    """What a right engine would answer, as JSON."""
    folded = fold(dataset.landed())
    versions = folded.history()
    if dataset.coalesce:
        versions = folded.coalesced(dataset.tracked)

    def row(version: Version) -> dict:
        keys = dict(zip(dataset.keys, version.key, strict=True))
        values = {name: version.values.get(name) for name in dataset.columns}
        headers = {
            "hdr__operation": version.op,
            "hdr__deleted": version.deleted,
            "hdr__from_timestamp": version.from_ts,
            "hdr__to_timestamp": version.to_ts,
        }
        return json.loads(json.dumps(canonical({**keys, **values, **headers})))

    return [[row(v) for v in folded.current(soft=dataset.soft).values()], list(map(row, versions))]


@pytest.mark.parametrize("settings", [{}, {"soft": True}, {"coalesce": True, "tracked": ("name",)}])
def test_right_views_pass(settings: dict) -> None:
    dataset = _dataset(**settings)

    assert dataset.mismatches(_views(dataset)) == []


@pytest.mark.parametrize("view", [0, 1])
@pytest.mark.parametrize("fault", ["lost", "doubled", "value", "time"])
def test_wrong_views_are_caught(fault: str, view: int) -> None:
    dataset = _dataset()
    views = _views(dataset)
    rows = views[view]
    if fault == "lost":
        rows.pop()
    elif fault == "doubled":
        rows.append(rows[0])
    elif fault == "value":
        rows[0]["amount"] = "0.001"
    else:
        rows[-1]["hdr__from_timestamp"] = "2031-01-01T00:00:00Z"

    assert bool(dataset.mismatches(views)) == (fault != "time" or view == 1)


def test_debezium_lines_say_what_the_capture_said() -> None:
    """Key change, value that was not sent, tombstone, metadata: as in the captured samples."""
    change = Event(
        (2,), (80, 2), UPSERT, {"name": "x"}, EPOCH, unsent=frozenset({"note"}), old_key=(1,)
    )

    line, *_ = debezium_lines([change], "s", "t", ["id"])

    assert line["headers"][0] == ["__debezium.oldkey", '{"id": 1}']
    assert line["value"]["after"] == {"id": 2, "name": "x", "note": UNAVAILABLE}
    assert json.loads(line["value"]["source"]["sequence"])[0] == "80"
    assert line["value"]["transaction"]["total_order"] == 2


class _Recorder:
    """A driver that notes what was asked of it."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def run_project(self, directory: Path, apply: str = "policy") -> RunOutcome:
        self.runs.append(apply)
        return RunOutcome()

    def query(self, directory: Path, statements: object) -> list:
        return []


def test_a_pack_lands_step_by_step(tmp_path: Path) -> None:
    events = native_history(seeded(1), Shape(), 20)
    native = Dataset("n", "t", ("id",), ("name", "n"), arrivals(events, 3, 1))
    recorder = _Recorder()

    pack = Pack(tmp_path, [native.landing(), _dataset().landing()])
    pack.run(recorder, alternating)

    assert recorder.runs == ["never", "always", "never"]
    landed = sorted(path.name for path in (tmp_path / "landing" / "n" / "t").iterdir())
    assert landed == ["step0000.json", "step0001.json", "step0002.json"]
    lines = [
        json.loads(line)
        for path in (tmp_path / "landing" / "n" / "t").iterdir()
        for line in path.read_text("utf-8").splitlines()
    ]
    assert len(lines) == len(native.landed())
    task = json.loads((tmp_path / "tasks" / "s.yml").read_text("utf-8"))
    assert task["datasets"][0]["source"] == "s.t"
