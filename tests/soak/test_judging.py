"""The verdicts: what decays, differs or was never maintained is a failure with its figure."""

from __future__ import annotations

from dataclasses import replace

from tests.newcomer.shop.freshness import Freshness
from tests.soak.feeding import Options, Ran, tables
from tests.soak.judging import checks, figures
from tests.soak.samples import Sample

LONG = Options(minutes=120, tables=10, every=2, records=25, rows=100, seed=1)
SHORT = replace(LONG, minutes=8)
LEVEL = tuple(Sample(60.0 * n, *(5.0 for _ in range(11))) for n in range(1, 121))
FRESH = Freshness(100, 1.0, 3.0, 4.0, (), ())
ON = Ran(maintained=True, samples=LEVEL, freshness=FRESH, actions={"x": 3}, problems=())
OFF = replace(ON, maintained=False, actions={})


def failing(on: Ran, off: Ran | None = OFF, options: Options = LONG) -> list[str]:
    return [one.name for one in checks(on, off, options) if not one.holds]


def growing(name: str) -> Ran:
    return replace(ON, samples=tuple(replace(one, **{name: one.second}) for one in LEVEL))


def test_level_and_right_and_fresh_holds() -> None:
    assert failing(ON) == []
    assert failing(ON, None) == []


def test_each_figure_that_grows_fails_by_its_name() -> None:
    for name in ("data_files", "stored_files", "metadata_bytes", "step_seconds", "query_seconds"):
        assert failing(growing(name)) == [f"{name} levels off"]


def test_what_takes_longer_to_settle_is_told_and_not_judged_in_a_short_run() -> None:
    assert failing(growing("step_seconds"), options=SHORT) == []
    assert failing(growing("data_files"), options=SHORT) == []
    assert failing(growing("stored_files"), options=SHORT) == ["stored_files levels off"]


def test_other_faults_fail_too() -> None:
    stale = replace(ON, freshness=replace(FRESH, p95=5.0))

    assert failing(stale) == ["as fresh as without"]
    assert failing(replace(ON, actions={})) == ["it was maintained"]
    assert failing(replace(ON, problems=("rows missing",))) == ["results, and nothing failed"]
    assert failing(ON, replace(OFF, problems=("?",))) == ["results, and nothing failed"]


def test_the_figures_are_a_table_of_twelve_rows() -> None:
    lines = figures(ON).splitlines()

    assert len(lines) == 2 + 12
    assert {line.count("|") for line in lines} == {13}
    assert lines[2].startswith("| 10.0 | 5 |")


def test_tables_have_names_of_their_own_and_a_short_run_is_hastened() -> None:
    assert [one.name for one in tables(4)] == [
        "customers_1",
        "orders_2",
        "payments_3",
        "customers_4",
    ]
    assert (LONG.haste, SHORT.haste) == (1.0, 15.0)
    assert SHORT.settings(maintained=True)["maintenance"]["snapshot_expiry"]["age"] == "40s"
    assert SHORT.settings(maintained=False) == {"maintenance": {"enabled": False}}
