"""Draw what benchmarks have noted: `python -m bench plots` writes `docs/pictures/*.svg`.

It measures nothing. Of each contender the newest value at each place is drawn; a picture with less
than two places is left out, and named with the commands that measure it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.chart import Axis, Chart, Line, Mark, Scale, Spot
from bench.measurements import FOLDER, Point, Run, noted

PICTURES: Final = FOLDER.parent / "pictures"
#: Contenders of the pictures of applies, ours first.
_CONTENDERS: Final = ("polynya", "iceberg-mor", "delta", "paimon-mor")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: its points, its axes, and how they are measured."""

    name: str
    title: str
    x: Axis
    y: Axis
    measured_by: Sequence[str]
    marks: Sequence[Mark] = ()


def seconds_text(value: float) -> str:
    """Seconds as an axis has them."""
    return f"{value:g} s"


def count_text(value: float) -> str:
    """A number of rows or tables: `6 M`."""
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,.0f}"


def share_text(value: float) -> str:
    """A share: `10 %`."""
    return f"{100 * value:g} %"


_ROWS: Final = Axis("rows of the table", Scale.LOG, count_text)
_SECONDS: Final = Axis("median, with the range of the rounds", Scale.LOG, seconds_text)
_PEERS: Final = f"python -m bench.peers {' '.join(_CONTENDERS)} --together 2 --note"

DRAWN: Final = (
    Picture(
        "apply-share",
        "Applying changes of 1 % of the rows",
        _ROWS,
        _SECONDS,
        (f"{_PEERS} --rows ROWS --percent 1 --memory 5g",),
    ),
    Picture(
        "apply-batch",
        "Applying 10,000 changes",
        _ROWS,
        _SECONDS,
        (f"{_PEERS} --rows ROWS --changes 10000 --memory 5g",),
    ),
    Picture(
        "age",
        "Age of a record in the view, one record a second in each dataset",
        Axis("datasets in one process", Scale.LOG, count_text),
        Axis("age", Scale.LOG, seconds_text),
        ("python -m bench.trickle --tables TABLES --minutes MINUTES --note",),
        (Mark("floor of the p95: 20 s", 20), Mark("goal of the p95: 5 s", 5)),
    ),
    Picture(
        "view",
        "The live view and a scan of its stored rows",
        Axis("records with pending changes", Scale.EVEN, share_text),
        Axis("median, with the range of the rounds", Scale.LINEAR, seconds_text),
        ("python -m bench.floors views --view-shares 0.001 0.03 --note",),
    ),
)


def apply_points(contender: str, *, rows: int, count: int, seconds: Sequence[float]) -> list[Point]:
    """The points of an apply for the pictures that show it; none of other contenders."""
    if contender not in _CONTENDERS:
        return []
    settings = {"contender": contender, "changes": count}
    pictures = [("apply-share", 100 * count == rows), ("apply-batch", count == 10_000)]
    return [
        Point(picture, _NAMES[contender], rows, list(seconds), settings)
        for picture, is_shown in pictures
        if is_shown
    ]


_NAMES: Final = {
    "polynya": "Polynya",
    "iceberg-mor": "Iceberg MERGE, merge-on-read",
    "delta": "Delta MERGE",
    "paimon-mor": "Paimon, merge-on-read",
}


def chart_of(picture: Picture, runs: Iterable[Run]) -> Chart | None:
    """A picture of the newest points; None where there are less than two places."""
    newest: dict[str, dict[float, Point]] = {}
    sources: dict[tuple[str, float], Run] = {}
    for run in runs:
        for point in run.points:
            if point.picture == picture.name and point.values:
                newest.setdefault(point.series, {})[point.x] = point
                sources[point.series, point.x] = run
    if len({x for points in newest.values() for x in points}) < 2:
        return None
    order = list(_NAMES.values())
    names = sorted(newest, key=lambda one: order.index(one) if one in order else -1)
    lines = [
        Line(name, [_spot(point) for _, point in sorted(newest[name].items())]) for name in names
    ]
    return Chart(
        picture.title, picture.x, picture.y, lines, picture.marks, _notes(sources.values())
    )


def _spot(point: Point) -> Spot:
    return Spot(point.x, point.median, min(point.values), max(point.values))


def _notes(runs: Iterable[Run]) -> list[str]:
    """When and where it was measured."""
    found = sorted({(run.at[:10], run.commit, run.cores) for run in runs})
    return [f"{day}, commit {commit}, {cores} cores" for day, commit, cores in found]


def draw(runs: Sequence[Run], folder: Path) -> list[str]:
    """Write the pictures; return a line for each."""
    said = []
    for picture in DRAWN:
        chart = chart_of(picture, runs)
        if chart is None:
            commands = " and ".join(f"`{one}`" for one in picture.measured_by)
            said.append(f"{picture.name}: not measured at two places yet: {commands}")
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{picture.name}.svg").write_text(chart.svg())
        said.append(f"{picture.name}.svg: {len(chart.lines)} lines")
    return said


def main() -> None:
    """Draw all that was noted."""
    print(*draw(list(noted()), PICTURES), sep="\n")


if __name__ == "__main__":
    main()
