"""The pages hang together: every link leads somewhere, and every page is in the index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.repo.test_layout import tracked_files

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def without_code(text: str) -> str:
    """A page without its fenced blocks and comments."""
    return re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Targets of a page's links inside the tree, with their anchors."""
    for name, anchor in _LINK.findall(without_code(page.read_text("utf-8"))):
        yield (page.parent / name).resolve() if name else page, anchor


def dead(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for target, anchor in links(page):
        if not target.exists():
            found.append(f"{page.relative_to(ROOT)}: no file {target}")
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            found.append(f"{page.relative_to(ROOT)}: {target.name} has no #{anchor}")
    return found


def pages() -> list[Path]:
    """Every page of the tree."""
    return [path for path in tracked_files() if path.suffix == ".md"]


def test_no_link_is_dead() -> None:
    assert [one for page in pages() for one in dead(page)] == []


def test_the_index_links_every_page() -> None:
    linked = {target for target, _ in links(DOCS / "README.md")}

    wanted = {page for page in pages() if page.is_relative_to(DOCS) and page.parent.name != "adr"}
    assert sorted(wanted - linked - {DOCS / "README.md"}) == []
    assert DOCS / "adr" / "README.md" in linked


def test_the_readme_leads_to_the_index() -> None:
    assert DOCS / "README.md" in {target for target, _ in links(ROOT / "README.md")}


@pytest.mark.parametrize(
    "text", ["[gone](gone.md)", "[here](#nowhere)", "[there](concepts.md#nowhere)"]
)
def test_a_dead_link_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "concepts.md").write_text("# Concepts\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)

    assert len(dead(page)) == 1


def test_the_index_of_decisions_lists_each_page_once_by_subject() -> None:
    index = (DOCS / "adr" / "README.md").read_text("utf-8").partition("\n## Former numbers")[0]
    listed = re.findall(r"^- \[(\d+)\. [^]]+\]\(([\w-]+\.md)\): .+\.$", index, re.MULTILINE)

    assert sorted(name for _, name in listed) == sorted(
        path.name for path in (DOCS / "adr").glob("[0-9]*.md")
    )
    assert [name for number, name in listed if int(number) != int(name[:4])] == []


def test_each_decision_has_its_number_and_a_status() -> None:
    faults = []
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title, _, status = path.read_text("utf-8").split("\n", 3)[:3]
        if not title.startswith(f"# {int(path.name[:4])}. "):
            faults.append(f"{path.name}: {title}")
        if not re.fullmatch(r"Status: (accepted|superseded by \[ADR \d+\]\([\w-]+\.md\))", status):
            faults.append(f"{path.name}: {status}")
    assert faults == []


def test_decisions_are_numbered_and_cited_by_names_that_exist() -> None:
    names = sorted(path.name for path in (DOCS / "adr").iterdir() if path.name != "README.md")
    numbers = [int(name.partition("-")[0]) for name in names]

    assert numbers == list(range(len(names)))
    cited = {
        (path, name)
        for path in tracked_files()
        if path.suffix in (".py", ".md", ".yml", ".toml")
        for name in re.findall(r"docs/([\w/.-]+\.md)", path.read_text("utf-8"))
    }
    assert [f"{path}: {name}" for path, name in sorted(cited) if not (DOCS / name).exists()] == []


def test_each_page_says_at_its_top_whom_it_is_for() -> None:
    unfinished = {DOCS / "architecture.md", DOCS / "long-checks.md"}  # may only shrink
    silent = [
        page.name
        for page in sorted(DOCS.glob("*.md"))
        if page not in unfinished
        and not re.match(
            r"# [^\n]+\n\n[^\n]*\b[Ff]or (people|engineers|operators|anyone|authors|everyone|"
            r"new users|users|all readers)\b",
            page.read_text("utf-8"),
        )
    ]
    assert silent == []
