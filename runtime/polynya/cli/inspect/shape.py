"""The shape of a table and the verdicts of maintenance, as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from polynya.cli.inspect.words import moment_in_words, size_in_words
from polynya.observe.events import counted

if TYPE_CHECKING:
    from polynya.engine.plan.care import Care
    from polynya.engine.work.upkeep.choose import Verdict
    from polynya.engine.work.upkeep.spent import CameTrue


def verdict_line(one: Verdict) -> str:
    """What is thought of one action."""
    mark = "now" if one.taken else "not now"
    return f"  {one.action:<30}{mark:<9}{one.reason}"


def came_true_line(one: CameTrue) -> str:
    """What an action cost and gained when it was last taken, beside what was expected."""
    sides = [
        f"{what} {ratio:.2f} of what was expected"
        for what, ratio in (("cost", one.cost_ratio), ("gain", one.gain_ratio))
        if ratio is not None
    ]
    part = "" if one.whole else " (a part of it)"
    return f"  {one.action:<30}{'last':<9}{', '.join(sides) or 'nothing was expected'}{part}"


def health_line(care: Care) -> str:
    """The shape of a table."""
    one = care.health
    parts = [
        f"{counted(one.files, 'file')} of {size_in_words(one.average_bytes)}",
        f"{one.deleted_share:.1%} deleted in {counted(one.delete_files, 'file')}"
        if one.delete_files
        else None,
        f"{counted(one.rows_not_optimised, 'row')} not optimised"
        if one.rows_not_optimised
        else None,
        counted(one.manifests, "manifest"),
        f"{counted(one.snapshots, 'snapshot')} in {size_in_words(one.metadata_bytes)} of metadata",
        f"{size_in_words(one.removed_orphan_bytes)} of orphans removed by the last look"
        if one.removed_orphan_bytes
        else None,
    ]
    return f"{one.score} of 100: {', '.join(part for part in parts if part)}"


def upkeep_line(care: Care, now: datetime) -> str | None:
    """What was done last about the shape of a table, and what comes next."""
    parts = []
    if care.last is not None:
        action, done = care.last
        when = moment_in_words(done.at.isoformat(), now)
        parts.append(f"{action} {when}, in {done.seconds:.1f} s: {done.why}")
    comes = care.choice.next
    # A mere look at a table that is new is no news before its day.
    if comes is not None and (parts or comes.taken or comes.score > 0):
        parts.append(f"next {comes.action}: {comes.reason}")
    return "; ".join(parts) or None
