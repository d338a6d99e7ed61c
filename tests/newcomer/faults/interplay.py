"""What people and other processes do to a run that is under way."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tests.e2e.killing import Running, running
from tests.newcomer.checks import Trial
from tests.newcomer.faults.ground import RUN, Ground
from tests.newcomer.faults.judging import codes, unseemly
from tests.newcomer.shop.feed import CUSTOMERS, TABLES

PART: Final = "run under way"
#: Until a run has to have said or done what it is waited for, in seconds.
_PATIENCE: Final = 240.0
#: A process that is told to end at once has ended after so many seconds.
_AT_ONCE: Final = 5.0
#: Records of a file whose step takes long enough to be interrupted.
_MANY: Final = 150_000
#: Seconds in which a unit that failed is tried again at least once.
_TRIED_AGAIN: Final = 10.0
#: Seconds between two of them: closer ones count as one that was passed on.
_BETWEEN: Final = 0.5
#: How often it is tried to meet a step before it ends.
_ATTEMPTS: Final = 3


def trials(ground: Ground) -> Iterator[Trial]:
    """Each by itself."""
    for name, work in (
        ("Ctrl-C", _one_ctrl_c),
        ("second Ctrl-C", _two_ctrl_c),
        ("two owners, both once", _both_once),
        ("two owners, one goes on", _one_goes_on),
        ("warehouse deleted under a run", _deleted),
    ):
        yield Trial(PART, name, partial(work, ground))


def _one_ctrl_c(ground: Ground) -> list[str]:
    """The steps that are under way end, and nothing else is begun."""
    ground.restore()
    with running(ground.folder, "run") as run:
        _until(lambda: "copied " in run.text(), run)
        _interrupt(run)
        code = run.wait(_PATIENCE)
    found = [] if code == 130 else [f"exit code {code}, not 130"]
    return [*found, *_odd(run, "Ctrl-C again ends immediately"), *ground.goes_on()]


def _two_ctrl_c(ground: Ground) -> list[str]:
    """The second one ends the process in the middle of its step."""
    ground.restore()
    for attempt in range(_ATTEMPTS):
        file = f"{ground.shop.feeds[CUSTOMERS.name].files:06d}{CUSTOMERS.ending}"
        ground.shop.land_changes(CUSTOMERS, _MANY)
        log = ground.folder / f"attempt-{attempt}.log"
        with running(ground.folder, "run", "--log-file", str(log)) as run:
            _until(partial(_reads, log, file), run)
            _interrupt(run)
            time.sleep(_BETWEEN)
            if run.process.poll() is not None:
                continue
            _interrupt(run)
            asked = time.monotonic()
            code = run.wait(_PATIENCE)
            took = time.monotonic() - asked
        found = [] if code == 130 else [f"exit code {code}, not 130"]
        if took > _AT_ONCE:
            found.append(f"it lived on for {took:.0f} s")
        said = _odd(run, "Ctrl-C again ends immediately", "ended immediately")
        return [*found, *said, *ground.goes_on()]
    return [f"each of {_ATTEMPTS} runs ended before the second Ctrl-C"]


def _both_once(ground: Ground) -> list[str]:
    """Each does the work or is refused with code 5; nothing is lost or there twice.

    Both are refused when each takes over a table that the other has begun.
    """
    ground.restore()
    with running(ground.folder, *RUN) as one, running(ground.folder, *RUN) as two:
        ended = {one.wait(_PATIENCE), two.wait(_PATIENCE)}
    found = [] if ended <= {0, 5} else [f"exit codes {sorted(ended)}"]
    refused = [codes(run.text()) for run in (one, two) if run.process.returncode == 5]
    found += [f"refused with {told}" for told in map(set, refused) if not told & _REFUSED]
    return [*found, *_odd(one), *_odd(two), *ground.goes_on()]


def _one_goes_on(ground: Ground) -> list[str]:
    """The run says who has the table, and takes it back when nothing happens there."""
    ground.restore()
    with running(ground.folder, "run") as run:
        _until(lambda: run.text().count("copied ") >= len(TABLES), run)
        _land(ground)
        second = ground.call(*RUN)
        _land(ground)
        _until(lambda: "waiting " in run.text(), run)
        waits = "waiting " in run.text()
        _until(lambda: "recovered " in run.text(), run)
        recovered = "recovered " in run.text()
        run.process.terminate()
        code = run.wait(_PATIENCE)
    found = [] if code in (0, 5) else [f"exit code {code} after SIGTERM"]
    if second.code not in (0, 5):
        found.append(f"the second process: exit {second.code}\n{second.errors}")
    found += [] if waits else ["it does not say whom it waits for"]
    found += [] if recovered else ["it does not take the tables back"]
    return [*found, *_odd(run, "process "), *ground.goes_on()]


def _deleted(ground: Ground) -> list[str]:
    """A failure is said at once, with its code; afterwards all that landed is read again."""
    ground.restore()
    with running(ground.folder, "run") as run:
        _until(lambda: run.text().count("copied ") >= len(TABLES), run)
        shutil.rmtree(ground.warehouse)
        _land(ground)
        _until(lambda: "failed " in run.text(), run)
        told = run.process.poll() is not None or "failed " in run.text()
        # What is tried after the first failure meets the same fault elsewhere.
        _land(ground)
        time.sleep(_TRIED_AGAIN)
        run.process.terminate()
        run.wait(_PATIENCE)
    found = [] if told else ["nothing was said of it while it went on"]
    found += [] if set(codes(run.text())) else ["no code was said"]
    return [*found, *_odd(run), *ground.goes_on()]


_REFUSED: Final = {"POLYNYA-LAKE-002", "POLYNYA-LAKE-003"}


def _odd(run: Running, *says: str) -> list[str]:
    """What a run said that nobody should read, or did not say; with the end of it."""
    text = run.text()
    found = [*unseemly(text), *(f"not said: {one!r}" for one in says if one not in text)]
    return [*found, f"it said:\n{text}"] if found else []


def _land(ground: Ground) -> None:
    for table in TABLES:
        ground.shop.land_changes(table, 20)


def _interrupt(run: Running) -> None:
    """Ctrl-C as a terminal sends it: to the process and to all that it started."""
    os.killpg(run.process.pid, signal.SIGINT)


def _reads(log: Path, file: str) -> bool:
    """Whether a run began to read a landed file."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return any(" reads " in line and file in line for line in lines)


def _until(ready: Callable[[], bool], run: Running) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ready() and run.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
