"""Charts of latency and backlog over time, which a dataset and a task show in the same way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from fastapi import Request

from polynya.server.console.page import asked
from polynya.server.routes.latency import Latencies, LatencyShown

#: The parts of a latency that a chart shows, in the order in which they happen.
_PARTS: Final = ("source", "landing", "copy", "apply")
#: Each part of a backlog, which has a chart of its own: its title, the name of its line, its unit.
_BACKLOG: Final = (
    ("waiting_bytes", "What had landed and waited for its copy", "waiting", "bytes"),
    ("waiting_seconds", "For how long the oldest of it waited", "waiting", "s"),
    ("pending_rows", "Rows that waited for their apply", "pending", "rows"),
)
#: Steps after which a time without a measurement is a gap.
_GAP: Final = 1.5
#: Windows of the charts: days, and hours of a step.
WINDOWS: Final[Mapping[int, float]] = {1: 0.25, 7: 1.0, 30: 4.0}
Days: TypeAlias = Literal["1", "7", "30"]
Percentile: TypeAlias = Literal["50", "95", "100"]


async def charts(
    request: Request, ask: Callable[..., Awaitable[Latencies]], days: Days, percentile: Percentile
) -> dict[str, Any]:
    """What `latency.html` shows; `ask` is the route that answers, given a window and a step."""
    window = int(days)
    ask = partial(ask, days=window, hours=WINDOWS[window], percentile=[int(percentile)])
    found, problem = await asked(request, "was measured", ask)
    rank = f"p{percentile}"
    times, steps = _steps(found)
    parts = [{"name": part, "values": _values(steps, "seconds", part, rank)} for part in _PARTS]
    backlog = [
        (title, unit, {"name": name, "values": _values(steps, "backlog", part, rank)})
        for part, title, name, unit in _BACKLOG
    ]
    return {
        "latencies": found,
        "times": times,
        "series": parts,
        "backlog": [one for one in backlog if set(one[2]["values"]) != {None}],
        "windows": list(WINDOWS),
        "days": window,
        "percentile": percentile,
        "problem": problem,
    }


def _values(
    steps: Sequence[LatencyShown | None], group: str, part: str, rank: str
) -> list[float | None]:
    return [None if one is None else getattr(one, group).get(part, {}).get(rank) for one in steps]


def _steps(found: Latencies | None) -> tuple[list[float], list[LatencyShown | None]]:
    """Times and what was measured, with an empty step where nothing was."""
    times: list[float] = []
    steps: list[LatencyShown | None] = []
    for one in found.items if found else ():
        at = datetime.fromisoformat(one.at).timestamp()
        if found and times and at - times[-1] > found.step_seconds * _GAP:
            times.append(times[-1] + found.step_seconds)
            steps.append(None)
        times.append(at)
        steps.append(one)
    return times, steps
