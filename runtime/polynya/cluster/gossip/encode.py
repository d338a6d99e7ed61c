"""Messages as records: JSON of a version, none larger than `MOST_BYTES`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from polynya.cluster.gossip.messages import Heartbeat, Hint, Sender, UnitHeard

#: Version of the records. Fields may be added to it; another meaning is another version.
VERSION: Final = 1
#: Grows with each field that is added; who reads may pass over what it does not know.
MINOR: Final = 1
#: A record has at most so many bytes.
MOST_BYTES: Final = 10 * 1024
#: A heartbeat has at most so many records: some 700 units, those that matter most.
MOST_PARTS: Final = 8
#: A reason has at most so many characters: the state of the node has all of it.
MOST_REASON: Final = 160
#: A hint that concerns more processes than this is for all.
MOST_ADDRESSEES: Final = 64


@dataclass(slots=True)
class _Part:
    units: list[UnitHeard]
    size: int


def heartbeat_records(heartbeat: Heartbeat) -> list[bytes]:
    """A heartbeat in as many records as it takes.

    The units with the largest backlog come first, then those with the largest load; units for which
    there is no room are counted in `left_out`.
    """
    # As long as the head may become.
    longest = replace(
        heartbeat, units=(), part=MOST_PARTS, parts=MOST_PARTS, left_out=len(heartbeat.units)
    )
    room = MOST_BYTES - len(_bytes(_of_heartbeat(longest)))
    parts, left_out = [_Part([], 0)], 0
    for unit in sorted(heartbeat.units, key=_importance):
        size = len(_bytes(_of_unit(unit))) + 1
        if parts[-1].size + size > room and size <= room and len(parts) < MOST_PARTS:
            parts.append(_Part([], 0))
        if parts[-1].size + size > room:
            left_out += 1
            continue
        parts[-1].units.append(unit)
        parts[-1].size += size
    return [
        _bytes(
            _of_heartbeat(
                replace(
                    heartbeat,
                    units=tuple(part.units),
                    part=number,
                    parts=len(parts),
                    left_out=left_out,
                )
            )
        )
        for number, part in enumerate(parts, 1)
    ]


def hint_record(hint: Hint) -> bytes:
    """A hint as a record."""
    to = list(hint.to) if len(hint.to) <= MOST_ADDRESSEES else []
    return _bytes({**_head(hint.kind, hint.sender, hint.seq, hint.at), "to": to})


def _importance(unit: UnitHeard) -> tuple[float, float, str, str]:
    return -unit.backlog_seconds, -unit.load, *unit.unit


def _head(kind: str, sender: Sender, seq: int, at: datetime) -> dict[str, Any]:
    return {
        "v": VERSION,
        "minor": MINOR,
        "type": kind,
        "cluster": sender.cluster,
        "node": sender.node,
        "incarnation": sender.incarnation,
        "seq": seq,
        "at": at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }


def _of_heartbeat(heartbeat: Heartbeat) -> dict[str, Any]:
    return {
        **_head("node", heartbeat.sender, heartbeat.seq, heartbeat.at),
        "state": heartbeat.state,
        "cpu": _rounded(heartbeat.cpu),
        "memory": _rounded(heartbeat.memory),
        "part": heartbeat.part,
        "parts": heartbeat.parts,
        "left_out": heartbeat.left_out,
        "units": [_of_unit(unit) for unit in heartbeat.units],
    }


def _of_unit(unit: UnitHeard) -> dict[str, Any]:
    more = {"state": unit.state, "reason": shortened(unit.reason)}
    return {
        "task": unit.unit.task,
        "name": unit.unit.name,
        "epoch": unit.epoch,
        "load": _rounded(unit.load),
        "lag_seconds": _rounded(unit.lag_seconds),
        "backlog_seconds": _rounded(unit.backlog_seconds),
        **{name: text for name, text in more.items() if text},
    }


def shortened(reason: str) -> str:
    """A reason as a record has it: one short line."""
    line = "".join(each if each.isprintable() else " " for each in reason)
    return line if len(line) <= MOST_REASON else f"{line[: MOST_REASON - 1]}…"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
