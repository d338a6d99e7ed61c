"""The soak in its short form. `make soak` runs all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.__main__ import main

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]
#: Both runs at the same time, so that other tests on these cores slow them down alike.
SHORT = ("--minutes", "10", "--tables", "3", "--rows", "2000", "--beside")


def test_tables_that_are_fed_stay_in_shape(tmp_path: Path) -> None:
    assert main([*SHORT, "--folder", str(tmp_path)]) == 0
