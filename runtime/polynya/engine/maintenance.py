"""Maintenance of one dataset: choose the next action, carry it out, give way to other work.

`maintain` serves the command. In a run, `MaintenanceUnit` is a unit of its own with low priority.
The unit that copies reports for free when there may be something to do. The scheduler then gives
maintenance a time slice when no copy and no apply wants one. Maintenance gives it back as soon as
one does, or some seconds later if earlier actions were cut short (`YieldDelay`). A failure of
maintenance never stops data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.errors import as_polynya
from polynya.engine.maintenance_choice import (
    ActionVerdict,
    BudgetLeft,
    MaintenanceChoice,
    choose,
    cost_of_seconds,
    worth,
)
from polynya.engine.maintenance_status import health_event
from polynya.engine.unit import OVER, StepResult, TimeSlice, Unit
from polynya.lake.maintenance.actions import BUILT, Call
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.health import (
    BUILT_NAMES,
    Done,
    TableFacts,
    awaits_layout,
    look,
    remember,
    rule_of,
)
from polynya.lake.table.ownership import enter
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.maintenance import ActionName, Maintenance
from polynya.model.error_catalogue.operation import MAINTENANCE_DURING_RELOAD
from polynya.model.errors import ConflictError, FencedError
from polynya.observe.maintenance import MaintenanceDone, MaintenanceFailed
from polynya.observe.trace import span

#: Actions of one call: each should leave less to do than there was.
_MOST_ACTIONS: Final = 20
#: How often a table that changes is examined, in seconds.
EXAMINATION_INTERVAL_SECONDS: Final = 30.0
#: Longest maintenance of one dataset in a run that a user waits for, in seconds.
LONGEST_ACTION_SECONDS: Final = 5.0
#: After it gave way once, in seconds; twice as long after each further time...
FIRST_DELAY_SECONDS: Final = 1.0
#: ...and never longer: what waits has the other threads meanwhile.
LONGEST_DELAY_SECONDS: Final = 16.0
#: Pause after a failure: the first, in seconds; later ones grow to an hour.
_FIRST_PAUSE_SECONDS: Final = 60.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0


def maintain(
    context: EngineContext, dataset: ResolvedDataset, actions: Sequence[ActionName]
) -> Iterator[TakenAction]:
    """Take actions; without a name those that pay, until none does.

    The budget of runs does not apply. Settings that switch maintenance off do not apply to a manual
    call; those of single actions do, unless the call names the action.

    Raises what actions raise, and OperationError while a reload is under way.
    """
    table = WorkingDataset.existing(context, dataset)
    _refuse_reload(table)
    for action in actions:
        facts = table_facts_now(table)
        verdict = _requested(action, facts, table)
        yield take_action(table, verdict, facts, _limits(context))
    if actions:
        return
    switched_on = dataset.maintenance.model_copy(update={"enabled": True})
    for _ in range(_MOST_ACTIONS):
        facts = table_facts_now(table)
        taken = choose_for(table, facts, BudgetLeft(), switched_on).taken
        if taken is None or context.stop.is_set():
            return
        yield take_action(table, taken, facts, _limits(context))


def _refuse_reload(table: WorkingDataset) -> None:
    if table.reloading is None:
        return
    raise MAINTENANCE_DURING_RELOAD(where=table.table.table.name, table=table.name)


def _requested(action: ActionName, facts: TableFacts, table: WorkingDataset) -> ActionVerdict:
    dataset = table.table.dataset
    worths = worth(facts, dataset.maintenance, rule_of(dataset))
    action_worth = next(
        (action_worth for action_worth in worths if action_worth.action == action), None
    )
    return ActionVerdict(action, taken=True, reason="requested", worth=action_worth)


def _limits(context: EngineContext) -> ActionLimits:
    return ActionLimits(context.clock.now(), give_way=context.stop.is_set)


class MaintenanceUnit:
    """The maintenance of one dataset of a task. Times in monotonic seconds."""

    def __init__(self, dataset: ResolvedDataset) -> None:
        name = f"{dataset.relations.current} (maintenance)"
        self.unit = Unit(name, dataset.task, self._step, low_priority=True)
        self._on = dataset.maintenance.enabled
        self._table: WorkingDataset | None = None
        self._seen: int | None = None
        self._not_before = 0.0
        self._again_at: float | None = None
        self._pause = 0.0
        self._yield_delay = YieldDelay()

    def request_if_due(self, table: WorkingDataset, result: StepResult) -> StepResult:
        """The result of a step of the copying unit, with maintenance ready if there may be any.

        A table that did not change and has nothing to expire costs no look.
        """
        if not self._on or result.more or result.failure is not None:
            return result
        if table.context.stop.is_set() or not self._may_have_work(table):
            return result
        self._table = table
        return result.with_ready_unit(self.unit)

    def _may_have_work(self, table: WorkingDataset) -> bool:
        now, snapshot = table.context.clock.monotonic(), table.table.state.snapshot
        if snapshot is None or now < self._not_before or table.reloading is not None:
            return False
        return snapshot != self._seen or (self._again_at is not None and now >= self._again_at)

    def _step(self, time_slice: TimeSlice) -> StepResult:
        """Look, choose, and take one action."""
        table = self._table
        if table is None or table.table.distrusted:
            return OVER
        try:
            taken = self._look(table, time_slice)
            if taken is None:
                return OVER
            verdict, facts = taken
        except Exception as error:  # noqa: BLE001 - maintenance ends no run
            return self._failed(table, "look", error)
        try:
            return self._act(table, verdict, facts, time_slice)
        except Exception as error:  # noqa: BLE001 - maintenance ends no run
            result = self._failed(table, verdict.action, error)
            _reload_state(table)
            return result

    def _look(
        self, table: WorkingDataset, time_slice: TimeSlice
    ) -> tuple[ActionVerdict, TableFacts] | None:
        """The action to take now, with the facts that it was chosen by."""
        context = table.context
        now = context.clock.monotonic()
        self._seen, self._not_before = (
            table.table.state.snapshot,
            now + EXAMINATION_INTERVAL_SECONDS,
        )
        facts = table_facts_now(table)
        budget = table.table.dataset.maintenance.budget
        left = context.memory.maintenance.left(budget, now, cheap_only=time_slice.at_once)
        if time_slice.at_once and context.maintenance_seconds is not None:
            rest = context.maintenance_seconds - context.memory.maintenance.seconds
            left = replace(left, cheap_only=False).within(rest)
        choice = choose_for(table, facts, left)
        table.tell(health_event(table.table.dataset, facts, choice))
        self._again_at = None
        if choice.look_at is not None:
            wait = max(choice.look_at - facts.at, timedelta()).total_seconds()
            self._again_at = now + wait
        return None if choice.taken is None else (choice.taken, facts)

    def _act(
        self,
        table: WorkingDataset,
        verdict: ActionVerdict,
        facts: TableFacts,
        time_slice: TimeSlice,
    ) -> StepResult:
        context = table.context
        began = context.clock.monotonic()
        budget = table.table.dataset.maintenance.budget
        submitted, longest = context.maintenance_seconds, LONGEST_ACTION_SECONDS
        if submitted is not None:
            longest = submitted - context.memory.maintenance.seconds

        def give_way() -> bool:
            worked = context.clock.monotonic() - began
            late = time_slice.at_once and worked > longest
            wanted = worked >= self._yield_delay.seconds and time_slice.is_wanted()
            return late or context.stop.is_set() or wanted

        left = context.memory.maintenance.left(budget, began).written_bytes
        limits = ActionLimits(context.clock.now(), budget_bytes=left, give_way=give_way)
        outcome = take_action(table, verdict, facts, limits).outcome
        now = context.clock.monotonic()
        context.memory.maintenance.took(outcome.written_bytes, now - began, now)
        self._pause = 0.0
        self._yield_delay.action_ended(whole=outcome.whole)
        # There may be more to do, and other actions may pay.
        self._not_before = now if outcome.whole else now + 1.0
        if not outcome.whole:
            self._seen = None
        # In a run that ends no copy reports this unit as ready again.
        return StepResult(more=True) if time_slice.at_once and submitted is not None else OVER

    def _failed(self, table: WorkingDataset, action: str, error: Exception) -> StepResult:
        """Say so once, and leave the table alone for a while.

        Only a newer owner ends more than this: a job with a grant.
        """
        context, failure = table.context, as_polynya(error)
        now = context.clock.monotonic()
        self._pause = min(_LONGEST_PAUSE_SECONDS, 2 * self._pause or _FIRST_PAUSE_SECONDS)
        self._not_before = now + self._pause
        self._seen = None
        if isinstance(failure, ConflictError):
            context.memory.takeover_backoff.lost(failure, now)
        elif context.is_news(f"{table.name} is maintained", str(failure)):
            table.tell(MaintenanceFailed(subject=table.name, action=action, error=failure))
        is_fenced = context.epoch is not None and isinstance(failure, FencedError)
        return replace(OVER, failure=failure) if is_fenced else OVER


def _reload_state(table: WorkingDataset) -> None:
    """What is known of a table may no longer be so. An apply that is at work keeps it."""
    try:
        with table.table.changing:
            table.table.reload()
    except Exception:  # noqa: BLE001 - the next copy meets and reports it
        table.table.distrusted = True


@dataclass(slots=True)
class YieldDelay:
    """How long maintenance of one table works although others wait; grows when it gives way.

    On a machine that always has something to copy, an action that gives way at once would never
    end: each try costs time and gains nothing, and the table gets slower for everyone.
    """

    seconds: float = 0.0

    def action_ended(self, *, whole: bool) -> None:
        """Take note of how an action ended: whole, or because others waited."""
        self.seconds = (
            0.0 if whole else min(LONGEST_DELAY_SECONDS, 2 * self.seconds or FIRST_DELAY_SECONDS)
        )


def table_facts_now(table: WorkingDataset, *, committed_beside: bool = False) -> TableFacts:
    """The facts of a table now.

    A table without a write since its layout changed gets the new layout first: only metadata.
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


