"""Modules are subjects, packages are families: docs/adr/0051-modules-are-subjects.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.repo.test_layout import ROOT, tracked_files

FOLDERS = ("bench", "constructs", "examples", "runtime", "stacks", "tests")
PACKAGE = Path("runtime/polynya")
MOST_LINES = 800
FEWEST_MODULES = 4
#: A syntax tree of each module would take four seconds.
PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
#: Levels of packages below polynya/.
DEEPEST = 2
#: Packages with fewer modules: one of a family behind one protocol (`streams/kinesis`), and those
#: that must grow or be joined with others; the list may only shrink.
SMALL = {
    "lake",
    "streams/kinesis",
}


def modules() -> list[Path]:
    """Every Python module of ours, below the root."""
    found = [path.relative_to(ROOT) for path in tracked_files() if path.suffix == ".py"]
    return [path for path in found if path.parts[0] in FOLDERS]


def of_package() -> list[Path]:
    """Paths of the runtime's modules, below its package, without `__init__.py`."""
    inside = [path for path in modules() if path.is_relative_to(PACKAGE)]
    return [path.relative_to(PACKAGE) for path in inside if path.name != "__init__.py"]


def too_long(texts: Mapping[Path, str]) -> dict[str, int]:
    """Modules with more than `MOST_LINES` lines."""
    lengths = {str(path): len(text.splitlines()) for path, text in texts.items()}
    return {path: lines for path, lines in lengths.items() if lines > MOST_LINES}


def small(paths: Iterable[Path]) -> set[str]:
    """Packages with few modules, except the root."""
    counts = Counter(str(path.parent) for path in paths)
    return {folder for folder, count in counts.items() if count < FEWEST_MODULES} - {"."}


def shared(texts: Iterable[str]) -> list[str]:
    """Public class names that more than one module defines."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(PUBLIC_CLASS.findall(text)))
    return sorted(name for name, count in counts.items() if count > 1)


def test_no_module_is_longer_than_a_subject_takes() -> None:
    assert too_long({path: (ROOT / path).read_text("utf-8") for path in modules()}) == {}


def test_packages_have_at_least_four_modules() -> None:
    assert small(of_package()) == SMALL


def test_packages_are_at_most_two_levels_deep() -> None:
    assert {str(path.parent) for path in of_package() if len(path.parts) > DEEPEST + 1} == set()


def test_public_class_names_are_unique() -> None:
    texts = [(ROOT / PACKAGE / path).read_text("utf-8") for path in of_package()]

    assert shared(texts) == []


def test_planted_faults_of_structure_are_found() -> None:
    room = Path("room")

    assert too_long({room / "a.py": "x\n" * MOST_LINES}) == {}
    assert too_long({room / "a.py": "x\n" * (MOST_LINES + 1)}) == {"room/a.py": 801}
    assert small([Path("main.py"), *(room / f"m{n}.py" for n in range(3))]) == {"room"}
    assert small([room / f"m{n}.py" for n in range(4)]) == set()
    assert shared(["class A: ...\nclass _B: ...", "class A: ...\nclass _B: ..."]) == ["A"]
