"""When waiting files are copied: at once after a pause, else at a bounded rate."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.engine.policy import CopyPace, WaitingFacts, decide_copy
from polynya.engine.runner import units
from polynya.engine.unit import TimeSlice
from polynya.formats.batch import FilePart, FileProgress
from polynya.formats.files import Discovery
from polynya.model.config.settings import BatchSettings
from polynya.observe.engine import BatchCopied
from polynya.observe.events import Event
from tests.lab.lab import Lab, put

BATCH = BatchSettings(max_bytes=1000, freshness=timedelta(seconds=5))
GOES_ON = TimeSlice(at_once=False)


@pytest.mark.parametrize(
    ("facts", "copied", "reason"),
    [
        (WaitingFacts(1), True, "the first copy of this process"),
        (WaitingFacts(1, since_copy=4.5), True, "the last copy was 4.5 s ago"),
        (WaitingFacts(1000, since_copy=0.1), True, "1000 bytes are a batch of 1000"),
        (
            WaitingFacts(1, left_over=True, since_copy=0.1),
            True,
            "the last copy left some of what had landed",
        ),
        (
            WaitingFacts(999, since_copy=2.0),
            False,
            "copied 2.0 s ago, and 999 bytes may wait 4.5 s",
        ),
    ],
)
def test_the_decision_and_its_reason(facts: WaitingFacts, copied: bool, reason: str) -> None:
    decision = decide_copy(facts, BATCH)

    assert (decision.copy, decision.reason) == (copied, reason)
    assert decision.wait == (0.0 if copied else 2.5)


def found(*paths: str) -> Discovery:
    return Discovery(tuple(FilePart(path, 10) for path in paths), ())


def test_records_that_trickle_share_commits_and_one_after_a_pause_does_not_wait() -> None:
    pace, copies = CopyPace(BATCH), []

    for second in [0, 1, 2, 3, 4, 5, 6, 7, 60]:
        landed = found(f"{second}")
        if pace.decide(landed, GOES_ON, second).copy:
            pace.copied(landed, {f"{second}": FileProgress(10, 1, complete=True)}, second)
            copies.append(second)

    assert copies == [0, 5, 60]


def test_copies_fall_in_step_with_what_lands_as_often() -> None:
    pace, late = CopyPace(BATCH), []

    # Something lands every five seconds. The first copy was held up, by 3.5 s.
    pace.copied(found("0"), {"0": FileProgress(10, 1, complete=True)}, began=3.5)
    for landed_at in range(5, 60, 5):
        began = landed_at + pace.decide(found(f"{landed_at}"), GOES_ON, landed_at).wait
        done = {f"{landed_at}": FileProgress(10, 1, complete=True)}
        pace.copied(found(f"{landed_at}"), done, began)
        late.append(began - landed_at)

    assert late == [3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_the_time_that_a_copy_takes_counts() -> None:
    pace = CopyPace(BATCH)
    pace.copied(found("a"), {"a": FileProgress(10, 1, complete=True)}, began=10.0)

    # It ended at 13.
    assert pace.decide(found("b"), GOES_ON, 13.0).wait == 1.5
    assert pace.decide(found("b"), GOES_ON, 14.5).copy


def test_a_dataset_waits_from_the_beginning_of_its_last_copy(lab: Lab) -> None:
    class Slow(list[Event]):
        def append(self, event: Event) -> None:
            if isinstance(event, BatchCopied):
                lab.clock.advance(timedelta(seconds=3))

    lab.events = Slow()
    users = lab.feed(task={"batch": {"freshness": "5s"}})
    users.land(put(1, 1))
    (unit,) = units(lab.context("never"), [users.task])
    assert unit.step(GOES_ON).more

    users.land(put(2, 1))

    assert unit.step(GOES_ON).wait_seconds == 1.5


def test_rest_left_by_a_limit_is_copied_immediately() -> None:
    pace = CopyPace(BATCH)
    pace.copied(found("a", "b"), {"a": FileProgress(10, 5, complete=False)}, 0.0)
    rest = pace.decide(found("a", "b"), GOES_ON, 0.1)
    pace.copied(found("a"), {"a": FileProgress(10, 9, complete=True)}, 0.2)

    assert rest.copy
    assert not pace.decide(found("c"), GOES_ON, 0.3).copy


def test_a_single_run_never_waits() -> None:
    pace = CopyPace(BATCH)
    pace.copied(found("a"), {"a": FileProgress(10, 1, complete=True)}, 0.0)

    assert pace.decide(found("b"), TimeSlice(at_once=True), 0.1).copy
