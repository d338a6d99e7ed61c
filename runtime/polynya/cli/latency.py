"""`polynya latency`: how long changes took, at the source, landed, in copies, until applies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase

from polynya.cli.context import Context
from polynya.cli.visible import visible
from polynya.model.config.fields import parse_duration
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.observe.latency import PARTS, LatencyPart, latency_series
from polynya.store.clock import SystemClock


def latency(
    *datasets: str,
    window: str = "1d",
    step: str = "1h",
    percentiles: tuple[int, ...] = (50, 95, 99),
    context: Context,
) -> None:
    """Show how long changes took: at the source, landed, in the copy, until the apply.

    Percentiles are over the worst of each five minutes, in seconds. `total` ends when live views
    show a change. Kept where the project sets `latency`. Needs no Java.

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
        }  # fmt: skip
        text = f"{one.dataset} {one.at:%Y-%m-%d %H:%M}  {_parts(one.percentiles)}"
        context.output.result("latency", data, visible(text))
    if not series:
        context.output.note("nothing was measured in this time")


def _is_called(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) or fnmatchcase(name.partition(".")[2], glob)


def _parts(percentiles: Mapping[LatencyPart, Mapping[int, float]]) -> str:
    parts = [
        f"{part} " + "/".join(f"{value:,.1f}" for value in percentiles[part].values()) + " s"
        for part in PARTS
        if part in percentiles
    ]
    return ", ".join(parts)
