"""Work that is submitted: once, found again, cancelled, and fenced by the epoch of its owner."""

from __future__ import annotations

from polynya.engine.backlog import BacklogSize
from polynya.engine.commands.unread import UnreadFiles
from polynya.formats.batch import FilePart
from polynya.model.errors import DependencyError, FencedError, OperationError
from polynya.store.jobs import RunState, exit_code_in, label_in
from tests.cluster.submit.fakes import FakeRuns, Following


def test_a_run_is_submitted_once_and_followed_until_it_succeeds() -> None:
    runs = FakeRuns()
    job = Following(runs)

    assert job.turns() == 15.0
    assert job.turns() == 15.0
    runs.ends("r1", RunState.SUCCEEDED)

    assert job.turns() == 900.0
    assert job.said() == ["job_run.started", "job_run.ended"]
    job.clock.at += 900.0
    job.turns()
    assert [order.arguments for order in runs.orders] == [("run", "users")] * 2
    assert runs.orders[0].label != runs.orders[1].label


def test_a_submission_whose_answer_was_lost_is_found_again() -> None:
    runs = FakeRuns()
    runs.lose = True
    job = Following(runs)

    assert job.turns() == 15.0
    assert job.turns() == 15.0

    assert len(runs.orders) == len(runs.runs) == 1
    assert job.said() == ["job_run.trouble", "job_run.started"]
    runs.ends("r1", RunState.SUCCEEDED)
    assert job.turns() == 900.0


def test_a_submission_that_was_refused_is_made_again_under_the_same_label() -> None:
    runs = FakeRuns()
    runs.refuse = True
    job = Following(runs)

    job.turns()
    job.turns()

    assert len(runs.runs) == 1
    assert len({order.label for order in runs.orders}) == 1


def test_what_stops_is_cancelled_and_has_ended_only_when_the_service_says_so() -> None:
    runs = FakeRuns()
    job = Following(runs)
    job.turns()

    job.run.stop()

    assert job.turns() == 2.0
    assert runs.cancelled == ["r1"]
    assert job.turns() == 2.0
    # The service may have lost the request.
    job.clock.at += 30.0
    job.turns()
    assert runs.cancelled == ["r1", "r1"]
    runs.ends("r1", RunState.CANCELLED)
    assert job.turns() is None
    assert job.said()[-1] == "ended"
    assert job.error is None


def test_what_stops_while_its_submission_is_in_doubt_is_found_and_cancelled() -> None:
    runs = FakeRuns()
    runs.lose = True
    job = Following(runs)
    job.turns()

    job.run.stop()
    job.turns()

    assert runs.cancelled == ["r1"]


def test_what_stops_before_anything_was_submitted_ends_at_once() -> None:
    runs = FakeRuns()
    job = Following(runs)

    job.run.stop()

    assert job.turns() is None
    assert runs.orders == []


def test_what_an_earlier_owner_left_is_cancelled_first() -> None:
    runs = FakeRuns()
    job = Following(runs, epoch=5)
    runs.left("old", job.label(epoch=4))

    job.turns()

    assert runs.cancelled == ["old"]
    assert len(runs.orders) == 1


def test_without_sharing_what_the_process_before_left_is_cancelled_too() -> None:
    runs = FakeRuns()
    before = Following(runs, epoch=None, owner="n1:1:a")
    before.turns()

    after = Following(runs, epoch=None, owner="n1:2:b")
    after.turns()

    assert runs.cancelled == ["r1"]
    assert len(runs.orders) == 2


def test_who_was_overtaken_submits_nothing_and_cancels_nothing() -> None:
    runs = FakeRuns()
    job = Following(runs, epoch=5)
    runs.left("new", job.label(epoch=6))

    assert job.turns() is None

    assert (runs.orders, runs.cancelled) == ([], [])
    job.said()
    assert isinstance(job.error, FencedError)
    assert job.error.epoch == 6


def test_runs_of_other_units_are_left_alone() -> None:
    runs = FakeRuns()
    job = Following(runs)
    label = label_in("polynya-0123456789ab-1-0123456789abcdef shop.orders")
    assert label is not None
    runs.left("other", label)

    job.turns()

    assert runs.cancelled == []


def test_a_run_that_met_a_newer_owner_is_fenced() -> None:
    runs = FakeRuns()
    job = Following(runs, epoch=5)
    job.turns()
    runs.ends("r1", RunState.FAILED, "Job failed. ExitCode: 5. Last few exceptions", 5)

    assert job.turns() is None

    job.said()
    assert isinstance(job.error, FencedError)
    assert job.error.epoch == 5


def test_a_failure_ends_the_job_with_what_the_service_said() -> None:
    for code, kind in ((1, OperationError), (None, DependencyError)):
        runs = FakeRuns()
        job = Following(runs)
        job.turns()
        runs.ends("r1", RunState.FAILED, "no capacity", code)

        assert job.turns() is None

        job.said()
        assert isinstance(job.error, kind)
        assert "no capacity" in str(job.error)


