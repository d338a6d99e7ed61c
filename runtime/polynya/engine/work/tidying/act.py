"""Look at a table, choose, take an action, and write down what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.upkeep.choose import Choice, Left, Verdict, choose
from polynya.engine.work.upkeep.spent import spent
from polynya.engine.work.upkeep.worth import worth
from polynya.lake.maintenance.actions import BUILT, Call
from polynya.lake.maintenance.base import ActionName, Limits, Outcome
from polynya.lake.maintenance.look.facts import TableFacts
from polynya.lake.maintenance.look.health import health_of
from polynya.lake.maintenance.look.look import awaits_layout, look, remember
from polynya.lake.maintenance.look.record import Done
from polynya.lake.maintenance.look.rule import BUILT_NAMES, rule_of
from polynya.lake.table.guards import enter
from polynya.model.config.maintenance.settings import Maintenance
from polynya.observe.trace import span
from polynya.observe.upkeep import MaintenanceDone, TableHealth


@dataclass(frozen=True, slots=True)
class Taken:
    """An action that was taken: why, what it did, and that beside what was expected of it."""

    verdict: Verdict
    outcome: Outcome
    done: Done


def looked(table: WorkingDataset, *, committed_beside: bool = False) -> TableFacts:
    """The facts of a table now.

    A table that nobody has written to since its layout was changed gets that first: only metadata.
    """
    target = table.table
    if awaits_layout(target):
        enter(target)
    return look(
        target,
        now=table.context.clock.now(),
        rule=rule_of(target.dataset),
        committed_beside=committed_beside,
    )


def chosen(
    table: WorkingDataset, facts: TableFacts, left: Left, settings: Maintenance | None = None
) -> Choice:
    """What to do about a table, by its own settings unless others are given."""
    dataset = table.table.dataset
    return choose(
        facts,
        settings or dataset.maintenance,
        rule=rule_of(dataset),
        left=left,
        built=BUILT_NAMES,
    )


@span("maintain")
def act(table: WorkingDataset, verdict: Verdict, facts: TableFacts, limits: Limits) -> Taken:
    """Take an action, write down what it did, and say so.

    Raises what the action raises, and ConflictError when another process has the table.
    """
    enter(table.table)
    outcome = BUILT[verdict.action](Call(table.table, limits, table.context.readers))
    after = looked(table, committed_beside=outcome.commits > 0)
    expected = verdict.worth
    gain = 0 if expected is None else int(expected.gain)
    done = Done.of(
        outcome,
        table.context.clock.now(),
        gain=gain,
        cost=0 if expected is None else int(expected.cost),
        written=0 if expected is None else expected.written,
        rows=facts.rows,
        delete_files=after.delete_files,
    )
    # What is wasted from now on, at the same rate of reading.
    same_rates = replace(after, reads=facts.reads, applies=facts.applies, commits=facts.commits)
    wasted = _wasted(verdict.action, same_rates, table)
    done = replace(done, gain=gain - int(wasted), cost=spent(outcome.seconds))
    remember(table.table, after.record.with_done(verdict.action, done))
    _tell(table, verdict, done)
    return Taken(verdict, outcome, done)


def tell_health(table: WorkingDataset, facts: TableFacts, choice: Choice) -> None:
    """Say how good the shape of a table is, and what comes next."""
    one, comes = health_of(facts, rule_of(table.table.dataset)), choice.next
    last = facts.record.newest
    table.tell(
        TableHealth(
            subject=table.name,
            health_percent=one.score,
            files=one.files,
            average_bytes=one.average_bytes,
            delete_files=one.delete_files,
            deleted_share=one.deleted_share,
            manifests=one.manifests,
            metadata_bytes=one.metadata_bytes,
            snapshots=one.snapshots,
            rows_not_optimised=one.rows_not_optimised,
            removed_orphan_bytes=one.removed_orphan_bytes,
            last_action=None if last is None else last[0],
            last_action_at=None if last is None else last[1].at.isoformat(),
            next_action=None if comes is None else comes.action,
            reason=None if comes is None else comes.reason,
        )
    )


def _wasted(action: ActionName, facts: TableFacts, table: WorkingDataset) -> float:
    dataset = table.table.dataset
    found = worth(facts, dataset.maintenance, rule_of(dataset))
    return next((one.gain for one in found if one.action == action), 0.0)


def _tell(table: WorkingDataset, verdict: Verdict, done: Done) -> None:
    table.tell(
        MaintenanceDone(
            subject=table.name,
            action=verdict.action,
            reason=verdict.reason,
            ended=done.why,
            whole=done.whole,
            expected_gain_bytes=done.expected_gain,
            gain_bytes=done.gain,
            expected_cost_bytes=done.expected_cost,
            cost_bytes=done.cost,
            read_bytes=done.read_bytes,
            written_bytes=done.written_bytes,
            freed_bytes=done.freed_bytes,
            files_removed=done.files_removed,
            files_added=done.files_added,
            seconds=done.seconds,
        )
    )
