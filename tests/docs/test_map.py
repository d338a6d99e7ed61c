"""The map of the tree, docs/architecture.md, shows the tree as it is."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

RUNTIME = ROOT / "runtime" / "polynya"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def paths(page: str) -> set[str]:
    """Paths that a page names: in backquotes, and packages in its picture."""
    quoted = re.findall(r"`([\w.*-]+/[\w./*-]*)`", page)
    picture = "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    return {*quoted, *re.findall(r"\b([a-z]+/)", picture)}


def missing(page: str) -> list[str]:
    """Paths of a page that are neither in the tree nor in the runtime, and names not in a file."""
    bases = (ROOT, RUNTIME, RUNTIME / "lake")
    found = [path for path in paths(page) if not any([*base.glob(path)] for base in bases)]
    for name, path in re.findall(r"`(\w+)` in `([\w./]+\.py)`", page):
        files = [base / path for base in bases if (base / path).is_file()]
        found += [f"{name} in {path}" for file in files if name not in file.read_text("utf-8")]
    return sorted(found)


def rooms() -> set[str]:
    """Every package of the runtime, down to the second level."""
    packages = [path.parent for path in RUNTIME.glob("*/__init__.py")]
    packages += [path.parent for path in RUNTIME.glob("*/*/__init__.py")]
    return {f"{path.relative_to(RUNTIME)}/" for path in packages}


def test_what_the_map_names_exists() -> None:
    assert missing(PAGE) == []


def test_every_module_that_a_page_names_exists() -> None:
    found = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in (ROOT / "docs").glob("*.md")
        for name in re.findall(r"`([\w./-]+/[\w.-]+\.py)`", page.read_text("utf-8"))
        if not any((base / name).is_file() for base in (ROOT, RUNTIME))
    }

    assert found == set()


def test_every_room_is_on_the_map() -> None:
    assert sorted(rooms() - paths(PAGE)) == []


def test_planted_faults_are_found() -> None:
    page = "`lake/attic/` and `undecided` in `engine/policy.py`\n```text\ncellar/\n```"

    assert missing(page) == ["cellar/", "lake/attic/", "undecided in engine/policy.py"]
