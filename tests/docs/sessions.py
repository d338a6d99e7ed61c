"""Console sessions of a page, run as a user types them.

A page starts in the folder of a project that has nothing but its `polynya.yml`. `polynya` runs in
this process, over the Spark session of the tests; everything else in bash, where `python` has the
extensions of DuckDB. The clock stands still
at noon of 21 November 2026. Commands under `given` may also be

    project NAME      start over in the folder of another empty project
    clock TIME        move the clock
    sql STATEMENT     run what `polynya query` refuses, to break something
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from polynya.cli.main import main
from polynya.model.loader import LoadedProject, load_project
from polynya.store.clock import SystemClock
from tests.docs.pages import ROOT, Block
from tests.lab.commands import commands_over
from tests.projects import PROJECT

NOON = datetime.fromisoformat("2026-11-21T12:00:00Z")
#: What differs from run to run: durations, rates, sizes of files.
_VARIES = re.compile(
    r"\d[\d,.]*(?= (s|ms|B|KiB|MiB)\b)|(?<=\()\d[\d,.]*(?=/s\))|(?<=seconds\":)[\d.]+"
)


@dataclass
class Shell:
    """Runs commands. `session` makes the Spark session of a project, as a new process would."""

    home: Path
    session: Callable[[LoadedProject], Any]
    now: datetime = NOON
    folder: Path = field(init=False)
    code: int = 0
    _words: dict[str, Callable[..., None]] = field(init=False)

    def __post_init__(self) -> None:
        self._words = {"project": self._project, "clock": self._clock, "sql": self._sql}
        self._words["cd"] = self._cd
        self._project("page")

    def given(self, script: str) -> None:
        """Run a comment's commands; each has to work."""
        lines = script.splitlines()
        while lines:
            text = _command(lines)
            output = self.call(text)
            assert self.code == 0, f"{text}\n{output}"

    def call(self, text: str) -> str:
        """What a command prints, on both streams as a terminal mixes them."""
        words = shlex.split(text.partition("\n")[0] if "<<" in text else text)
        if words[0].rpartition("/")[2] == "polynya":
            return self._polynya(words[1:])
        if words[0] in self._words:
            self._words[words[0]](*words[1:])
            self.code = 0
            return ""
        return self._bash(text)

    def _polynya(self, arguments: list[str]) -> str:
        printed = io.StringIO()
        with (
            commands_over(self.session) as patch, chdir(self.folder),
            redirect_stdout(printed), redirect_stderr(printed),
        ):  # fmt: skip
            patch.setattr(SystemClock, "now", lambda _: self.now)
            self.code = main(arguments)
        return printed.getvalue()

    def _bash(self, text: str) -> str:
        """Run it in bash, where `polynya` is the command of this tree and `$?` the last code."""
        tools = (
            f'polynya() {{ "{sys.executable}" -m polynya "$@"; }}\n'
            f'python() {{ HOME="{self._duckdb_home()}" "{sys.executable}" "$@"; }}\n'
            f"(exit {self.code})\n"
        )
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-c", tools + text],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _duckdb_home(self) -> Path:
        """A home in which the extensions of DuckDB are, as `INSTALL` leaves them."""
        import duckdb_ext

        made = self.home / ".duckdb" / "extensions"
        if not made.exists():
            made.parent.mkdir(exist_ok=True)
            made.symlink_to(Path(next(iter(duckdb_ext.__path__))) / "extensions")
        return self.home

    def _cd(self, where: str) -> None:
        self.folder = (self.folder / where).resolve()

    def _project(self, name: str) -> None:
        self.folder = self.home / name
        self.folder.mkdir()
        (self.folder / "polynya.yml").write_text(PROJECT, encoding="utf-8")

    def _clock(self, time: str) -> None:
        self.now = datetime.fromisoformat(time)

    def _sql(self, statement: str) -> None:
        self.session(load_project(self.folder)).sql(statement)


def run(blocks: Iterable[Block], shell: Shell) -> Iterator[tuple[Block, str]]:
    """Each session of a page, and its text as it is now: what is shown, where it is the same."""
    for block in blocks:
        shell.given(block.given)
        if block.excuse:
            continue
        if block.file:
            path = shell.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            printed = ""
            for command, shown in commands(block.text):
                output = _tidy(shell.call(command))
                printed += f"$ {command}\n{shown if same(shown, output) else output}"
            yield block, printed


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a session, and the output below it."""
    lines = session.splitlines()
    while lines:
        text = _command(lines).removeprefix("$ ")
        output = ""
        while lines and not lines[0].startswith("$ "):
            output += lines.pop(0) + "\n"
        yield text, output


def _command(lines: list[str]) -> str:
    """Take the first command. It goes on while a quote or a here-document is open."""
    text = lines.pop(0)
    while _is_open(text):
        text += "\n" + lines.pop(0)
    return text


def same(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; `…` in it stands for anything."""
    wanted = re.escape(_comparable(shown)).replace("…", ".*")
    return re.fullmatch(wanted, _comparable(printed), re.DOTALL) is not None


def difference(shown: str, printed: str) -> str:
    """Both, line by line, without what varies."""
    pair = (_comparable(text).splitlines() for text in (shown, printed))
    return "\n".join(difflib.unified_diff(*pair, "the page", "printed now", lineterm=""))


def _comparable(text: str) -> str:
    return _VARIES.sub("#", _tidy(text))


def _tidy(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _is_open(text: str) -> bool:
    here = re.search(r"<<-?\s*'?(\w+)'?", text.partition("\n")[0])
    if here:
        return not text.endswith(f"\n{here[1]}")
    try:
        shlex.split(text)
    except ValueError:
        return True
    return False
