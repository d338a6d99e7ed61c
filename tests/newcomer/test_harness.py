"""The harness itself: pages that are out of date, views that lag behind, checks that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.newcomer import __main__ as way
from tests.newcomer.checks import Check, table, tried
from tests.newcomer.continuous import missing_markers
from tests.newcomer.pages import differing, timeless
from tests.newcomer.shop.feed import FIRST_MARKER

PAGE = """\
```console
$ polynya validate --project shop
valid: project {name}, target local, 1 task, 1 declared dataset
$ echo $?
{code}
```
"""


def test_a_page_is_run_as_it_stands_and_what_is_out_of_date_is_found(tmp_path: Path) -> None:
    right = "<!-- given\npolynya init shop\n-->\n" + PAGE.format(name="shop", code=0)
    wrong = "<!-- given\npolynya init shop\n-->\n" + PAGE.format(name="mall", code=1)

    assert list(differing(right, tmp_path / "right")) == []
    (found,) = differing(wrong, tmp_path / "wrong")

    assert "+valid: project shop" in found
    assert "-#" in found or "-1" in found


def test_only_what_the_clock_decides_is_left_out_of_the_comparison() -> None:
    shown = (
        "  freshness  newest event is 324.5 d old\n  last copy  2026-11-21 12:00:00 UTC, 0.0 s ago"
    )
    now = (
        "  freshness  newest event is 1.2 h old\n  last copy  2027-01-01 08:15:00 UTC, 3.1 min ago"
    )

    assert timeless(shown) == timeless(now)
    assert timeless('{"at":"2026-01-01T00:00:01Z"}') != timeless('{"at":"2026-01-01T00:00:02Z"}')


def test_a_live_view_that_lags_behind_the_files_is_found() -> None:
    shown = {FIRST_MARKER + number for number in (3, 4, 5)}

    assert missing_markers({0, 1, 2, 3, 4, 5}, shown, "orders") == []
    (found,) = missing_markers({0, 1, 2, 3, 4, 5, 6}, shown, "orders")
    assert found.endswith("[6]")


def test_a_check_that_breaks_down_fails_and_the_table_says_why() -> None:
    def broken() -> list[str]:
        raise RuntimeError("no such luck")

    found = [tried("a", "works", lambda: []), tried("a", "breaks", broken)]
    shown = table([*found, Check("b", "other", left_out="not here")])

    assert [one.holds for one in found] == [True, False]
    assert found[1].problems == ("RuntimeError: no such luck",)
    assert [line.split()[2] for line in shown.splitlines()[1:]] == ["ok", "FAILED", "left"]


@pytest.mark.parametrize(("problems", "code"), [((), 0), (("rows missing",), 1)])
def test_the_exit_code_says_whether_all_holds(
    problems: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [Check("feed", "first load", problems, figures={"records": 3})]
    monkeypatch.setattr(way, "_checks", lambda *_: iter(checks))
    result = tmp_path / "result.json"

    assert way.main(["--folder", str(tmp_path), "--json", str(result)]) == code

    text = result.read_text()
    assert f'"ok": {"false" if code else "true"}' in text
    assert '"records": 3' in text
    assert bool(list(tmp_path.glob("newcomer-*"))) is bool(code)


def test_a_way_without_a_check_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way, "_checks", lambda *_: iter(()))

    assert way.main(["--folder", str(tmp_path)]) == 1
