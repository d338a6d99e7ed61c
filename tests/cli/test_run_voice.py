"""What a run says: that it began, what goes on, what failed, what it did. Without Spark."""

from __future__ import annotations

import io
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from polynya.cli import output
from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.logs import logging_as
from polynya.cli.main import main
from polynya.cli.options import GlobalOptions
from polynya.cli.output import JsonOutput, Steps, TextOutput
from polynya.cli.run import run
from polynya.engine.context import EngineContext
from polynya.engine.unit import IDLE, StepResult, TimeSlice, Unit
from polynya.model.errors import ConflictError, DependencyError, SuspendedError
from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.observe.events import Event, StepEnded, StepProgress
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.lab.lab import STARTED
from tests.projects import USERS, write_project

SUSPENDED = SuspendedError(
    "POLYNYA-LAKE-017", "shop.towns is suspended", fix="polynya dataset resume users towns"
)
LOST = DependencyError("POLYNYA-DEP-005", "the warehouse is gone", fix="bring it back")

Step = Callable[[EngineContext, TimeSlice], StepResult]


def copied(name: str, *, out: int = 2, quarantined: int = 0) -> BatchCopied:
    return BatchCopied(
        subject=name,
        rows_in=out + quarantined,
        rows_out=out,
        rows_filtered=0,
        rows_quarantined=quarantined,
        files=1,
        seconds=2.0,
    )


def saying(*events: Event, ended: StepResult = IDLE) -> Step:
    """A unit that says these things in its first turn."""
    left = list(events)

    def step(context: EngineContext, _turn: TimeSlice) -> StepResult:
        while left:
            context.sink(left.pop(0))
        return ended

    return step


@dataclass
class Shop:
    """A project whose units are made up. The engine around them is the real one."""

    folder: Path
    units: dict[str, Step] = field(default_factory=dict)
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    def run(self, *, json: bool = False, quiet: bool = False, **how: Any) -> int:
        options = GlobalOptions(no_color=True, project=self.folder, json=json, quiet=quiet)
        output = (JsonOutput if json else TextOutput)(options, self.out, self.err)
        return run(context=CommandContext(options, output), **{"once": True, **how})

    @property
    def said(self) -> list[str]:
        return self.err.getvalue().splitlines()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(write_project(tmp_path, users=USERS))

    def start(*_: object, sink: Callable[[Event], None], **__: object) -> EngineContext:
        spark: Any = None
        return EngineContext(spark, MemoryObjectStore(), sink=sink)

    def units(context: EngineContext, _tasks: object) -> list[Unit]:
        return [
            Unit(name, "users", lambda turn, step=step: step(context, turn))  # type: ignore[misc]
            for name, step in made.units.items()
        ]

    monkeypatch.setattr("polynya.engine.collaborators.start_engine", start)
    monkeypatch.setattr("polynya.engine.runner.units", units)
    monkeypatch.setattr("polynya.cli.stopping.signal.signal", lambda *_: None)
    return made


def test_a_run_says_that_it_began_and_what_it_did(shop: Shop) -> None:
    applied = DatasetApplied(
        subject="shop.users",
        reason="asked to",
        seconds=1.0,
        rows={"events": 2, "current": 2, "prior": 0, "removed": 0},
    )
    shop.units = {"shop.users": saying(copied("shop.users"), applied)}

    assert shop.run() == 0

    assert shop.said[:3] == [
        "start    shop: target local, 1 task",
        "copied   shop.users: 2 of 2 records in 2.0 s (1/s)",
        "applied  shop.users: 2 changes, 2 rows written, 0 removed in 1.0 s (asked to)",
    ]
    assert shop.said[3].startswith("done     shop: 2 of 2 records copied, 1 dataset applied in ")
    assert len(shop.said) == 4


def test_a_run_that_found_nothing_says_so(shop: Shop) -> None:
    shop.units = {"shop.users": saying()}

    assert shop.run() == 0

    assert shop.said[-1].startswith("done     shop: nothing new, in ")


