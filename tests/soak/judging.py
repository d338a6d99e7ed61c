"""What two runs came to: checks, and tables for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.streams.levels import trend
from tests.newcomer.checks import Check
from tests.soak.feeding import Options, Ran
from tests.soak.samples import rows

#: Figures that have to level off with maintenance...
COUNTED: Final = ("stored_files", "metadata_bytes")
#: ...and such as hang on what else the machine does, or on applies, of which a table has one in
#: some minutes and whose pending files are data files until then: judged in a longer run.
IN_TIME: Final = ("data_files", "step_seconds", "query_seconds")
JUDGED_MINUTES: Final = 30.0
#: Freshness with maintenance is no worse than without, but for what two equal runs differ by.
_SHARE, _SECONDS = 1.1, 0.2
#: Rows of a table for people: of two hours one every ten minutes.
_PARTS: Final = 12


def checks(on: Ran, off: Ran | None, options: Options) -> Iterator[Check]:
    """What has to hold. Without `off`, freshness is not compared."""
    for ran in (on, off):
        if ran is not None:
            counts = ", ".join(f"{count} {name}" for name, count in sorted(ran.actions.items()))
            said = counts or "no action of maintenance"
            yield Check(_part(ran), "results, and nothing failed", ran.problems, said)
    yield Check(_part(on), "it was maintained", () if on.actions else ("no action was taken",))
    for name in (*COUNTED, *IN_TIME):
        yield _levelled(on, name, timely=options.minutes >= JUDGED_MINUTES)
    if off is not None:
        yield _as_fresh(on, off, timely=options.minutes >= JUDGED_MINUTES)


def _levelled(ran: Ran, name: str, *, timely: bool) -> Check:
    found = trend([(one.second, getattr(one, name)) for one in ran.samples])
    problems = () if found.level_off else (f"{name}: {found}",)
    return _judged(Check(_part(ran), f"{name} levels off", problems, str(found)), name, timely)


def _as_fresh(on: Ran, off: Ran, *, timely: bool) -> Check:
    said = f"with: {on.freshness}; without: {off.freshness}"
    worse = on.freshness.p95 > off.freshness.p95 * _SHARE + _SECONDS
    check = Check("both", "as fresh as without", (said,) if worse else (), said)
    return _judged(check, "freshness", timely)


def _judged(check: Check, name: str, timely: bool) -> Check:
    """A check as it is, or as a figure that is told where the run is too short to judge it."""
    if timely or name in COUNTED:
        return check
    why = f"told, not judged in less than {JUDGED_MINUTES:g} minutes: {check.said}"
    return Check(check.part, check.name, left_out=why)


def _part(ran: Ran) -> str:
    return "on" if ran.maintained else "off"


def figures(ran: Ran) -> str:
    """The samples of a run as a table in Markdown."""
    head = (
        "minute | rows | data files | delete files | snapshots | stored files | data MiB "
        "| manifests | metadata.json | metadata MiB | step s | query s"
    )
    lines = [f"| {head} |", "|---" * 12 + "|"]
    for one in rows(ran.samples, _PARTS):
        cells = (
            f"{one.second / 60:.1f}",
            *(f"{value:,.0f}" for value in (one.rows, one.data_files, one.delete_files)),
            *(f"{value:,.0f}" for value in (one.snapshots, one.stored_files)),
            f"{one.data_bytes / 2**20:.1f}",
            *(f"{value:,.0f}" for value in (one.manifests, one.metadata_json)),
            f"{one.metadata_bytes / 2**20:.1f}",
            f"{one.step_seconds:.2f}",
            f"{one.query_seconds:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
