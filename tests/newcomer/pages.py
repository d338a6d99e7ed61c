"""The commands of a page, each in a process of its own, in a folder that knows nothing of ours.

`tests/docs` runs the same sessions in one process, with a clock that stands still.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.docs.sessions import Shell, difference, run, same
from tests.newcomer.commands import Commands

PAGES = (ROOT / "README.md", ROOT / "docs" / "getting-started.md")
#: What depends on when a page is run: moments of the engine, and ages.
_OF_THE_CLOCK = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "#moment"),
    (re.compile(r"[\d.]+ (?:ms|s|min|h|d)(?= (?:ago|old)\b|$)", re.MULTILINE), "#age"),
)


class Terminal(Shell):
    """Runs commands as they stand, `polynya` too."""

    def _polynya(self, arguments: list[str]) -> str:
        raise AssertionError("commands go through bash here")

    def call(self, text: str) -> str:
        """See `Shell`; nothing is run in this process."""
        if text.split(maxsplit=1)[0] in self._words:
            return super().call(text)
        return self._bash(text)

    def _bash(self, text: str) -> str:
        commands = Commands(self.folder)
        places = [str(Path(sys.executable).parent), os.environ["PATH"]]
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code})\n{text}"],
            cwd=self.folder,
            # Both streams in the order of a terminal.
            env={
                **commands.environment(),
                "PATH": os.pathsep.join(places),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _project(self, name: str) -> None:
        """An empty folder beside an installation, as a clone is after `make install`."""
        self.folder = self.home / name
        self.folder.mkdir(parents=True)
        (self.folder / ".venv").symlink_to(Path(sys.executable).parent.parent)


def differing(page: str, home: Path) -> Iterator[str]:
    """Sessions of a page that print something else than it shows."""
    shell = Terminal(home, lambda _: None)
    for block, now in run(blocks(page), shell):
        if not same(timeless(block.text), timeless(now)):
            yield f"line {block.line}\n{difference(timeless(block.text), timeless(now))}"


def timeless(text: str) -> str:
    """A text without what the clock decides."""
    for pattern, word in _OF_THE_CLOCK:
        text = pattern.sub(word, text)
    return text
