"""Whether a command said what was wrong as the pages promise: code, exit code, state, a way out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.oracle.packs.driver import Printed

BUG: Final = "POLYNYA-BUG-001"
_CODE: Final = re.compile(r"\bPOLYNYA-[A-Z]+-\d{3}\b")
#: What Python, the JVM and their libraries say of themselves. None of it is for a user.
_INTERNALS: Final = re.compile(
    r"^\s+at [\w.$]+\(.*|^Traceback \(most recent.*|^Caused by: .*"
    r"|\b(?:java|javax|scala|sun|py4j)\.\w+\.\w+[^\s]*|\borg\.apache\.[^\s]*|\bPy4J\w*",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a command has to end. One of `codes` is said, none where there are none."""

    exit_code: int
    codes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


def problems(printed: Printed, wanted: Wanted) -> list[str]:
    """What a command did otherwise than it had to; the end of what it said is with them."""
    said = printed.output + printed.errors
    found = []
    if printed.code != wanted.exit_code:
        found.append(f"exit code {printed.code}, not {wanted.exit_code}")
    told = set(codes(said))
    if wanted.codes and not told & set(wanted.codes):
        found.append(f"not said: {' or '.join(wanted.codes)}, but {sorted(told) or 'no code'}")
    if not wanted.codes and told:
        found.append(f"an error was said: {sorted(told)}")
    found += [f"not said: {text!r}" for text in wanted.says if text not in said]
    found += unseemly(said)
    return [*found, f"it said:\n{_end(said)}"] if found else []


def unseemly(said: str) -> list[str]:
    """What no user should ever read: bugs, traces of libraries, errors without a way out."""
    found = []
    if BUG in said:
        found.append(f"{BUG}: a fault of the machine is called a bug")
    found += [f"internals: {match[0].strip()}" for match in _INTERNALS.finditer(said)][:3]
    for error in _errors(said):
        if "  fix: " not in error:
            found.append(f"no fix: {error.splitlines()[0]}")
        if "polynya explain " not in error:
            found.append(f"no page: {error.splitlines()[0]}")
    return found


def codes(said: str) -> Iterator[str]:
    """Codes that a text names, each once, without those that only point to a page."""
    texts = re.sub(r"polynya explain POLYNYA-[A-Z]+-\d{3}", "", said)
    yield from dict.fromkeys(_CODE.findall(texts))


def named_fixes(said: str) -> list[list[str]]:
    """Arguments of the `polynya` commands that the errors name as their fix, each once."""
    found: dict[str, None] = {}
    for error in _errors(said):
        for line in error.splitlines():
            if line.startswith("  fix: "):
                found |= dict.fromkeys(re.findall(r"`polynya ([^`]+)`", line))
    return [shlex.split(one) for one in found]


def _errors(said: str) -> Iterator[str]:
    """Each error of a text, in the four-line form, with the lines that belong to it."""
    lines = said.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("error["):
            rest = lines[number + 1 :]
            count = next((n for n, one in enumerate(rest) if not one.startswith("  ")), len(rest))
            yield "\n".join([line, *rest[:count]])


def _end(said: str) -> str:
    return "\n".join(f"  | {line}" for line in said.splitlines()[-25:])
