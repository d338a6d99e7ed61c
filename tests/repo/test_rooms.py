"""Modules that a person can read at a sitting, in folders that fit on a screen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.repo.test_layout import ROOT, tracked_files

FOLDERS = ("bench", "constructs", "examples", "runtime", "stacks", "tests")
MOST_LINES = 399
MOST_MODULES = 15


def modules() -> list[Path]:
    """Every Python module of ours."""
    found = [path for path in tracked_files() if path.suffix == ".py"]
    return [path for path in found if path.relative_to(ROOT).parts[0] in FOLDERS]


def test_no_module_is_longer_than_a_person_reads() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in modules()}

    assert {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > MOST_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_holds_more_loose_modules_than_fit_on_a_screen(folder: str) -> None:
    named = (path for path in modules() if path.name not in {"__init__.py", "conftest.py"})
    loose = Counter(str(path.relative_to(ROOT).parent) for path in named)

    crowded = {where: n for where, n in loose.items() if n > MOST_MODULES}
    assert {where for where in crowded if Path(where).parts[0] == folder} == set()