def test_what_went_wrong_is_said_at_once_and_again_in_a_table(shop: Shop) -> None:
    shop.units = {
        "shop.lost": saying(ended=StepResult(failure=LOST)),
        "shop.towns": saying(ended=StepResult(refused=SUSPENDED)),
        "shop.users": saying(copied("shop.users", out=0, quarantined=3)),
        "shop.well": saying(copied("shop.well")),
    }

    assert shop.run() == LOST.exit_code

    text = shop.err.getvalue()
    at_once, _, closing = text.partition("┏")
    assert "error[POLYNYA-DEP-005]: the warehouse is gone" in at_once
    assert "error[POLYNYA-LAKE-017]: shop.towns is suspended" in at_once
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in closing.splitlines()]
    assert [row for row in rows if row] == [
        ["shop.lost", "0", "0", "failed (POLYNYA-DEP-005)", "bring it back"],
        ["shop.towns", "0", "0", "suspended (POLYNYA-LAKE-017)", SUSPENDED.fix],
        ["shop.users", "0", "3", "no record could be copied", "polynya quarantine list shop.users"],
    ]
    assert text.count("error[POLYNYA-DEP-005]") == 1


def test_a_run_that_goes_on_says_a_failure_once_and_that_it_is_over(shop: Shop) -> None:
    turns = iter([StepResult(failure=LOST), StepResult(failure=LOST), IDLE])

    def step(context: EngineContext, _turn: TimeSlice) -> StepResult:
        ended = next(turns)
        if ended is IDLE:
            context.stop.set()
        return ended

    shop.units = {"shop.users": step}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polynya.engine.scheduler.longer_pause", lambda *_: 0.01)
        code = shop.run(once=False)

    assert code == 0
    assert shop.said[1:3] == [
        "failed   shop.users: the warehouse is gone (POLYNYA-DEP-005); bring it back",
        "recovered shop.users: works again",
    ]
    assert "shop.users" not in "".join(shop.said[3:])


def test_a_displaced_run_says_whom_it_waits_for(shop: Shop) -> None:
    taken = ConflictError("POLYNYA-LAKE-002", "process 7 on n1 works on users", where="users")

    def step(context: EngineContext, _turn: TimeSlice) -> StepResult:
        context.stop.set()
        return StepResult(failure=taken)

    shop.units = {"shop.users": step}

    assert shop.run(once=False) == ExitCode.CONFLICT

    assert shop.said[1].startswith("waiting  shop.users: users: process 7 on n1 works on users")


@pytest.mark.parametrize(
    ("quarantined", "out", "fail_on", "code", "says"),
    [
        (1, 1, (), 0, None),
        (1, 1, ("quarantine",), 1, "1 records went to quarantine"),
        (0, 1, ("quarantine", "stale"), 0, None),
        (0, 0, ("stale",), 1, "no new record had landed"),
        (0, 0, (), 0, None),
    ],
)
def test_a_run_fails_on_what_it_was_asked_to_fail_on(
    shop: Shop, quarantined: int, out: int, fail_on: tuple[str, ...], code: int, says: str | None
) -> None:
    shop.units = {"shop.users": saying(copied("shop.users", out=out, quarantined=quarantined))}

    assert shop.run(fail_on=fail_on) == code

    assert (says or "") in shop.err.getvalue()
    assert ("`--fail-on`" in shop.err.getvalue()) is (says is not None)


def test_fail_on_is_an_option_that_may_be_given_twice(shop: Shop) -> None:
    shop.units = {"shop.users": saying()}
    where = ["--project", str(shop.folder), "--quiet"]

    assert main(["run", "--once", "--fail-on", "quarantine", "--fail-on", "stale", *where]) == 1
    assert main(["run", "--once", "--fail-on", "old", *where]) == ExitCode.USAGE


def test_programs_get_times_progress_and_totals(shop: Shop) -> None:
    progress = StepProgress(subject="shop.users", step="copying", files_left=1, left_bytes=9)
    ended = StepEnded(subject="shop.users")
    shop.units = {"shop.users": saying(progress, copied("shop.users"), ended, progress, ended)}

    shop.run(json=True, quiet=True)

    lines = [json.loads(line) for line in shop.out.getvalue().splitlines()]
    # Progress of one dataset is told every ten seconds at most.
    assert [line["type"] for line in lines] == [
        "version", "run.started", "step.progress", "step.progress", "batch.copied", "run"
    ]  # fmt: skip
    assert all(line["at"].endswith("Z") for line in lines[1:-1])
    assert {name: lines[-1][name] for name in ("records", "copied", "quarantined", "applied")} == {
        "records": 2, "copied": 2, "quarantined": 0, "applied": 0
    }  # fmt: skip
    assert shop.err.getvalue() == ""


