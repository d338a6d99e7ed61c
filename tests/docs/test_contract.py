"""The contract in the repository: what code, tests and pages cite of it is there."""

from __future__ import annotations

import json
import re

import pytest

from tests.docs.contract import Citation, citations, missing, sections
from tests.docs.pages import ROOT
from tests.oracle.cases import DATA, raw_cases
from tests.oracle.not_covered import NOT_COVERED
from tests.repo.test_layout import tracked_files

PAGE = (ROOT / "docs" / "semantics.md").read_text("utf-8")
#: A licence has sections of its own, and these tests cite what is not there.
OTHERS = ("LICENSE", "tests/docs/test_contract.py", "package-lock.json")
TEXTS = (".py", ".md", ".json", ".yml", ".toml", ".txt")


def test_every_section_that_is_cited_exists() -> None:
    found, cited = [], 0
    for path in tracked_files():
        name = str(path.relative_to(ROOT))
        if path.suffix in TEXTS and name not in OTHERS:
            text = path.read_text("utf-8")
            cited += len(list(citations(text)))
            found += [f"{name}, {problem}" for problem in missing(text, PAGE)]

    assert found == []
    assert cited > 30


def test_sections_are_numbered_without_a_gap() -> None:
    assert list(sections(PAGE)) == list(range(1, 14))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"""Semantics section 14."""', "line 1: no section (14,)"),
        ("# semantics\n# sections 2 to 4, 8 and 99", "line 2: no section (2, 3, 4, 8, 99)"),
        ("Semantics section 4, rule 9", "line 1: section 4 has no rule 9"),
        ('section 3, "Key hush"', 'line 1: section 3 has no "Key hush"'),
    ],
)
def test_planted_faults_are_found(text: str, problem: str) -> None:
    assert missing(text, PAGE) == [problem]


def test_citations_are_read_however_they_are_written() -> None:
    text = "sections 2\nand 3; (semantics sections 8, 10, 11); section 4 rule 1; Section 9 of"

    assert list(citations(text)) == [
        Citation(1, (2, 3)),
        Citation(2, (8, 10, 11)),
        Citation(2, (4,), rule=1),
        Citation(2, (9,)),
    ]
    assert missing('Semantics section 3, "Key hash". Section 4, rule 1.', PAGE) == []


def test_the_page_of_the_cases_explains_every_key() -> None:
    page = (DATA / "README.md").read_text("utf-8")

    keys = {key for case in raw_cases() if case["id"] not in NOT_COVERED for key in case}
    assert sorted(key for key in keys if f"`{key}`" not in page) == []
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert json.loads(shown[1]) in raw_cases()
    for name in ("cases.json", "extra_cases.json"):
        count = len(json.loads((DATA / name).read_text("utf-8"))["cases"])
        assert f"`{name}` | {count} cases" in page
