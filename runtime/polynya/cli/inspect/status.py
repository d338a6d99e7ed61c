"""`polynya status`: how fresh each dataset is, and what is pending."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.lake.read.inspect import DatasetStatus


def status(*, context: Context) -> int:
    """Show for each dataset its position, pending changes, freshness, accounting and last apply.

    Freshness is the age of the newest event that was copied, by the source's clock. Needs no Java,
    and answers while another process works on the tables.

    For example: `polynya status --json`.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.read.inspect import status as status_of
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    now = SystemClock().now()
    for entry in inventory(project, python_catalog(project.target)):
        if entry.table is None:
            context.output.note(f"{entry.name}: nothing was copied yet")
            continue
        one = status_of(entry.table, entry.dataset, now)
        context.output.result(
            "dataset.status", {"task": entry.task.name, **asdict(one)}, _block(one)
        )
    return ExitCode.OK


def _block(one: DatasetStatus) -> str:
    pending = (
        f"{one.pending_rows:,} rows, {_bytes(one.pending_bytes)}, "
        f"oldest {_age(one.pending_age_seconds)}"
        if one.pending_rows
        else "nothing"
    )
    applied = (
        f"{one.applied_at}, {one.last_apply_seconds} s: {one.last_apply_reason}"
        if one.applied_at
        else "never"
    )
    lines: dict[str, str | None] = {}
    if one.suspended is not None:
        lines["suspended"] = f"{one.suspended} ({one.suspended_where})"
    lines |= {
        "current": f"{one.current_rows:,} rows",
        "pending": pending,
        "retained": _retained(one),
        "freshness": f"newest event is {_age(one.freshness_seconds)} old",
        "records": f"{one.rows_in:,} in = {one.rows_out:,} out + {one.rows_filtered:,} filtered "
        f"+ {one.rows_quarantined:,} quarantined",
        "copied to": f"{one.copied_to or '-'}",
        "applied to": f"{one.applied_to or '-'}",
        "last apply": applied,
    }
    if conflicts := [f"{n:,} {name.replace('_', ' ')}" for name, n in one.conflicts.items() if n]:
        lines["conflicts"] = ", ".join(conflicts)
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([one.dataset, *shown])


def _retained(one: DatasetStatus) -> str | None:
    """Applied events that are kept; most datasets keep none."""
    if not one.retained_rows:
        return None
    since = f", of applies after {one.retained_since}" if one.retained_since else ""
    return f"{one.retained_rows:,} applied events, {_bytes(one.retained_bytes)}{since}"


def _bytes(size: int) -> str:
    return f"{size / 1024:,.0f} KiB" if size < 1024**2 else f"{size / 1024**2:,.1f} MiB"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"
