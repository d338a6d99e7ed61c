"""Gossip messages between nodes, and their encoding as records of the workload stream.

Anybody who can write to the stream may have written a record. So reading never raises, and no text
of a record is used as a path or as SQL. A record that is not a message of this cluster becomes
`Skipped` with its reason.

Shares are from 0 to 1, times in UTC, durations in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from polynya.cluster.unit import JobKey

HintKind: TypeAlias = Literal["released", "planned"]


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message: a process of a node of a cluster."""

    cluster: str
    node: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class UnitReport:
    """A unit that a node works on.

    Attributes:
        unit: its name.
        epoch: of its ownership, 0 without coordination.
        load: busy seconds per second, a moving average.
        lag_seconds: how long its oldest landed file that no view shows yet has been known.
        backlog_seconds: work that waits, in seconds.
        state: of its work there, such as `running` or `suspended`; empty if it was not sent.
        reason: what its work waits for, such as a pause after a failure or a decision; or empty.
    """

    unit: JobKey
    epoch: int
    load: float
    lag_seconds: float
    backlog_seconds: float
    state: str = ""
    reason: str = ""

    @property
    def is_ill(self) -> bool:
        """Whether its work waits for something, or for somebody."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node's report of itself; the rest of a heartbeat is added when it is sent."""

    state: str
    units: tuple[UnitReport, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A node's report of itself, or one part of it.

    Attributes:
        sender: the process that sent it.
        seq: grows by one with each message of a sender.
        at: the sender's clock, only for display.
        state: of the node: `starting`, `running`, `draining` or `stopped`.
        cpu: share of its processors that is busy, None when it does not know.
        memory: share of its memory that is in use, None when it does not know.
        units: those that it works on.
        part: number of this part, from 1.
        parts: in how many records the heartbeat was sent.
        left_out: the number of units that did not fit.
    """

    sender: Sender
    seq: int
    at: datetime
    state: str
    cpu: float | None
    memory: float | None
    units: tuple[UnitReport, ...]
    part: int = 1
    parts: int = 1
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A reason to look at the store now: units were released, or plans changed.

    `to` are the incarnations that it concerns, all when empty.
    """

    kind: HintKind
    sender: Sender
    seq: int
    at: datetime
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceivedHeartbeat:
    """The newest report of one process, and how many seconds ago it was received."""

    heartbeat: Heartbeat
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of the others.

    Attributes:
        nodes: the other processes of the cluster, by incarnation.
        skipped: records that were passed over since the start, by why.
        trouble: why nothing can be sent or received at present, None when all is well.
    """

    nodes: Mapping[str, ReceivedHeartbeat] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    trouble: str | None = None

    def loads(self) -> dict[JobKey, float]:
        """The load of each unit, as its owner reported it.

        While a unit moves two processes may name it: the higher epoch counts, then the newer word.
        """
        told: dict[JobKey, tuple[int, float, float]] = {}
        for heard in self.nodes.values():
            for one in heard.heartbeat.units:
                word = (one.epoch, -heard.age_seconds, one.load)
                told[one.unit] = max(told.get(one.unit, word), word)
        return {unit: load for unit, (_, _, load) in told.items()}


#: Fields of the first line of /proc/stat in which processors had nothing to do: idle and iowait.
_IDLE: Final = (3, 4)
#: Fields after these are parts of earlier ones.
_FIELDS: Final = 8


@dataclass(frozen=True, slots=True)
class Busy:
    """Shares of processors and memory that are in use, 0 to 1; None: not known."""

    cpu: float | None = None
    memory: float | None = None


class Host:
    """Looks at the machine; processors since the last look."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: tuple[int, int] | None = None

    def look(self) -> Busy:
        """How busy it is."""
        cpu = memory = None
        with suppress(OSError, ValueError, IndexError):
            cpu = self._cpu((self._proc / "stat").read_text("ascii"))
        with suppress(OSError, ValueError, KeyError, IndexError, ZeroDivisionError):
            memory = memory_share((self._proc / "meminfo").read_text("ascii"))
        return Busy(cpu, memory)

    def _cpu(self, stat: str) -> float | None:
        ticks = [int(one) for one in stat.splitlines()[0].split()[1 : 1 + _FIELDS]]
        now = sum(ticks), sum(ticks[place] for place in _IDLE)
        before, self._before = self._before, now
        if before is None or now[0] <= before[0]:
            return None
        return _between_0_and_1(1 - (now[1] - before[1]) / (now[0] - before[0]))


def memory_share(meminfo: str) -> float:
    """Share of the memory that is in use, from /proc/meminfo. Raises KeyError, ValueError."""
    lines = (line.partition(":") for line in meminfo.splitlines())
    kilobytes = {name: text.split()[0] for name, _, text in lines if text.split()}
    return _between_0_and_1(1 - int(kilobytes["MemAvailable"]) / int(kilobytes["MemTotal"]))


def _between_0_and_1(value: float) -> float:
    return min(max(value, 0.0), 1.0)


#: Version of the records. Fields may be added to it; another meaning is another version.
VERSION: Final = 1
#: Grows with each field that is added; readers may ignore unknown fields.
MINOR: Final = 1
#: Most bytes of a record.
MOST_BYTES: Final = 10 * 1024
#: Most records of a heartbeat: some 700 units, those that matter most.
MOST_PARTS: Final = 8
#: Most characters of a reason; the state of the node has all of it.
MOST_REASON: Final = 160
#: A hint that concerns more processes than this is for all.
MOST_ADDRESSEES: Final = 64


@dataclass(slots=True)
class _Part:
    units: list[UnitReport]
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


def _importance(unit: UnitReport) -> tuple[float, float, str, str]:
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


def _of_unit(unit: UnitReport) -> dict[str, Any]:
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
        cpu=_share_or_none(found.get("cpu")),
        memory=_share_or_none(found.get("memory")),
        units=tuple(_unit(one) for one in _items(found["units"])),
        part=part,
        parts=parts,
        left_out=_whole(found.get("left_out", 0)),
    )


def _unit(found: object) -> UnitReport:
    if not isinstance(found, dict):
        raise ValueError("no unit")  # noqa: TRY004 - what is wrong is a value of the record
    return UnitReport(
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
    """A text that an earlier version did not send."""
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


def _share_or_none(value: object) -> float | None:
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
