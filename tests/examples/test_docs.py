"""The pages name what there is: rules, files, decisions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "polynya"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULE = re.compile(
    r'RecordError\(\s*"(\w+)"|WHOLE_FILE, "(\w+)"|Refusal\(info, "(\w+)"'
    r'|[=(]\s*\("([a-z]+_[a-z]+)", |THEN \'(\w+)\''
)


def rules() -> set[str]:
    """Names of quarantine rules, as the code spells them."""
    files = [*(PACKAGE / "formats").rglob("*.py"), PACKAGE / "lake" / "copy" / "derive.py"]
    found = RULE.findall("\n".join(path.read_text() for path in files))
    return {name for groups in found for name in groups if "_" in name} - {"ts_us"}


def test_every_quarantine_rule_is_documented() -> None:
    page = (ROOT / "docs" / "landing-formats.md").read_text()

    assert {"null_key", "older_than_horizon", "bad_json", "null_sequence"} <= rules()
    assert {rule for rule in rules() if f"`{rule}`" not in page} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)", page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            slugs = {
                re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in headings
            }
            assert anchor[1:] in slugs, f"{target}{anchor}"


def test_decisions_that_the_code_refers_to_exist() -> None:
    sources = [*PACKAGE.rglob("*.py"), *(ROOT / "bench").glob("*.py")]
    for path in sources:
        for name in re.findall(r"docs/adr/([\w-]+\.md)", path.read_text()):
            assert (ROOT / "docs" / "adr" / name).is_file(), f"{path}: {name}"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]

    assert numbers == list(range(len(numbers)))