def choose_for(
    table: WorkingDataset, facts: TableFacts, left: BudgetLeft, settings: Maintenance | None = None
) -> MaintenanceChoice:
    """What to do about a table, by its own settings unless others are given."""
    dataset = table.table.dataset
    return choose(
        facts,
        settings or dataset.maintenance,
        rule=rule_of(dataset),
        left=left,
        built=BUILT_NAMES,
    )


@dataclass(frozen=True, slots=True)
class TakenAction:
    """An action that was taken: why, what it did, and how that compares with what was expected."""

    verdict: ActionVerdict
    outcome: ActionOutcome
    done: Done


@span("maintain")
def take_action(
    table: WorkingDataset, verdict: ActionVerdict, facts: TableFacts, limits: ActionLimits
) -> TakenAction:
    """Take an action, write down what it did, and say so.

    Raises what the action raises, and ConflictError when another process has the table.
    """
    enter(table.table)
    outcome = BUILT[verdict.action](Call(table.table, limits, table.context.hooks.readers))
    after = table_facts_now(table, committed_beside=outcome.commits > 0)
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
    done = replace(done, gain=gain - int(wasted), cost=cost_of_seconds(outcome.seconds))
    remember(table.table, after.record.with_done(verdict.action, done))
    _report_action(table, verdict, done)
    return TakenAction(verdict, outcome, done)


def _wasted(action: ActionName, facts: TableFacts, table: WorkingDataset) -> float:
    dataset = table.table.dataset
    worths = worth(facts, dataset.maintenance, rule_of(dataset))
    return next(
        (action_worth.gain for action_worth in worths if action_worth.action == action), 0.0
    )


def _report_action(table: WorkingDataset, verdict: ActionVerdict, done: Done) -> None:
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
