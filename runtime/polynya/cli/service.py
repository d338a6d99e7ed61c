"""How a verb that runs for weeks writes: events as lines of JSON, and figures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from polynya.cli.json_values import to_json
from polynya.cli.options import usage_error
from polynya.cli.output import JsonOutput
from polynya.observe.emf import emf_records
from polynya.observe.events import Event, Level
from polynya.observe.figures import MetricsSink, Minute
from polynya.observe.prometheus import PrometheusText
from polynya.store.clock import SystemClock


def voice(output: JsonOutput) -> Callable[[Event], None]:
    """Write events as lines; who does not read them any more stops nothing."""

    def tell(event: Event) -> None:
        if event.level is Level.PROGRESS:
            # A log for weeks holds what was done.
            return
        now = SystemClock().now()
        with suppress(OSError):
            output.result(event.type, {"at": now, **event.as_json()})

    return tell


def metrics_sink(
    form: Literal["emf", "prometheus"] | None, file: Path | None
) -> MetricsSink | None:
    """What takes the figures of each minute, None where nobody wants them."""
    if form is None:
        if file is not None:
            raise usage_error("`--metrics-file` needs `--metrics`")
        return None
    if form == "emf":
        return partial(_write_emf, file)
    if file is None:
        raise usage_error("`--metrics prometheus` needs `--metrics-file`")
    return partial(_write_prometheus, file, PrometheusText())


def _write_emf(file: Path | None, minute: Minute) -> None:
    lines = "".join(to_json(record) + "\n" for record in emf_records(minute))
    if file is None:
        sys.stdout.write(lines)
        sys.stdout.flush()
        return
    with file.open("a", encoding="utf-8") as out:
        out.write(lines)


def _write_prometheus(file: Path, text: PrometheusText, minute: Minute) -> None:
    """Replace the file: who reads it must not find half of it."""
    # The collector reads `*.prom` only.
    new = file.with_name(f".{file.name}.new")
    new.write_text(text.of(minute), encoding="utf-8")
    new.replace(file)
