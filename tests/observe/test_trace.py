"""`POLYNYA_TRACE`: where the time of a run goes, as a file that Perfetto shows."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.tracing import trace_session
from polynya.observe import trace
from polynya.observe.trace import count, span
from tests.lab.lab import Lab, put

Event = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A trace that ends with the test."""
    trace.begin(str(tmp_path / "trace.json"))
    yield tmp_path / "trace.json"
    trace.end()


def spans(file: Path) -> list[Event]:
    trace.end()
    events = json.loads(file.read_text())
    return [event for event in events if event["ph"] == "X"]


def own(file: Path) -> list[Event]:
    """Spans of the threads of this test: one that an earlier test left may write others."""
    found = spans(file)
    named = [event for event in json.loads(file.read_text()) if event["name"] == "thread_name"]
    names = {event["tid"]: event["args"]["name"] for event in named}
    return [
        one for one in found if names[one["tid"]] in (threading.current_thread().name, "copier")
    ]


def test_a_span_lies_in_the_one_that_was_open_and_has_what_was_counted_in_it(file: Path) -> None:
    @span("read", dataset=lambda feed: feed.name)
    def read(feed: SimpleNamespace) -> None:
        count("files", 2)

    with span("step", task="shop"):
        read(SimpleNamespace(name="shop.users"))
        count("files")

    inner, outer = own(file)

    assert (inner["name"], inner["args"]) == ("read", {"dataset": "shop.users", "files": 2})
    assert (outer["name"], outer["args"]) == ("step", {"task": "shop", "files": 3})
    assert holds(outer, inner)


def test_each_thread_has_a_track_with_its_name(file: Path) -> None:
    def work() -> None:
        with span("copy"):
            pass

    with span("run"):
        other = threading.Thread(target=work, name="copier")
        other.start()
        other.join()

    copy, run = own(file)

    assert copy["tid"] != run["tid"]
    named = [event for event in json.loads(file.read_text()) if event["name"] == "thread_name"]
    assert {event["tid"]: event["args"]["name"] for event in named}[copy["tid"]] == "copier"


def test_a_span_says_that_it_failed(file: Path) -> None:
    with pytest.raises(ValueError), span("read"):
        raise ValueError

    assert own(file)[0]["args"] == {"error": "ValueError"}


def test_a_process_that_is_killed_leaves_all_but_the_end_of_the_array(file: Path) -> None:
    with span("first"):
        pass

    left = file.read_text()

    with pytest.raises(json.JSONDecodeError):
        json.loads(left)
    events = json.loads(left + "]")
    (here,) = {event["tid"] for event in events if event["name"] == "first"}
    mine = [event["name"] for event in events if event["tid"] == here]
    assert mine == ["first", "thread_name"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_ends_the_trace_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="polynya")
    trace.begin("/dev/full")

    with span("step"), span("copy"):
        pass

    assert not trace.is_on()
    assert "the trace ends here" in caplog.text


def test_without_a_trace_nothing_is_written_and_nothing_counted(tmp_path: Path) -> None:
    trace.begin(None)

    with span("step") as step:
        count("files")

    assert step.args == {}
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(trace.VARIABLE, str(tmp_path / "nowhere" / "trace.json"))

    assert main(["run", "--once", "--project", str(tmp_path)]) == 2

    said = capsys.readouterr().err
    assert "error[POLYNYA-RUN-003]: the trace cannot be written" in said
    assert "nothing was started" in said


def test_a_run_leaves_its_phases_its_calls_and_its_jobs(
    lab: Lab, spark: SparkSession, tmp_path: Path
) -> None:
    users = lab.feed()
    users.apply(*(put(key, key, name="x") for key in range(5)))
    trace.begin(str(tmp_path / "trace.json"))
    trace_session(spark)

    # A late event takes a query, and a query jobs.
    users.apply(put(4, 1, name="y"))

    found = spans(tmp_path / "trace.json")
    ours = [event for event in found if event["cat"] == "polynya"]
    every = [event for event in ours if event["name"] == "step"]
    tidying = [one for one in every if one["args"]["dataset"].endswith(" (maintenance)")]
    steps = [one for one in every if one not in tidying]
    # The table was looked at once, in few calls.
    assert [one["args"]["py4j_calls"] <= 10 for one in tidying] == [True]
    copying, applying = (
        {event["name"] for event in ours if event is not step and holds(step, event)}
        for step in sorted(steps, key=lambda step: step["ts"])
    )
    named = {"look", "read", "read columns", "copy", "derive in memory", "write files", "commit"}
    assert named <= copying
    assert {"look", "apply", "fold", "write files", "commit"} <= applying
    assert all(holds(*pair) or apart(*pair) for pair in pairs(ours))
    assert {step["args"]["dataset"] for step in steps} == {f"{lab.schema}.users"}
    assert all(step["args"]["py4j_calls"] > 10 for step in steps)
    assert sum(step["args"]["files_written"] for step in steps) >= 3
    jobs = [event for event in found if event["cat"] == "spark"]
    assert jobs
    assert {job["args"]["dataset"] for job in jobs} == {f"{lab.schema}.users"}


def pairs(events: list[Event]) -> Iterator[tuple[Event, Event]]:
    """Every two spans of one thread, the one that began first before the other."""
    events = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
    for first, other in itertools.combinations(events, 2):
        if first["tid"] == other["tid"]:
            yield first, other


def holds(outer: Event, inner: Event) -> bool:
    began, ended = outer["ts"], outer["ts"] + outer["dur"]
    same = outer["tid"] == inner["tid"]
    return same and began <= inner["ts"] and inner["ts"] + inner["dur"] <= ended


def apart(first: Event, second: Event) -> bool:
    return first["ts"] + first["dur"] <= second["ts"]
