"""Build the pages of docs/ as a site that can be searched: `python docs/site`, or `make docs`.

`docs/README.md` gives the navigation: each of its sections is a section of the site. Pages that
no file holds are made from the code: the Python reference and the errors. A warning of Sphinx,
such as a dead link, a missing anchor or an unknown language of a listing, fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
ROOT = DOCS.parent
STAGED = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"

#: Files outside of docs/ that are pages of the site.
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md")
#: Pages made from the code, below the section "Reference".
MADE = ("[Errors](reference/errors.md)", "[Python](reference/python.md)")

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_ENTRY = re.compile(r"^- \[(?P<title>[^]]+)\]\((?P<target>[^)]+)\)", re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Write the sources of the site, and build it from them; return the exit code."""
    # Late: what this module does with the pages is tested where Sphinx is not installed.
    from sphinx.cmd.build import main as sphinx

    for folder in (STAGED, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    for page in [*DOCS.rglob("*.md"), *(ROOT / name for name in OUTSIDE)]:
        write(staged(page), for_the_site(page.read_text("utf-8"), page))
    decided = STAGED / "adr" / "index.md"
    write(decided, decisions(decided.read_text("utf-8")))
    write(STAGED / "reference" / "errors.md", errors())
    write(STAGED / "reference" / "python.md", python())
    index = STAGED / "index.md"
    write(index, navigation(index.read_text("utf-8")))
    options = ["-q", "-b", "html", "-c", str(HERE), "-d", str(ROOT / "build" / "site-cache")]
    code = sphinx([*options, "--fail-on-warning", "--keep-going", str(STAGED), str(SITE)])
    print(f"{SITE / 'index.html'}" if code == 0 else "the pages have the faults above")
    return code


def write(path: Path, text: str) -> None:
    """Write a page of the site."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def staged(page: Path) -> Path:
    """Where a page stands among the sources of the site."""
    if page.name == "README.md" and page.is_relative_to(DOCS):
        return STAGED / page.parent.relative_to(DOCS) / "index.md"
    return STAGED / (page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.name)


def for_the_site(text: str, page: Path) -> str:
    """The text of a page without its comments, with links that hold on the site."""

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        found = (page.parent / target).resolve()
        if found == DOCS / "adr":
            found /= "index.md"
        if found.suffix != ".md" or not (found.is_relative_to(DOCS) or found.name in OUTSIDE):
            return match["text"]  # a file of the repository that is no page
        path = os.path.relpath(staged(found), staged(page).parent)
        return f"[{match['text']}]({path}{match['anchor'] or ''})"

    # A page that loads nothing from elsewhere shows the arrows of a picture as text.
    parts = _FENCE.split(_COMMENT.sub("", text).replace("```mermaid\n", "```text\n"))
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def navigation(index: str) -> str:
    """The index with one table of contents for each of its sections."""
    trees = []
    for section in index.split("\n## ")[1:]:
        caption = section.partition("\n")[0]
        entries = section + "\n".join(f"- {link}" for link in MADE if caption == "Reference")
        lines = [f"{match['title']} <{match['target']}>" for match in _ENTRY.finditer(entries)]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *lines]))
    return index + "".join(f"\n{tree}\n```\n" for tree in trees)


def decisions(index: str) -> str:
    """The index of the decisions with their table of contents."""
    names = sorted(path.name for path in (DOCS / "adr").glob("[0-9]*.md"))
    return "\n".join([index, "```{toctree}", ":hidden:", "", *names, "```", ""])


def errors() -> str:
    """The page of all error codes, as `polynya explain` shows them."""
    command = [sys.executable, "-m", "polynya", "explain", "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in shown.splitlines()]
    explained = sorted((line for line in lines if "code" in line), key=lambda line: line["code"])
    sections = [explanation(entry) for entry in explained]
    about = "For users who see an error: what its code means, and what helps."
    return "\n".join(["# Errors", "", about, "", *sections])


def explanation(entry: dict[str, str | None]) -> str:
    """The section of one error code: title, parts of the message, page."""
    parts = [f"- {name}: {entry[name]}" for name in ("message", "state", "fix") if entry[name]]
    paragraphs = [f"## {entry['code']}", f"**{entry['title']}**", "\n".join(parts), entry["text"]]
    return "\n\n".join(text for text in paragraphs if text) + "\n"


def python() -> str:
    """The page of the public names of both packages, from their docstrings."""
    lines = ["# Python", "", "For programs that load projects, and for stacks of your own.", ""]
    for name in ("polynya", "polynya_constructs"):
        lines += [f"## {name}", "", "```{eval-rst}"]
        package = importlib.import_module(name)
        for public in sorted(package.__all__):
            value = getattr(package, public)
            if inspect.isclass(value):
                lines += [f".. autoclass:: {name}.{public}", ""]
            elif inspect.isfunction(value):
                lines += [f".. autofunction:: {name}.{public}", ""]
        lines += ["```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
