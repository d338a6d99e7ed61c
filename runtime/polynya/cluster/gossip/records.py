"""Records of the workload stream: messages as pydantic models, written and read.

Anybody who can write to the stream may have written a record. So reading never raises, and no text
of a record is used as a path or as SQL. A record that is not a message of this cluster becomes
`Skipped` with its reason.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from polynya.cluster.gossip.messages import (
    Heartbeat,
    Hint,
    LandedHint,
    Sender,
    UnitReport,
)
from polynya.cluster.unit import JobKey

#: Version of the records. Fields may be added to it; another meaning is another version.
VERSION: Final = 1
#: Grows with each field that is added; readers ignore unknown fields.
MINOR: Final = 1
MAX_RECORD_BYTES: Final = 10 * 1024
#: Most records of a heartbeat: some 700 units, those that matter most.
MAX_PARTS: Final = 8
#: Longest reason, in characters; the state of the node has all of it.
MAX_REASON: Final = 160
#: A hint that concerns more processes than this is for all.
MAX_ADDRESSEES: Final = 64
#: Most beginnings of keys that a hint of objects names.
MAX_STARTS: Final = 64
#: Longest key in S3, in bytes (Amazon S3 User Guide, "Naming Amazon S3 objects").
_MAX_KEY: Final = 1024
_MAX_NAME: Final = 512
_MAX_SECONDS: Final = 1e10


def _printable(text: str) -> str:
    """A text that a terminal shows as it is: no control character, no half of a pair."""
    if not text.isprintable():
        raise ValueError("not printable")
    return text


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(_NAME.validate_python(value))
    if moment.tzinfo is None:
        raise ValueError("no zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("out of range") from error


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


_Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=_MAX_NAME), AfterValidator(_printable)
]
_NAME: Final = TypeAdapter(_Name, config=ConfigDict(strict=True))
_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**63 - 1)]
_Rounded: TypeAlias = Annotated[
    float, Field(ge=0, le=_MAX_SECONDS), PlainSerializer(_rounded, return_type=float)
]
_Share: TypeAlias = Annotated[_Rounded, AfterValidator(lambda share: min(share, 1.0))]
_Moment: TypeAlias = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(lambda at: at.astimezone(UTC).isoformat(timespec="milliseconds")),
]


class _UnitRecord(BaseModel):
    """A unit as a heartbeat has it. Without `state` and `reason`: of an earlier version."""

    model_config = ConfigDict(strict=True)

    task: _Name
    name: _Name
    epoch: _Count
    load: _Rounded
    lag_seconds: _Rounded
    backlog_seconds: _Rounded
    state: _Name = ""
    reason: _Name = ""

    @staticmethod
    def fields_of(unit: UnitReport) -> dict[str, Any]:
        """The fields of a unit in a record, without an empty state or reason."""
        record = _UnitRecord.model_construct(
            task=unit.unit.task,
            name=unit.unit.name,
            epoch=unit.epoch,
            load=unit.load,
            lag_seconds=unit.lag_seconds,
            backlog_seconds=unit.backlog_seconds,
            state=unit.state,
            reason=shortened(unit.reason),
        )
        return record.model_dump(exclude_defaults=True)

    def report(self) -> UnitReport:
        return UnitReport(
            JobKey(self.task, self.name),
            self.epoch,
            self.load,
            self.lag_seconds,
            self.backlog_seconds,
            self.state,
            self.reason,
        )


class _Record(BaseModel):
    """What all records have in common."""

    model_config = ConfigDict(strict=True)

    v: int
    minor: object = None
    type: str
    cluster: _Name
    node: _Name
    incarnation: _Name
    seq: _Count
    at: _Moment

    @property
    def sender(self) -> Sender:
        return Sender(self.cluster, self.node, self.incarnation)


class _HintRecord(_Record):
    to: Annotated[list[_Name], Field(max_length=MAX_ADDRESSEES)] = []


class _LandedRecord(_Record):
    """What the function of the `ArrivalHints` construct writes (`functions/wake/hints.py`)."""

    starts: Annotated[
        list[Annotated[str, Field(max_length=_MAX_KEY)]], Field(min_length=1, max_length=MAX_STARTS)
    ]


class _HeartbeatRecord(_Record):
    state: _Name
    cpu: _Share | None = None
    memory: _Share | None = None
    part: _Count = 1
    parts: _Count = 1
    left_out: _Count = 0
    units: list[_UnitRecord]

    @model_validator(mode="after")
    def _check_part(self) -> Self:
        if not 1 <= self.part <= self.parts <= MAX_PARTS:
            raise ValueError("no such part")
        return self


@dataclass(slots=True)
class _Part:
    units: list[dict[str, Any]]
    size: int


def heartbeat_records(heartbeat: Heartbeat) -> list[bytes]:
    """A heartbeat in as many records as it takes.

    The units with the largest backlog come first, then those with the largest load; units for which
    there is no room are counted in `left_out`.
    """
    # As long as the head may become.
    longest = _heartbeat_bytes(heartbeat, MAX_PARTS, MAX_PARTS, len(heartbeat.units), [])
    room = MAX_RECORD_BYTES - len(longest)
    parts, left_out = [_Part([], 0)], 0
    for unit in sorted(heartbeat.units, key=_importance):
        fields = _UnitRecord.fields_of(unit)
        size = len(_bytes(fields)) + 1
        if parts[-1].size + size > room and size <= room and len(parts) < MAX_PARTS:
            parts.append(_Part([], 0))
        if parts[-1].size + size > room:
            left_out += 1
            continue
        parts[-1].units.append(fields)
        parts[-1].size += size
    return [
        _heartbeat_bytes(heartbeat, number, len(parts), left_out, part.units)
        for number, part in enumerate(parts, 1)
    ]


def _importance(unit: UnitReport) -> tuple[float, float, str, str]:
    return -unit.backlog_seconds, -unit.load, *unit.unit


def _heartbeat_bytes(
    heartbeat: Heartbeat, part: int, parts: int, left_out: int, units: list[dict[str, Any]]
) -> bytes:
    record = _HeartbeatRecord.model_construct(
        **_head("node", heartbeat.sender, heartbeat.seq, heartbeat.at),
        state=heartbeat.state,
        cpu=heartbeat.cpu,
        memory=heartbeat.memory,
        part=part,
        parts=parts,
        left_out=left_out,
        units=[],
    )
    return _bytes({**record.model_dump(), "units": units})


def hint_record(hint: Hint) -> bytes:
    """A hint as a record."""
    to = list(hint.to) if len(hint.to) <= MAX_ADDRESSEES else []
    head = _head(hint.kind, hint.sender, hint.seq, hint.at)
    return _bytes(_HintRecord.model_construct(**head, to=to).model_dump())


def _head(kind: str, sender: Sender, seq: int, at: datetime) -> dict[str, Any]:
    return {"v": VERSION, "minor": MINOR, "type": kind, **asdict(sender), "seq": seq, "at": at}


def shortened(reason: str) -> str:
    """A reason as a record has it: one short line."""
    line = "".join(character if character.isprintable() else " " for character in reason)
    return line if len(line) <= MAX_REASON else f"{line[: MAX_REASON - 1]}…"


def _bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


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


Message: TypeAlias = Heartbeat | Hint | LandedHint


@dataclass(frozen=True, slots=True)
class OtherClusterRecord:
    """A record of another cluster that uses the same stream; only its sender is read."""

    sender: Sender


def read_record(data: bytes, cluster: str) -> Message | OtherClusterRecord | Skipped:
    """The message in a record, or why this cluster does not use it."""
    if len(data) > MAX_RECORD_BYTES:
        return Skipped.HUGE
    try:
        fields = json.loads(data, parse_constant=_no_number, object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError):
        return Skipped.NOT_JSON
    if not isinstance(fields, dict):
        return Skipped.NOT_JSON
    version = fields.get("v")
    # True equals 1 to Python, and not to JSON.
    if type(version) is not int or version != VERSION:
        return Skipped.VERSION
    if fields.get("cluster") != cluster:
        return _of_other_cluster(fields)
    try:
        return _message(fields)
    except ValidationError:
        return Skipped.FIELD


def _of_other_cluster(fields: dict[str, Any]) -> OtherClusterRecord | Skipped:
    if fields.get("type") == "landed":
        # Of a function, which does not read the stream.
        return Skipped.CLUSTER
    try:
        return OtherClusterRecord(_Record.model_validate(fields).sender)
    except ValidationError:
        return Skipped.CLUSTER


def _message(fields: dict[str, Any]) -> Message | Skipped:
    match fields.get("type"):
        case "node":
            return _heartbeat(_HeartbeatRecord.model_validate(fields))
        case "released" | "planned" as kind:
            record = _HintRecord.model_validate(fields)
            return Hint(kind, record.sender, record.seq, record.at, tuple(record.to))
        case "landed":
            landed = _LandedRecord.model_validate(fields)
            return LandedHint(landed.sender, landed.seq, landed.at, frozenset(landed.starts))
    return Skipped.TYPE if "type" in fields else Skipped.FIELD


def _heartbeat(record: _HeartbeatRecord) -> Heartbeat:
    return Heartbeat(
        sender=record.sender,
        seq=record.seq,
        at=record.at,
        state=record.state,
        cpu=record.cpu,
        memory=record.memory,
        units=tuple(unit.report() for unit in record.units),
        part=record.part,
        parts=record.parts,
        left_out=record.left_out,
    )


def _no_number(name: str) -> float:
    raise ValueError(name)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key twice")
    return fields
