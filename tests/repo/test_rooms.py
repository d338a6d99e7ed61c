"""Modules that a person can read at a sitting, in folders that fit on a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.repo.test_layout import ROOT, tracked_files

FOLDERS = ("bench", "constructs", "examples", "runtime", "stacks", "tests")
MOST_LINES = 399
MOST_MODULES = 15


def modules() -> list[Path]:
    """Every Python module of ours, below the root."""
    found = [path.relative_to(ROOT) for path in tracked_files() if path.suffix == ".py"]
    return [path for path in found if path.parts[0] in FOLDERS]


def too_long(texts: Mapping[Path, str]) -> dict[str, int]:
    """Modules with more lines than a person reads at a sitting."""
    lengths = {str(path): len(text.splitlines()) for path, text in texts.items()}
    return {path: lines for path, lines in lengths.items() if lines > MOST_LINES}


def crowded(paths: Iterable[Path]) -> dict[str, int]:
    """Folders with more loose modules than fit on a screen."""
    loose = Counter(
        str(path.parent) for path in paths if path.name not in {"__init__.py", "conftest.py"}
    )
    return {folder: count for folder, count in loose.items() if count > MOST_MODULES}


def test_no_module_is_longer_than_a_person_reads() -> None:
    assert too_long({path: (ROOT / path).read_text("utf-8") for path in modules()}) == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_holds_more_loose_modules_than_fit_on_a_screen(folder: str) -> None:
    assert crowded(path for path in modules() if path.parts[0] == folder) == {}


def test_a_long_module_and_a_crowded_folder_would_be_seen() -> None:
    room = Path("runtime/room")
    loose = [room / f"m{number}.py" for number in range(MOST_MODULES)]

    assert too_long({room / "a.py": "x\n" * MOST_LINES}) == {}
    assert too_long({room / "a.py": "x\n" * (MOST_LINES + 1)}) == {"runtime/room/a.py": 400}
    assert crowded([*loose, room / "__init__.py", room / "conftest.py", room / "in/b.py"]) == {}
    assert crowded([*loose, room / "one_more.py"]) == {"runtime/room": MOST_MODULES + 1}
