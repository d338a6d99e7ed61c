"""The examples of the pages: fenced blocks, and what comments above them say.

A reader of the rendered page sees plain Markdown. In its text

    <!-- given
    mkdir -p landing/users
    -->

holds commands that run before what follows, and `<!-- not run: why -->` above a block says why no
test runs it. A YAML block whose first line is `# tasks/users.yml` is that file; another one is a
fragment of a task or of a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Generated pages, and records of decisions, hold no examples to follow.
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_PART = re.compile(
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$|^<!-- (?P<word>given|not run:)(?P<said>.*?)-->$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# (\S+\.yml)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block. `excuse` says why it is not run; `given` are the commands before it."""

    line: int
    language: str
    text: str
    excuse: str = ""
    given: str = ""

    @property
    def file(self) -> str | None:
        """The path of the file that it shows, None for a fragment."""
        named = _FILE.match(self.text)
        return named[1] if named else None


def blocks(page: str) -> Iterator[Block]:
    """Blocks of the text of a page, in their order."""
    given = excuse = ""
    end = 0
    for part in _PART.finditer(page):
        if page[end : part.start()].strip():
            excuse = ""
        end = part.end()
        if part["word"] == "given":
            given += part["said"].strip() + "\n"
        elif part["word"]:
            excuse = part["said"].strip()
        else:
            line = page.count("\n", 0, part.start()) + 1
            yield Block(line, part["language"], part["text"], excuse, given)
            given = excuse = ""


def with_blocks(page: str, texts: list[tuple[Block, str]]) -> str:
    """The page with other texts in these blocks."""
    lines = page.splitlines(keepends=True)
    for block, text in reversed(texts):
        lines[block.line : block.line + block.text.count("\n")] = [text]
    return "".join(lines)


def neither_run_nor_explained(page: str) -> list[str]:
    """Blocks that no test would run, although nothing says why."""
    return [
        f"line {block.line}: ```{block.language}"
        for block in blocks(page)
        if not block.excuse
        and block.language != "yaml"
        and not (block.language == "console" and block.text.startswith("$ "))
    ]