def test_steps_are_shown_while_they_last() -> None:
    clock = FakeClock(STARTED)
    steps = Steps(clock)
    steps.take(StepProgress(subject="a.big", step="copying", files_left=2, left_bytes=3 << 20))
    clock.sleep(70)
    steps.take(StepProgress(subject="a.small", step="applying", rows_left=1, left_seconds=4))
    steps.take(copied("a.big"))

    assert steps.lines() == [
        "copying  a.big: 2 files, 3.0 MiB left  [1:10]",
        "applying a.small: 1 row left, about 4 s  [0:00]",
    ]
    steps.take(StepEnded(subject="a.big"))
    assert steps.lines() == ["applying a.small: 1 row left, about 4 s  [0:00]"]


def test_in_a_log_only_what_takes_long_is_said_and_again_after_a_while() -> None:
    clock = FakeClock(STARTED)
    steps = Steps(clock)
    steps.take(StepProgress(subject="a.b", step="applying", rows_left=1))
    assert steps.overdue() == []
    clock.sleep(output.REPEAT_SECONDS)
    assert steps.overdue() == ["applying a.b: 1 row left  [0:30]"]
    assert steps.overdue() == []


def test_a_file_takes_everything_with_its_time(shop: Shop, tmp_path: Path) -> None:
    shop.units = {"shop.users": saying(copied("shop.users"))}
    file = tmp_path / "run.log"
    options = GlobalOptions(log_file=file, quiet=True)

    with logging_as(options):
        shop.run(quiet=True)
        logging.getLogger("polynya.lake").debug("SQL: SELECT 1")

    text = file.read_text()
    assert "INFO    polynya.said: copied   shop.users: 2 of 2 records" in text
    assert "DEBUG   polynya.lake: SQL: SELECT 1" in text
    assert all(line[:2] == "20" for line in text.splitlines())
    assert shop.said == []


def test_a_log_file_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "run.log"

    assert main(["explain", "--log-file", str(file)]) == ExitCode.USAGE

    assert "POLYNYA-CLI-004" in capsys.readouterr().err


def test_on_a_terminal_steps_are_drawn_and_gone_at_the_end(shop: Shop) -> None:
    shown = threading.Event()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            if "3.0 MiB left" in text:
                shown.set()
            return super().write(text)

    def step(context: EngineContext, _turn: TimeSlice) -> StepResult:
        progress = StepProgress(subject="shop.users", step="copying", left_bytes=3 << 20)
        context.sink(progress)
        assert shown.wait(10)
        context.sink(StepEnded(subject="shop.users"))
        context.sink(copied("shop.users", quarantined=1))
        return IDLE

    shop.units, shop.err = {"shop.users": step}, Terminal()
    options = GlobalOptions(project=shop.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.delenv("NO_COLOR", raising=False)
        output = TextOutput(options, shop.out, shop.err)
        assert run(once=True, context=CommandContext(options, output)) == 0

    assert "\x1b[33mcopied   shop.users: 2 of 3 records" in shop.err.getvalue()


def test_a_command_that_waits_for_spark_says_so_to_people_only(shop: Shop) -> None:
    options = GlobalOptions(no_color=True, project=shop.folder, json=True)
    context = CommandContext(options, JsonOutput(options, shop.out, shop.err))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "REPEAT_SECONDS", 0.0)
        patch.setattr(output, "_POLL_SECONDS", 0.01)
        with context.starting(context.load()):
            until = time.monotonic() + 10
            while not shop.said and time.monotonic() < until:
                time.sleep(0.01)

    assert shop.said[0] == "starting shop: Spark  [0:00]"
    assert shop.out.getvalue() == ""
