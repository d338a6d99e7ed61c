"""The changelog: releases, newest first, with one linked line per entry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import polynya

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

_RELEASE = re.compile(r"^## \[(?P<name>Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d{2}-\d{2})?$")


def faults(text: str) -> list[str]:
    """What is wrong with the form of a changelog, with line numbers."""
    found = []
    seen: set[str] = set()
    sections: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            sections = set()
            if not _RELEASE.match(line):
                found.append(f"{number}: not a release: {line}")
        elif line.startswith("### "):
            if line[4:] not in SECTIONS or line in sections:
                found.append(f"{number}: unknown or repeated section: {line}")
            sections.add(line)
        elif line.startswith("- "):
            if not re.search(r"\]\(docs/[^)]+\)", line):
                found.append(f"{number}: no link to a page: {line}")
            if line in seen:
                found.append(f"{number}: a repeated line: {line}")
            seen.add(line)
        elif line.startswith((" ", "\t")):
            found.append(f"{number}: an entry of more than one line: {line}")
    return found


def releases(text: str) -> list[str]:
    """Names of the releases, in the order of the page."""
    return [match["name"] for line in text.splitlines() if (match := _RELEASE.match(line))]


def test_each_entry_is_one_line_with_a_link_in_a_known_section() -> None:
    assert faults(CHANGELOG) == []


def test_releases_are_sorted_newest_first_below_unreleased() -> None:
    first, *rest = releases(CHANGELOG)

    assert first == "Unreleased"
    assert rest == sorted({*rest}, key=lambda name: [*map(int, name.split("."))], reverse=True)


def test_the_newest_release_is_the_version_of_the_packages() -> None:
    versions = {
        tomllib.loads((ROOT / package / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        for package in ("runtime", "constructs")
    }

    assert versions == {polynya.__version__} == {releases(CHANGELOG)[1]}


@pytest.mark.parametrize(
    "text",
    [
        "## 0.2.0",
        "### Improved",
        "### Fixed\n\n### Fixed",
        "- No link.",
        "- One ([page](docs/README.md)).\n- One ([page](docs/README.md)).",
        "- One ([page](docs/README.md)).\n  - Two.",
    ],
)
def test_a_planted_fault_is_found(text: str) -> None:
    assert len(faults(text)) == 1
