"""What `make docs` does with the pages before Sphinx reads them."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
INDEX = (DOCS / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The module behind `python docs/site`."""
    spec = importlib.util.spec_from_file_location("site_of_docs", DOCS / "site" / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_follows_a_readers_first_week() -> None:
    assert re.findall(r"^## (.+)$", INDEX, re.MULTILINE) == [
        "Start", "Guides", "Concepts", "Reference", "Operations", "How it works",
    ]  # fmt: skip


def test_navigation_has_each_page_of_the_index_once(site: ModuleType) -> None:
    shown = site.navigation(site.for_the_site(INDEX, DOCS / "README.md"))

    targets = re.findall(r"^[^<\n]+ <([^>]+)>$", shown, re.MULTILINE)
    assert len(targets) == len({*targets})
    assert {"getting-started.md", "adr/index.md", "CHANGELOG.md"} <= {*targets}
    assert {"reference/errors.md", "reference/python.md"} <= {*targets}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](concepts.md#order)", "[a](concepts.md#order)"),
        ("[a](README.md)", "[a](index.md)"),
        ("[a](../CHANGELOG.md)", "[a](CHANGELOG.md)"),
        ("[a](adr/)", "[a](adr/index.md)"),
        ("[a](#here)", "[a](#here)"),
        ("[a](https://example.com/x.md)", "[a](https://example.com/x.md)"),
        ("[a](../examples/x.service)", "a"),
        ("<!-- given\nls -->\ntext", "text"),
        ("```sh\n[a](../examples/x.service)\n```", "```sh\n[a](../examples/x.service)\n```"),
        ("[dead](gone.md)", "[dead](gone.md)"),
    ],
)
def test_links_of_a_page_hold_on_the_site(site: ModuleType, written: str, shown: str) -> None:
    assert site.for_the_site(written, DOCS / "page.md") == shown


def test_the_page_of_errors_has_each_code_with_its_parts(site: ModuleType) -> None:
    shown = site.errors()

    assert len(re.findall(r"^## POLYNYA-", shown, re.MULTILINE)) > 200
    section = shown.partition("## POLYNYA-QUA-001\n")[2].partition("\n## ")[0]
    assert "**no such quarantined record**" in section
    assert "- fix: run `polynya quarantine list` to see the ids" in section
