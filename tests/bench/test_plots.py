"""Notes of benchmarks, and the pictures of them: drawn is what was noted, and nothing else."""

from __future__ import annotations

import argparse
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench import plots
from bench.chart import Axis, Chart, Line, Mark, Scale, Spot, spread, ticks
from bench.measurements import Notes, Point, Run, note_option, noted, this_run
from bench.peers.contenders import CONTENDERS
from bench.plots import DRAWN, apply_points, chart_of, draw
from bench.trickle import Options, age_points

SVG = "{http://www.w3.org/2000/svg}"


def run(at: str, *points: Point) -> Run:
    return Run(at, "abc1234", "python -m bench.peers", 2, [0.1, 0.2, 0.3], points)


def circles(svg: str) -> list[str]:
    return [one.text or "" for one in ET.fromstring(svg).iterfind(f".//{SVG}circle/{SVG}title")]


def test_points_are_noted_as_they_come_and_read_again(tmp_path: Path) -> None:
    first, second = run("2026-11-29T10:00:00+00:00"), run("2026-11-29T11:00:00+00:00")
    points = apply_points("polynya", rows=1_000_000, count=10_000, seconds=[0.5, 0.4, 0.6])

    notes = Notes(tmp_path, first)
    notes.add(points[0])
    notes.add(points[1])
    Notes(tmp_path, second).add(*points)

    assert [file.name for file in tmp_path.iterdir()] == ["2026-11-29.json"]
    assert [(one.at, list(one.points)) for one in noted(tmp_path)] == [
        (first.at, points),
        (second.at, points),
    ]


def test_nothing_is_noted_unless_asked(tmp_path: Path) -> None:
    Notes(None, this_run()).add(Point("view", "a", 0, [1.0]))
    Notes(tmp_path, this_run()).add()

    assert list(noted(tmp_path)) == []


def test_a_run_says_its_command_and_circumstances() -> None:
    found = this_run()

    assert found.command.startswith("python -m ")
    assert (len(found.load), found.cores > 0, found.at[:2]) == (3, True, "20")


def test_the_option_has_the_folder_of_the_pages() -> None:
    parser = argparse.ArgumentParser()
    note_option(parser)

    assert parser.parse_args([]).note is None
    assert parser.parse_args(["--note"]).note.parts[-2:] == ("docs", "measurements")


def test_an_apply_is_a_point_of_the_pictures_that_show_it() -> None:
    def pictures(name: str, rows: int, count: int) -> list[str]:
        points = apply_points(name, rows=rows, count=count, seconds=[1.0])
        return [point.picture for point in points]

    assert pictures("delta", 1_000_000, 10_000) == ["apply-share", "apply-batch"]
    assert pictures("delta", 24_000_000, 10_000) == ["apply-batch"]
    assert pictures("paimon-mor", 6_000_000, 60_000) == ["apply-share"]
    assert pictures("paimon-mor", 1_000_000, 100_000) == []
    assert pictures("hudi", 1_000_000, 10_000) == []
    assert set(plots._CONTENDERS) <= {one.name for one in CONTENDERS}


def test_ages_are_those_of_the_second_half() -> None:
    options = Options(500, 30.0, 1.0, "json", "5s", 15.0)

    points = age_points((2.0, 4.5), options)

    assert [(one.series, one.x, one.values) for one in points] == [
        ("p50", 500, [2.0]),
        ("p95", 500, [4.5]),
    ]
    assert age_points((float("nan"), float("nan")), options) == []


def test_a_picture_has_the_newest_value_at_each_place_and_says_when_it_was_measured() -> None:
    (view,) = [one for one in DRAWN if one.name == "view"]
    old = run("2026-11-01T00:00:00+00:00", Point("view", "live", 0, [9.0]))
    new = run(
        "2026-11-02T00:00:00+00:00",
        Point("view", "live", 0, [0.4, 0.5, 0.9]),
        Point("view", "live", 0.1, [2.0]),
        Point("age", "p95", 5, [2.0]),
    )

    chart = chart_of(view, [old, new])

    assert chart is not None
    assert [line.spots for line in chart.lines] == [
        [Spot(0, 0.5, 0.4, 0.9), Spot(0.1, 2.0, 2.0, 2.0)]
    ]
    assert circles(chart.svg()) == ["live, 0 %: 0.5 s", "live, 10 %: 2 s"]
    assert "2026-11-02, commit abc1234, 2 cores" in chart.svg()
    assert "2026-11-01" not in chart.svg()


def test_a_picture_that_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    said = draw([run("2026-11-02T00:00:00+00:00", Point("age", "p95", 5, [2.0]))], tmp_path)

    assert len(said) == len(DRAWN)
    assert all("not measured at two places yet: `python -m bench." in line for line in said)
    assert list(tmp_path.iterdir()) == []


def test_the_pictures_of_the_pages_are_those_of_the_notes(tmp_path: Path) -> None:
    draw(list(noted()), tmp_path)

    drawn = {file.name: file.read_text() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_text() for file in plots.PICTURES.glob("*.svg")}

    assert drawn == kept, "run `python -m bench plots`"


def test_notes_are_json_with_what_is_needed_to_judge_them() -> None:
    for file in plots.FOLDER.glob("*.json"):
        for one in json.loads(file.read_text()):
            assert {"at", "commit", "command", "cores", "load", "points"} == one.keys()
            assert one["at"].startswith(file.stem)


@pytest.mark.parametrize("scale", list(Scale))
def test_a_chart_is_svg_inside_of_its_frame(scale: Scale) -> None:
    spots = [Spot(1.0, 2.0, 1.5, 2.5), Spot(10.0, 30.0, 20.0, 40.0), Spot(500.0, 7.0, 7.0, 7.0)]
    y = Axis("seconds", Scale.LINEAR if scale is Scale.EVEN else scale)
    lines = [Line("a & b", spots), Line("other", spots)]

    svg = Chart("x < y", Axis("rows", scale), y, lines, [Mark("goal", 5.0)], ["a note"]).svg()

    root = ET.fromstring(svg)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"x < y", "a & b", "goal", "a note", "rows", "seconds"} <= set(texts)
    places = [
        (float(one.get("cx", "")), float(one.get("cy", ""))) for one in root.iter(f"{SVG}circle")
    ]
    assert len(places) == 6
    assert all(70 < x < 530 and 50 <= y <= 330 for x, y in places)
    assert places[0][0] < places[1][0] < places[2][0]


def test_ticks_are_round_and_around_the_values() -> None:
    assert ticks(0.4, 12.0, Scale.LOG) == [0.2, 0.5, 1, 2, 5, 10, 20]
    assert ticks(1.0, 1.0, Scale.LOG) == [1, 2]
    assert ticks(0.3, 0.96, Scale.LINEAR) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_names_do_not_cover_each_other() -> None:
    assert spread([50, 10, 52, 49], 16) == [65, 10, 81, 49]
