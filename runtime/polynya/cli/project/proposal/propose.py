"""What a sample of records says about the settings of a dataset. Pure; each answer has a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from polynya.model.contract.identifiers import column_problem

Record = Mapping[str, Any]

_OPERATION: Final = frozenset({"op", "operation", "_op", "op_type", "change_type", "action"})
_DELETES: Final = frozenset({"d", "delete", "deleted", "remove"})
_OPERATIONS: Final = _DELETES | frozenset(
    {"i", "u", "c", "r", "insert", "update", "create", "upsert", "read", "inserted", "updated"}
)
#: Parts of names, the best first.
_SEQUENCE: Final = ("sequence", "seq", "lsn", "scn", "version", "offset", "updated", "modified")
_TIME: Final = ("event", "updated", "modified", "changed", "timestamp", "created", "time", "at")
_MONEY: Final = frozenset({"price", "amount", "total", "cost", "fee", "balance", "tax", "discount"})
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?")
_WHOLE: Final = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True)
class Choice:
    """Columns or a text for a setting, and why."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings of a dataset. None is a setting that nothing in the sample speaks for.

    `columns` are types by column, to be declared because inference would take another one.
    """

    key: Choice | None
    sequence: Choice | None
    timestamp: Choice | None
    deletes: Choice | None
    left_out: tuple[str, ...]
    columns: Mapping[str, Choice]


def propose(records: Sequence[Record], name: str) -> Proposal:
    """The settings for records of a dataset that is called `name`."""
    names = dict.fromkeys(column for record in records for column in record)
    columns = [column for column in names if column_problem(column) is None]
    values = {column: [record.get(column) for record in records] for column in columns}
    operation, deletes = _operation(values)
    key = _key(values, name, len(records))
    others = {c: v for c, v in values.items() if c != operation and (not key or c != key.value)}
    times = [column for column, found in others.items() if _all(found, _is_time)]
    sequence = _sequence(others, times)
    timestamp = _timestamp(times)
    types = {one: _zone(values[one]) for one in times}
    types |= {c: _MONEY_TYPE for c, v in others.items() if _is_money(c) and _all(v, _is_number)}
    used = {choice.value for choice in (sequence, timestamp) if choice is not None}
    shown = {c: t for c, t in types.items() if t is not None and (t is not _NO_ZONE or c in used)}
    unseen = [operation, sequence.value if sequence and sequence.value not in times else None]
    return Proposal(key, sequence, timestamp, deletes, tuple(c for c in unseen if c), shown)


_MONEY_TYPE: Final = Choice(
    '"decimal(18,4)"', "sounds like money; whole numbers alone would make it bigint"
)
_ZONED: Final = Choice("timestamp", "ISO 8601 with a zone in each record")
_NO_ZONE: Final = Choice("timestamp", "ISO 8601 without a zone: taken as UTC")


def _operation(values: Mapping[str, list[Any]]) -> tuple[str | None, Choice | None]:
    for column, found in values.items():
        known = [value for value in found if value is not None]
        if column.lower() not in _OPERATION or not all(isinstance(v, str) for v in known):
            continue
        spelt = set(known)
        if spelt and {value.lower() for value in spelt} <= _OPERATIONS:
            deletes = sorted(value for value in spelt if value.lower() in _DELETES)
            if not deletes:
                short = all(len(value) == 1 for value in spelt)
                return column, Choice(
                    f"{column} = '{'D' if short else 'DELETE'}'",
                    "no delete is in the sample: check",
                )
            texts = ", ".join(f"'{value}'" for value in deletes)
            test = f"= {texts}" if len(deletes) == 1 else f"IN ({texts})"
            seen = sum(value in deletes for value in found)
            return column, Choice(f"{column} {test}", f"{seen} in the sample")
    return None, None


def _key(values: Mapping[str, list[Any]], name: str, count: int) -> Choice | None:
    singular = name.lower().removesuffix("s")
    named = {"id", f"{singular}id", f"{name.lower()}id", "key", "uuid"}
    whole = [c for c, v in values.items() if _all(v, _is_scalar) and len(v) == count]
    for column in whole:
        if column.lower().replace("_", "") in {one.replace("_", "") for one in named}:
            return Choice(column, f"by its name; never NULL in {count:,} records")
    for column in whole:
        if column.lower().endswith("id"):
            return Choice(column, f"its name ends in id; never NULL in {count:,} records")
    for column in whole:
        if count > 1 and len({str(value) for value in values[column]}) == count:
            return Choice(column, f"different in each of {count:,} records")
    return None


def _sequence(values: Mapping[str, list[Any]], times: list[str]) -> Choice | None:
    ordered = [c for c, v in values.items() if c in times or _all(v, _is_whole)]
    for part in _SEQUENCE:
        for column in ordered:
            if part in _words(column):
                return Choice(column, "by its name; it orders the events of a record: check")
    for column in times:
        return Choice(column, "the only kind of order in the sample is a time: check for ties")
    return None


def _timestamp(times: list[str]) -> Choice | None:
    ranked = sorted(
        times, key=lambda c: min((n for n, p in enumerate(_TIME) if p in _words(c)), default=99)
    )
    return Choice(ranked[0], "a time in each record") if ranked else None


def _words(column: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower())


def _is_money(column: str) -> bool:
    return not _MONEY.isdisjoint(_words(column))


def _all(values: list[Any], test: Any) -> bool:
    return bool(values) and all(value is not None and test(value) for value in values)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _is_whole(value: Any) -> bool:
    return _is_scalar(value) and _WHOLE.fullmatch(str(value)) is not None


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int | float) or re.fullmatch(r"-?\d+(\.\d{1,4})?", str(value)) is not None
    )


def _is_time(value: Any) -> bool:
    if isinstance(value, datetime | date):
        return True
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _zone(values: list[Any]) -> Choice | None:
    """The type of a column of times; None for one whose file declares it."""
    if not all(isinstance(value, str) for value in values):
        return None
    zoned = all(datetime.fromisoformat(value).tzinfo is not None for value in values)
    return _ZONED if zoned else _NO_ZONE
