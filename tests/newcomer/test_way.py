"""The newcomer's way in its short form. `make newcomer` goes all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.newcomer.__main__ import main

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]
#: Other tests share the cores here, so that freshness is judged by `make newcomer` alone; a stall
#: of a minute is one everywhere.
SHORT = ("--records", "20000", "--minutes", "1", "--floor", "60")


@pytest.mark.parametrize(
    "parts",
    [("pages",), ("feed", "continuous", "kills"), ("machines",), ("under-way",)],
    ids=" ".join,
)
def test_all_of_it_holds(parts: tuple[str, ...], tmp_path: Path) -> None:
    assert main([*SHORT, "--parts", *parts, "--folder", str(tmp_path)]) == 0
