"""Differences between two sets of files as text that no terminal takes for commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal, TypeAlias

from polynya.model.documents.yaml_reader import MAX_FILE_BYTES

Change: TypeAlias = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How one file differs; `text` is a unified diff."""

    path: str
    change: Change
    text: str


def differences(
    before: Mapping[str, bytes], after: Mapping[str, bytes], names: tuple[str, str]
) -> Iterator[FileDifference]:
    """How files change from `before` to `after`, which people call by `names`."""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change: Change = "added" if old is None else "removed" if new is None else "changed"
        here, there = (
            f"{name}/{path}" if content is not None else "/dev/null"
            for name, content in zip(names, (old, new), strict=True)
        )
        lines = unified_diff(_lines(old), _lines(new), here, there, lineterm="")
        yield FileDifference(path, change, "\n".join(map(_plain, lines)))


def _lines(content: bytes | None) -> list[str]:
    if content is None:
        return []
    if len(content) > MAX_FILE_BYTES:
        return [f"(larger than {MAX_FILE_BYTES} bytes)"]
    # Lines end as they do in a file: form feeds and the like are part of a line.
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    # A last line without its end is another one than with it.
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]} (no end of line)"]


def _plain(line: str) -> str:
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in line
    )
