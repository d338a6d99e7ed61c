"""`polynya maintain`: keep tables in shape now, or say what would be done and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.inspect.chosen import chosen_entries
from polynya.cli.inspect.shape import came_true_line, verdict_line
from polynya.model.config.maintenance.actions import ActionName
from polynya.model.errors import ConfigError, PolynyaError
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.engine.plan.inventory import Entry


def maintain(
    *datasets: str,
    dry_run: bool = False,
    action: tuple[ActionName, ...] = (),
    context: Context,
) -> int:
    """Take the maintenance actions that pay now, best first, with the reason.

    Runs do this by themselves, within their budget. This command has no budget, and also maintains
    datasets with `enabled: false`. Query results are the same before and after. A concurrent
    `polynya run` waits while this command works on its table.

    For example: `polynya maintain orders --dry-run`.

    Args:
        datasets: names or globs of datasets, with or without their schema. Default: all.
        dry_run: only show what would be done, what not and why; needs no Java.
        action: take this action even if it does not pay; may be given several times.
        context: given by `main`.
    """
    # Start-up time: PyIceberg.
    from polynya.lake.maintenance.look.rule import BUILT_NAMES

    for name in action:
        if name not in BUILT_NAMES:
            raise ConfigError(
                "POLYNYA-CLI-014",
                f"the action {name} is not built",
                fix=f"one of {', '.join(sorted(BUILT_NAMES))}",
            )
    entries = [
        entry
        for entry in chosen_entries(context, datasets)
        if entry.table is not None and not entry.is_ledger
    ]
    if dry_run:
        for entry in entries:
            _explain(context, entry)
        return ExitCode.OK
    return _run(context, entries, action) if entries else ExitCode.OK


def _explain(context: CommandContext, entry: Entry) -> None:
    from polynya.engine.plan.care import care_of
    from polynya.engine.work.upkeep.spent import came_true

    assert entry.table is not None
    now = SystemClock().now()
    care = care_of(entry.table, entry.dataset, now)
    lines = [verdict_line(one) for one in care.choice.verdicts]
    lines += [came_true_line(one) for one in came_true(care.record)]
    data = {
        "dataset": entry.name,
        **care.as_json(),
        "actions": [
            {
                "action": one.action,
                "taken": one.taken,
                "reason": one.reason,
                "score": round(one.score, 3),
                "gain_bytes_per_hour": None if one.worth is None else round(one.worth.gain),
                "cost_bytes": None if one.worth is None else round(one.worth.cost),
                "at": None if one.at is None else one.at.isoformat(),
            }
            for one in care.choice.verdicts
        ],
    }
    head = f"{entry.name}: health {care.health.score} of 100"
    context.output.result("maintenance.plan", data, "\n".join([head, *lines]))


def _run(context: CommandContext, entries: list[Entry], actions: tuple[ActionName, ...]) -> int:
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.verbs.maintain import maintain as maintain_dataset

    project = context.load(tolerant=True)
    with context.starting(project):
        engine = start_engine(project)
    code = int(ExitCode.OK)
    for entry in entries:
        done = 0
        try:
            for one in maintain_dataset(engine, entry.dataset, actions):
                done += 1
                outcome, reason = one.outcome, one.verdict.reason
                data = {
                    "dataset": entry.name,
                    "reason": reason,
                    **asdict(outcome),
                    "expected_cost": one.done.expected_cost,
                    "cost": one.done.cost,
                    "expected_gain": one.done.expected_gain,
                    "gain": one.done.gain,
                }
                text = f"{entry.name}: {outcome.action}: {outcome.why}, in {outcome.seconds:.1f} s"
                context.output.result("maintained", data, f"{text} ({reason})")
        except PolynyaError as error:
            context.output.error(error)
            code = max(code, error.exit_code)
        else:
            if not done:
                context.output.note(f"{entry.name}: nothing pays now; `--dry-run` says why")
    return code
