"""`polynya latency`: how long changes took, at the source, landed, in copies, until applies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Final

from polynya.cli.context import Context
from polynya.cli.visible import visible
from polynya.model.config.fields import parse_duration
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.observe.latency import PARTS, BacklogPart, LatencyStep, latency_series
from polynya.store.clock import SystemClock

#: The parts of a backlog in words, and their units.
_BACKLOG: Final[tuple[tuple[BacklogPart, str, str], ...]] = (
    ("waiting_bytes", "waiting", "bytes"),
    ("waiting_seconds", "waiting for", "s"),
    ("pending_rows", "pending", "rows"),
)


def latency(
    *datasets: str,
    window: str = "1d",
    step: str = "1h",
    percentiles: tuple[int, ...] = (50, 95, 99),
    context: Context,
) -> None:
    """Show how long changes took: at the source, landed, in the copy, until the apply; what waited.

    Percentiles are over the worst of each five minutes, in seconds. `total` ends when live views
    show a change. The backlog is what had landed and waited for its copy, and the rows that waited
    for their apply. Kept where the project sets `latency`. Needs no Java.

    For example: `polynya latency users --window 7d --step 1d`.

    Args:
        datasets: names or globs of datasets, with or without their schema. Default: all.
        window: how far back, such as `12h` or `7d`.
        step: length of a step, at least `5m`.
        percentiles: may be given several times.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.latency import read_latencies

    project, now = context.load(tolerant=True), SystemClock().now()
    if project.project.latency is None:
        context.output.note("the project does not keep latencies: set `latency: {}` in its file")
    try:
        length, width = parse_duration(window), parse_duration(step)
        if length > timedelta(days=366):
            raise WRONG_USAGE("`--window` is at most 366 days")
        samples = [
            one
            for one in read_latencies(project, now - length)
            if not datasets or any(_is_called(one.dataset, glob) for glob in datasets)
        ]
        series = latency_series(
            samples, now=now, window=length, step=width, percentiles=percentiles
        )
    except ValueError as error:
        raise WRONG_USAGE(str(error)) from None
    for one in series:
        data = {
            "at": one.at, "dataset": one.dataset, "samples": one.samples, "rows": one.rows,
            **{
                f"{part}_seconds": {f"p{percent}": value for percent, value in values.items()}
                for part, values in one.percentiles.items()
            },
            **{
                str(part): {f"p{percent}": value for percent, value in values.items()}
                for part, values in one.backlog.items()
            },
        }  # fmt: skip
        text = f"{one.dataset} {one.at:%Y-%m-%d %H:%M}  {_parts(one)}"
        context.output.result("latency", data, visible(text))
    if not series:
        context.output.note("nothing was measured in this time")


def _is_called(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) or fnmatchcase(name.partition(".")[2], glob)


def _parts(step: LatencyStep) -> str:
    found: list[tuple[str, Mapping[int, float], str]] = [
        (part, step.percentiles[part], "s") for part in PARTS if part in step.percentiles
    ]
    found += [
        (words, step.backlog[part], unit) for part, words, unit in _BACKLOG if part in step.backlog
    ]
    return ", ".join(
        f"{name} "
        + "/".join(f"{value:,.{1 if unit == 's' else 0}f}" for value in values.values())
        + f" {unit}"
        for name, values, unit in found
    )
