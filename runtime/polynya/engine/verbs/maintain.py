"""Maintain one dataset now: what pays by the rule, or actions that were named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.tidying.act import Taken, act, chosen, looked
from polynya.engine.work.upkeep.choose import Left, Verdict
from polynya.engine.work.upkeep.worth import worth
from polynya.lake.maintenance.base import ActionName, Limits
from polynya.lake.maintenance.look.facts import TableFacts
from polynya.lake.maintenance.look.rule import rule_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import OperationError

#: Actions of one call: each should leave less to do than there was.
_MOST: Final = 20


def maintain(
    context: EngineContext, dataset: ResolvedDataset, actions: Sequence[ActionName]
) -> Iterator[Taken]:
    """Take actions; without a name those that pay, until none does.

    The budget is not that of runs: there is none. Settings that switch maintenance off do not hold
    for who asks for it by hand; those of single actions do, unless they are named.

    Raises what actions raise, and OperationError while a reload is under way.
    """
    table = WorkingDataset.existing(context, dataset)
    _refuse_reload(table)
    for action in actions:
        facts = looked(table)
        verdict = _asked(action, facts, table)
        yield act(table, verdict, facts, _limits(context))
    if actions:
        return
    switched_on = dataset.maintenance.model_copy(update={"enabled": True})
    for _ in range(_MOST):
        facts = looked(table)
        taken = chosen(table, facts, Left(), switched_on).taken
        if taken is None or context.stop.is_set():
            return
        yield act(table, taken, facts, _limits(context))


def _limits(context: EngineContext) -> Limits:
    return Limits(context.clock.now(), give_way=context.stop.is_set)


def _asked(action: ActionName, facts: TableFacts, table: WorkingDataset) -> Verdict:
    dataset = table.table.dataset
    known = worth(facts, dataset.maintenance, rule_of(dataset))
    one = next((one for one in known if one.action == action), None)
    return Verdict(action, taken=True, reason="asked for", worth=one)


def _refuse_reload(table: WorkingDataset) -> None:
    if table.reloading is None:
        return
    raise OperationError(
        "POLYNYA-MNT-001",
        f"a reload of {table.name} is under way",
        where=table.table.table.name,
        state="nothing was changed",
        fix="end the reload with `polynya reload`, or give it up with `--abandon`",
    )