def test_a_service_that_is_down_is_asked_less_and_less_and_said_once() -> None:
    runs = FakeRuns()
    job = Following(runs)
    job.turns()
    job.said()
    runs.is_down = True

    assert [job.turns() for _ in range(4)] == [15.0, 30.0, 60.0, 60.0]

    assert job.said() == ["job_run.trouble"]
    runs.is_down = False
    assert job.turns() == 15.0
    assert len(runs.orders) == 1


def test_without_new_files_there_is_no_next_run_until_a_day_has_passed() -> None:
    runs, files = FakeRuns(), ["a"]
    job = Following(runs, landed=lambda: ",".join(files))
    job.turns()
    runs.ends("r1", RunState.SUCCEEDED)
    job.turns()

    job.clock.at += 1000.0
    job.turns()
    assert len(runs.orders) == 1
    files.append("b")
    job.turns()
    assert len(runs.orders) == 2
    runs.ends("r2", RunState.SUCCEEDED)
    job.turns()
    job.clock.at += 86_400.0
    job.turns()
    assert len(runs.orders) == 3


def test_the_exit_code_is_read_from_what_a_service_says() -> None:
    said = {
        "Job failed, please check complete logs. ExitCode: 5. Last few exceptions: x": 5,
        "Command failed with exit code 4": 4,
        "SystemExit: 2": 2,
        "no capacity in 3 zones": None,
    }
    assert {text: exit_code_in(text) for text in said} == said


def test_what_waits_for_a_service_is_seen_and_keeps_a_node_until_it_is_read() -> None:
    runs, files = FakeRuns(), [FilePart("a", 1000)]
    job = Following(runs, landed=lambda: "a", unread=lambda: {"shop.users": files})

    job.turns()

    waiting = job.backlog.size(job.clock.at)
    assert (waiting.files, waiting.size_bytes, waiting.keeps_node) == (1, 1000, True)
    files.clear()
    job.clock.at += 100.0
    job.turns()
    # All is read, and the run has still to apply it.
    assert job.backlog.size(job.clock.at) == BacklogSize(elsewhere=True, keeps_node=True)
    runs.ends("r1", RunState.SUCCEEDED)
    job.turns()
    assert job.backlog.size(job.clock.at) == BacklogSize(elsewhere=True)


def test_what_lands_between_two_runs_waits_for_the_next_one() -> None:
    runs, files = FakeRuns(), list[FilePart]()
    job = Following(runs, landed=lambda: str(len(files)), unread=lambda: {"shop.users": files})
    job.turns()
    runs.ends("r1", RunState.SUCCEEDED)
    job.turns()

    files.append(FilePart("b", 1_000_000))
    for _ in range(10):
        job.clock.at += 61.0
        job.turns()

    waiting = job.backlog.size(job.clock.at)
    assert (waiting.files, waiting.keeps_node) == (1, True)
    # Nobody worked meanwhile, so nothing is slow.
    assert waiting.seconds == 1.0


def test_a_service_that_is_down_does_not_hide_what_waits() -> None:
    runs = FakeRuns()
    runs.is_down = True
    job = Following(runs, unread=lambda: {"shop.users": [FilePart("a", 1000)]})

    job.turns()

    assert job.backlog.size(job.clock.at).keeps_node


def test_what_a_run_left_unread_keeps_no_node_before_more_lands() -> None:
    """It would be kept for ever: without news there is no next run."""
    runs, landed = FakeRuns(), ["a"]
    job = Following(
        runs, landed=lambda: ",".join(landed), unread=lambda: {"x": [FilePart("a", 1000)]}
    )
    job.turns()
    # While the run works.
    landed.append("b")
    runs.ends("r1", RunState.SUCCEEDED)
    job.turns()
    assert job.backlog.size(job.clock.at).keeps_node
    job.clock.at += 900.0
    job.turns()
    runs.ends("r2", RunState.SUCCEEDED)

    job.turns()

    waiting = job.backlog.size(job.clock.at)
    assert (waiting.files, waiting.keeps_node, waiting.node_seconds) == (1, False, 0.0)


def test_a_process_beside_the_agent_does_work_of_this_node() -> None:
    job = Following(FakeRuns(), away=False, unread=lambda: {"x": [FilePart("a", 2_000_000)]})

    job.turns()

    assert job.backlog.size(job.clock.at) == BacklogSize(1, 2_000_000, 2.0, 0.0)


def test_what_cannot_be_looked_at_ends_nothing() -> None:
    def broken() -> UnreadFiles:
        raise OSError("no such bucket")

    job = Following(FakeRuns(), unread=broken)

    assert job.turns() == 15.0
    assert job.backlog.size(job.clock.at) == BacklogSize(elsewhere=True, keeps_node=True)


def test_a_job_that_ends_works_nowhere() -> None:
    runs = FakeRuns()
    job = Following(runs)
    job.turns()
    assert job.backlog.size(job.clock.at).keeps_node

    runs.ends("r1", RunState.FAILED, "no capacity")
    job.turns()

    assert not job.backlog.size(job.clock.at).keeps_node
