"""Epochs of a binlog: after a reset, or on another server, its files begin at 1 again. Pure.

Tables order events by the number of the file and the place in it. So that what comes later stays
later, the numbers that land are raised by the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from polynya.gateway.landing.places import BINLOGS, place_of_offset
from polynya.gateway.source import Offset

#: Ten digits are read: so many files and a hundred epochs.
_FILES: Final = 100_000_000
_FILE: Final = re.compile(rb'"file":"([^"]*\.)(\d+)"')


def next_epoch(connector: str, epoch: int, before: Offset, begins: Offset) -> int:
    """The epoch of a capture that begins anew, after one that had come as far as `before`."""
    if connector not in BINLOGS or not begins:
        return epoch
    is_later = place_of_offset(connector, begins) >= place_of_offset(connector, before)
    return epoch if is_later else epoch + 1


def source_in_epoch(source: Mapping[str, Any], epoch: int) -> Mapping[str, Any]:
    """What the rows of a view carry, with the number of its file raised by the epoch."""
    if not epoch or "file" not in source:
        return source
    base, dot, number = str(source["file"]).rpartition(".")
    return {**source, "file": f"{base}{dot}{int(number) + epoch * _FILES}"}


def in_epoch(lines: bytes, epoch: int) -> bytes:
    """Event lines with the numbers of their files raised by the epoch."""
    if not epoch:
        return lines
    return b"".join(_raised(line, epoch) for line in lines.splitlines(keepends=True))


def _raised(line: bytes, epoch: int) -> bytes:
    """Values of a row stand before `source`, and the text of a statement behind it."""
    is_statement = b'"ddl":' in line and b'"op":' not in line
    found = list(_FILE.finditer(line))
    if not found:
        return line
    file = found[0] if is_statement else found[-1]
    number = int(file[2]) + epoch * _FILES
    return line[: file.start(2)] + b"%d" % number + line[file.end(2) :]
