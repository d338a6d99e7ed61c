"""Records as messages, read as what they are: bytes that anybody may have written.

Nothing in a record raises, and nothing in it is used as a path or as SQL. What is no message of
this cluster is one of the reasons `Skipped`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias, get_args

from polynya.cluster.gossip.encode import MOST_ADDRESSEES, MOST_BYTES, MOST_PARTS, VERSION
from polynya.cluster.gossip.messages import Heartbeat, Hint, HintKind, Sender, UnitHeard
from polynya.cluster.unit import JobKey

#: Longest name in a message.
_LONGEST: Final = 512
_LARGEST: Final = 2**63 - 1
_MOST_SECONDS: Final = 1e10
_HINTS: Final = get_args(HintKind)


class Skipped(StrEnum):
    """Why a record was passed over."""

    HUGE = "larger than a message"
    NOT_JSON = "not JSON"
    VERSION = "of another version"
    TYPE = "of an unknown type"
    FIELD = "a field that is wrong"
    CLUSTER = "of another cluster"
    REPEATED = "heard before"
    LATE = "older than what was heard"
    CROWDED = "of more processes than a cluster has"


Message: TypeAlias = Heartbeat | Hint


def read_record(data: bytes, cluster: str) -> Message | Skipped:
    """The message in a record, or why it is none of this cluster."""
    if len(data) > MOST_BYTES:
        return Skipped.HUGE
    try:
        found = json.loads(data, parse_constant=_no_number, object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError):
        return Skipped.NOT_JSON
    if not isinstance(found, dict):
        return Skipped.NOT_JSON
    version = found.get("v")
    if type(version) is not int or version != VERSION:
        return Skipped.VERSION
    if found.get("cluster") != cluster:
        return Skipped.CLUSTER
    try:
        return _message(found)
    except (KeyError, ValueError):
        return Skipped.FIELD


def _message(found: dict[str, Any]) -> Message | Skipped:
    kind = found["type"]
    sender = Sender(_text(found["cluster"]), _text(found["node"]), _text(found["incarnation"]))
    seq, at = _whole(found["seq"]), _moment(found["at"])
    if kind == "node":
        return _heartbeat(found, sender, seq, at)
    if isinstance(kind, str) and kind in _HINTS:
        to = _items(found.get("to", []))
        if len(to) > MOST_ADDRESSEES:
            raise ValueError("too many")
        return Hint(kind, sender, seq, at, tuple(map(_text, to)))  # type: ignore[arg-type]
    return Skipped.TYPE


def _heartbeat(found: dict[str, Any], sender: Sender, seq: int, at: datetime) -> Heartbeat:
    part, parts = _whole(found.get("part", 1)), _whole(found.get("parts", 1))
    if not 1 <= part <= parts <= MOST_PARTS:
        raise ValueError("no such part")
    return Heartbeat(
        sender=sender,
        seq=seq,
        at=at,
        state=_text(found["state"]),
        cpu=_share(found.get("cpu")),
        memory=_share(found.get("memory")),
        units=tuple(_unit(one) for one in _items(found["units"])),
        part=part,
        parts=parts,
        left_out=_whole(found.get("left_out", 0)),
    )


def _unit(found: object) -> UnitHeard:
    if not isinstance(found, dict):
        raise ValueError("no unit")  # noqa: TRY004 - what is wrong is a value of the record
    return UnitHeard(
        unit=JobKey(_text(found["task"]), _text(found["name"])),
        epoch=_whole(found["epoch"]),
        load=_number(found["load"]),
        lag_seconds=_number(found["lag_seconds"]),
        backlog_seconds=_number(found["backlog_seconds"]),
        state=_added_text(found, "state"),
        reason=_added_text(found, "reason"),
    )


def _items(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("no list")  # noqa: TRY004
    return value


def _text(value: object) -> str:
    """A name that a terminal shows as it is: no control character, no half of a pair."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or not value.isprintable():
        raise ValueError("no name")
    return value


def _added_text(found: dict[str, Any], field: str) -> str:
    """A text that an earlier version did not tell."""
    return _text(found[field]) if field in found else ""


def _whole(value: object) -> int:
    # True is an int to Python, and not to JSON.
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError("no whole number")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise ValueError("no number")
    if not 0 <= value <= _MOST_SECONDS:  # type: ignore[operator]
        raise ValueError("out of range")
    return float(value)  # type: ignore[arg-type]


def _share(value: object) -> float | None:
    return None if value is None else min(_number(value), 1.0)


def _moment(value: object) -> datetime:
    text = _text(value)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error


def _no_number(name: str) -> float:
    raise ValueError(name)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found
