"""What the console brings along: small scripts, unchanged files of others, nothing inline."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import pytest

from polynya.server.console.assets import asset, icon
from polynya.server.console.navigation import ENTRIES

_FOLDER = files("polynya.server.console")
#: SHA-256 of the files of others, as they are in their packages.
_OTHERS = {
    "dagre.min.js": "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578",
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
_TEMPLATES = sorted(
    (one for one in (_FOLDER / "templates").iterdir() if one.name.endswith(".html")),
    key=lambda one: one.name,
)
#: What the content security policy of pages forbids, and what would end the escaping.
_FORBIDDEN = {
    "an inline script": r"<script(?![^>]*\ssrc=)",
    "an inline style": r"<style|\sstyle=",
    "a handler": r"\son[a-z]+=|hx-on",
    "unescaped text": r"\|\s*safe\b|autoescape",
    "an address of others": r"(?:src|href|hx-get|action)=\"(?:https?:)?//",
}


def test_all_scripts_together_stay_below_60_kilobytes() -> None:
    assert len(asset("console.js").compressed) < 60_000


@pytest.mark.parametrize("name", _OTHERS)
def test_files_of_others_are_as_they_were_published(name: str) -> None:
    content = (_FOLDER / "assets" / name).read_bytes()

    assert hashlib.sha256(content).hexdigest() == _OTHERS[name]
    assert name in (_FOLDER / "assets" / "third-party.txt").read_text("utf-8")


@pytest.mark.parametrize("what", _FORBIDDEN)
def test_no_template_has(what: str) -> None:
    found = [
        f"{one.name}: {match.group()}"
        for one in _TEMPLATES
        for match in re.finditer(_FORBIDDEN[what], one.read_text("utf-8"))
    ]

    assert found == []


def test_each_icon_that_a_page_names_is_there() -> None:
    named = {
        name
        for one in _TEMPLATES
        for name in re.findall(r"icon\(\"([a-z0-9-]+)\"\)", one.read_text("utf-8"))
    }
    for name in named | {entry.icon for entry in ENTRIES}:
        assert "<svg" in icon(name), name
