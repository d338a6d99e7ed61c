"""Which action of maintenance is taken, from facts alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.engine.maintenance_choice import (
    CHEAP_BYTES,
    WRITE_COST,
    BudgetLeft,
    MaintenanceChoice,
    choose,
)
from polynya.lake.maintenance.health import Done, FilesFacts, MaintenanceRecord, TableFacts
from polynya.lake.maintenance.rewrite_plan import RewriteRule
from polynya.model.config.maintenance import ACTIONS, Maintenance

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULE = RewriteRule()
MEBIBYTE = 2**20
HOUR = timedelta(hours=1)
UNLIMITED = BudgetLeft()


def fed(**facts: Any) -> TableFacts:
    """A table that is written to and applied."""
    values: dict[str, Any] = {
        "at": NOW,
        "snapshot": 1,
        "written_at": NOW,
        "snapshots": 10,
        "oldest": NOW - HOUR,
        "commits": 600.0,
        "applies": 60.0,
        "reads": 4.0,
    }
    return TableFacts(**{**values, **facts})


def with_small(*sizes: int, **facts: Any) -> TableFacts:
    """The same with so many small files in Current."""
    files = FilesFacts(len(sizes), 10 * len(sizes), sum(sizes), tuple(sorted(sizes)))
    return fed(files={"current": files}, data_files=len(sizes), rows=files.rows, **facts)


def chosen(facts: TableFacts, left: BudgetLeft = UNLIMITED, **settings: Any) -> MaintenanceChoice:
    return choose(facts, Maintenance.model_validate(settings), rule=RULE, left=left)


def lookless(facts: TableFacts, left: BudgetLeft = UNLIMITED) -> MaintenanceChoice:
    """What is chosen where nobody looks for orphans."""
    return chosen(facts, left, actions={"remove_orphan_files": False})


def score(choice: MaintenanceChoice, action: str) -> float:
    return next(one.score for one in choice.verdicts if one.action == action)


def reason(choice: MaintenanceChoice, action: str) -> str:
    return next(one.reason for one in choice.verdicts if one.action == action)


facts_of_tables = st.builds(
    fed,
    files=st.lists(st.integers(1, 70 * MEBIBYTE), max_size=60).map(
        lambda sizes: {"current": FilesFacts(len(sizes), 10, sum(sizes), tuple(sorted(sizes)))}
    )
    | st.integers(1, 2**44).map(
        lambda size: {"current": FilesFacts(1, 10, size, outdated=1, outdated_bytes=size)}
    ),
    delete_files=st.integers(0, 5000),
    deleted_rows=st.integers(0, 10**7),
    data_manifests=st.integers(0, 5000),
    expirable=st.integers(0, 5000),
    expirable_bytes=st.integers(0, 2**40),
    expirable_since=st.just(NOW - HOUR),
    applies=st.floats(0, 3600),
    reads=st.floats(0, 100),
)


def test_what_gains_most_for_its_cost_is_taken_with_its_reason() -> None:
    choice = chosen(with_small(*[MEBIBYTE] * 60, expirable=3, expirable_since=NOW - HOUR))

    assert choice.taken is not None
    assert choice.taken.action == "rewrite_data_files"
    assert choice.taken.reason == (
        "59 small files fewer to open: saves 944.0 MiB an hour for 304.0 MiB"
    )


def test_what_does_not_pay_yet_says_when_it_will() -> None:
    choice = chosen(with_small(*[MEBIBYTE] * 20, oldest=NOW - HOUR / 60))

    assert choice.taken is None
    assert reason(choice, "rewrite_data_files") == (
        "19 small files fewer to open: it pays in 56 minutes if nothing changes"
    )
    assert choice.next is not None
    assert choice.look_at == choice.next.at


def test_a_table_that_nobody_reads_or_writes_is_left_alone() -> None:
    idle = with_small(*[MEBIBYTE] * 500, commits=0.0, applies=0.0, reads=0.0)
    looked = Done(NOW - 99 * HOUR, "there was none")
    choice = chosen(
        replace(
            idle, written_at=NOW - 999 * HOUR, delete_files=900, data_manifests=900,
            record=MaintenanceRecord(looked.at, {"remove_orphan_files": looked}),
        )
    )  # fmt: skip

    assert choice.taken is None
    assert choice.look_at is None


def test_expired_snapshots_go_within_hours_however_little_they_cost() -> None:
    quiet = fed(commits=0.0, reads=0.0, applies=0.0, expirable=1)
    soon = chosen(replace(quiet, expirable_since=NOW - HOUR))
    late = chosen(replace(quiet, expirable_since=NOW - 3 * HOUR))

    assert soon.taken is None
    assert soon.look_at == NOW + HOUR
    assert late.taken is not None
    assert late.taken.reason == (
        "1 snapshot to expire, which hold 0.0 MiB: due since 2026-03-01 11:00 UTC"
    )


def test_a_table_whose_files_nobody_had_to_look_at_is_not_written_again() -> None:
    choice = chosen(fed(deleted_rows=741, rows=3743, data_files=5, oldest=NOW - 100 * HOUR))

    assert reason(choice, "rewrite_data_files") == "there is nothing to do"


def test_files_of_which_much_is_deleted_are_written_again() -> None:
    files = {"current": FilesFacts(4, 1000, 100 * MEBIBYTE)}
    choice = chosen(fed(files=files, deleted_rows=300, delete_files=8, oldest=NOW - HOUR))

    assert choice.taken is not None
    assert choice.taken.reason.startswith("30% of the rows are deleted: saves 2,048.0 MiB an hour")


def outdated(mebibytes: int, **facts: Any) -> TableFacts:
    """A table with so much of another layout in large files, and as much of its own."""
    size = mebibytes * MEBIBYTE
    files = {"current": FilesFacts(2, 1000, 2 * size, outdated=1, outdated_bytes=size)}
    return fed(files=files, rows=1000, size_bytes=2 * size, applies=0.0, commits=0.0, **facts)


def test_another_layout_is_given_to_old_files_once_what_reads_lose_is_the_cost() -> None:
    # Four reads an hour do without an eighth: half of it each hour, for four times its size.
    young = lookless(outdated(2**20, oldest=NOW - 15 * HOUR))
    choice = lookless(outdated(2**20, oldest=NOW - 17 * HOUR))

    assert young.taken is None
    assert reason(young, "rewrite_layout") == (
        "1 file of another layout, 1,048,576.0 MiB: it pays in 60 minutes if nothing changes"
    )
    assert choice.taken is not None
    assert choice.taken.reason == (
        "1 file of another layout, 1,048,576.0 MiB: saves 524,288.0 MiB an hour for 4,194,368.0 MiB"
    )


def test_a_layout_waits_since_all_files_had_theirs_and_not_since_a_snapshot_is_there() -> None:
    long_kept, recent = (
        MaintenanceRecord(NOW - 90 * HOUR),
        Done(NOW - HOUR, "1 file became 2", files_added=2),
    )
    changed = outdated(1024, oldest=NOW - HOUR, record=long_kept)
    again = replace(changed, record=long_kept.with_done("rewrite_layout", recent))
    some = replace(recent, whole=False)
    partly = replace(changed, record=long_kept.with_done("rewrite_layout", some))

    assert lookless(changed).taken is not None
    assert lookless(again).taken is None
    assert lookless(partly).taken is not None


def test_a_layout_of_a_table_that_nobody_reads_or_of_few_bytes_stays() -> None:
    long_kept = MaintenanceRecord(NOW - 900 * HOUR)

    unread = lookless(outdated(2**20, reads=0.0, record=long_kept))
    assert (unread.taken, unread.look_at) == (None, None)
    assert score(lookless(outdated(1, record=long_kept)), "rewrite_layout") < 1


def test_a_large_layout_is_given_a_part_at_a_time_and_not_by_a_run_that_ends() -> None:
    facts = outdated(2**20, record=MaintenanceRecord(NOW - 90 * HOUR))

    assert lookless(facts, BudgetLeft(written_bytes=RULE.group_bytes)).taken is not None
    assert lookless(facts, BudgetLeft(written_bytes=RULE.group_bytes - 1)).taken is None
    assert lookless(facts, BudgetLeft(cheap_only=True)).taken is None


def test_small_files_are_joined_as_soon_as_without_another_layout() -> None:
    small = with_small(*[MEBIBYTE] * 60)
    part = replace(small.files["current"], outdated=9, outdated_bytes=2**40)
    beside = chosen(replace(small, files={"current": part}))

    assert beside.taken is not None
    assert beside.taken.action == "rewrite_data_files"
    assert score(beside, "rewrite_data_files") == score(chosen(small), "rewrite_data_files")


def test_files_of_deletes_are_joined_when_they_are_many() -> None:
    action = "rewrite_position_delete_files"
    crowded = fed(delete_files=90, deleted_rows=900, oldest=NOW - HOUR)
    done = Done(NOW - HOUR, "the delete files are few", delete_files=90)

    choice = chosen(crowded)
    assert choice.taken is not None
    assert choice.taken.action == action
    assert reason(chosen(replace(crowded, has_vectors=True)), action) == "there is nothing to do"
    for whole in (True, False):
        left = replace(done, whole=whole, files_removed=1)
        again = chosen(replace(crowded, record=MaintenanceRecord(NOW, {action: left})))
        assert (again.taken is None) == whole


def test_orphans_are_looked_for_once_a_day_while_there_may_be_any() -> None:
    def looked(at: datetime, written_at: datetime) -> MaintenanceChoice:
        done = Done(at, "there was none")
        return chosen(
            fed(written_at=written_at, record=MaintenanceRecord(at, {"remove_orphan_files": done}))
        )

    day = timedelta(days=1)
    assert looked(NOW - day, NOW).taken is not None
    assert looked(NOW - day / 2, NOW).look_at == NOW + day / 2
    assert looked(NOW - day, NOW - 2 * day).taken is not None
    assert looked(NOW - day, NOW - 5 * day).look_at is None


def test_orphans_of_a_table_that_was_never_maintained_are_looked_for_too() -> None:
    day = timedelta(days=1)
    new, older = fed(snapshots=4, oldest=NOW - day / 2), fed(snapshots=4, oldest=NOW - 2 * day)

    assert chosen(new).look_at == NOW + day / 2
    choice = chosen(older)
    assert choice.taken is not None
    assert choice.taken.action == "remove_orphan_files"
    assert choice.taken.reason.endswith(": due since 2026-02-28 12:00 UTC")
    # Its first action says since when it is maintained.
    assert chosen(replace(older, record=MaintenanceRecord(NOW))).taken is None


def test_rows_are_looked_for_that_are_too_old_as_often_as_their_retention_asks() -> None:
    kept = fed(retention=timedelta(days=30), rows=10)

    assert chosen(kept).look_at == NOW + timedelta(hours=23)
    late = chosen(replace(kept, oldest=NOW - timedelta(days=2)))
    assert late.taken is not None
    assert late.taken.action == "expire_rows"


def test_kept_events_go_a_while_after_they_are_old_where_no_apply_comes() -> None:
    keep = timedelta(days=20)
    idle = fed(events_kept=keep, commits=0.0, applies=0.0, reads=0.0, record=MaintenanceRecord(NOW))

    def at(days: float, **more: Any) -> MaintenanceChoice:
        return chosen(replace(idle, oldest_event=NOW - timedelta(days=days), **more))

    # A file may have the events of a twentieth of that time.
    assert at(20.5).look_at == NOW + timedelta(days=0.5)
    choice = at(21)
    assert choice.taken is not None
    assert choice.taken.action == "expire_changes"
    assert choice.taken.reason == (
        "applied events since 2026-02-08 12:00 UTC are kept: due since 2026-03-01 12:00 UTC"
    )
    # A file that has more than that is not asked after all the time.
    looked = Done(NOW - HOUR, "no file has only events that are old enough")
    assert (
        at(22, record=MaintenanceRecord(NOW, {"expire_changes": looked})).look_at == NOW + 23 * HOUR
    )
    assert chosen(replace(idle, oldest_event=None)).look_at == NOW + timedelta(days=1)
    assert at(99, events_kept=None).look_at == NOW + timedelta(days=1)


def test_statistics_are_for_a_large_table_that_rests() -> None:
    large = fed(rows=5_000_000, size_bytes=2**33, commits=0.0, applies=0.0)

    assert chosen(large).taken is None
    rested = chosen(replace(large, written_at=NOW - 11 * HOUR))
    assert rested.taken is not None
    assert rested.taken.action == "compute_statistics"
    assert chosen(replace(large, written_at=NOW - 11 * HOUR, has_statistics=True)).taken is None


def test_one_that_did_nothing_waits_before_it_is_tried_again() -> None:
    facts = with_small(*[MEBIBYTE] * 60, oldest=NOW - 9 * HOUR)
    done = Done(NOW - HOUR / 12, "an apply was at work", whole=False)
    nothing = replace(done, why="no files are worth writing again", whole=True)

    def after(done: Done) -> MaintenanceChoice:
        return chosen(replace(facts, record=MaintenanceRecord(NOW, {"rewrite_data_files": done})))

    assert after(nothing).taken is None
    assert "it did nothing" in reason(after(nothing), "rewrite_data_files")
    assert after(done).taken is not None


def test_a_run_that_ends_takes_nothing_that_takes_long() -> None:
    large = with_small(*[40 * MEBIBYTE] * 60, oldest=NOW - 100 * HOUR)

    assert lookless(large).taken is not None
    assert lookless(large, BudgetLeft(cheap_only=True)).taken is None


def test_what_is_left_of_a_time_is_never_more_than_of_the_budget() -> None:
    assert BudgetLeft(seconds=900.0).within(600.0).seconds == 600.0
    assert BudgetLeft(seconds=30.0).within(600.0).seconds == 30.0
    assert BudgetLeft(written_bytes=7).within(600.0) == BudgetLeft(7, 600.0)


def test_a_large_table_is_written_again_a_part_at_a_time() -> None:
    large = with_small(*[40 * MEBIBYTE] * 6000, oldest=NOW - 100 * HOUR)

    assert lookless(large, BudgetLeft(written_bytes=RULE.group_bytes)).taken is not None
    assert lookless(large, BudgetLeft(written_bytes=RULE.group_bytes - 1)).taken is None


@given(facts_of_tables)
def test_one_more_file_as_small_as_the_smallest_never_lowers_the_score(facts: TableFacts) -> None:
    part = facts.files["current"]
    smallest = min(part.small, default=1)
    more = replace(part, files=part.files + 1, small=(smallest, *part.small))
    before = score(chosen(replace(facts, deleted_rows=0)), "rewrite_data_files")
    after = chosen(replace(facts, deleted_rows=0, files={"current": more}))

    assert score(after, "rewrite_data_files") >= before


@given(facts_of_tables, st.integers(1, 1000))
def test_more_of_anything_else_never_lowers_a_score(facts: TableFacts, more: int) -> None:
    actions = {
        "data_manifests": "rewrite_manifests",
        "expirable_bytes": "expire_snapshots",
        "delete_files": "rewrite_position_delete_files",
    }
    for name, action in actions.items():
        grown = replace(facts, **{name: getattr(facts, name) + more})
        assert score(chosen(grown), action) >= score(chosen(facts), action)


@given(facts_of_tables, st.integers(0, 2**36), st.floats(-10, 10), st.booleans())
def test_no_budget_is_ever_exceeded(
    facts: TableFacts, written: int, seconds: float, cheap: bool
) -> None:
    taken = chosen(facts, BudgetLeft(written, seconds, cheap_only=cheap)).taken

    if taken is not None:
        assert taken.worth is not None
        assert seconds > 0
        assert taken.worth.cost <= CHEAP_BYTES or not cheap
        in_groups = taken.action in {"rewrite_data_files", "rewrite_layout"}
        least = RULE.group_bytes if in_groups else taken.worth.written
        assert min(taken.worth.written, least) <= written
        assert taken.worth.written * WRITE_COST <= taken.worth.cost


@given(facts_of_tables, st.sets(st.sampled_from(ACTIONS)))
def test_what_is_switched_off_is_never_taken(facts: TableFacts, off: set[str]) -> None:
    taken = chosen(facts, actions=dict.fromkeys(off, False)).taken

    assert taken is None or taken.action not in off
    assert chosen(facts, enabled=False).taken is None


@given(facts_of_tables)
def test_each_action_has_its_reason_and_only_the_best_is_taken(facts: TableFacts) -> None:
    choice = chosen(facts)

    assert [one.action for one in choice.verdicts] == list(ACTIONS)
    assert all(one.reason for one in choice.verdicts)
    taken = [one for one in choice.verdicts if one.taken]
    assert taken == ([] if choice.taken is None else [choice.taken])
    if choice.taken is not None:
        assert choice.taken.score >= 1
        assert choice.look_at is None or choice.look_at >= NOW


@pytest.mark.parametrize("small", [7, 8])
def test_too_few_files_are_not_worth_a_commit(small: int) -> None:
    choice = lookless(with_small(*[1000] * small, oldest=NOW - 100 * HOUR, applies=3600.0))

    assert (choice.taken is None) == (small < RULE.least_files)
