"""What tables have to hold by what was written. No code of the runtime is used.

Each row is a tuple that says all that is compared; the same row twice is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.oracle.fold import DELETE, UPSERT, Event, Version, fold
from tests.streams_demo.messages import Message

Row = tuple[Any, ...]

#: Columns of the tables whose values are compared.
LINES = ("n", "user_id", "city", "line", "sku", "qty")
USERS = ("user_id", "city", "n", "user_name", "user_address_city", "user_address_zip")


def landed(written: Iterable[Message]) -> Iterator[Row]:
    """Every message as it was written."""
    return ((message.value,) for message in written)


def quarantine(written: Iterable[Message], *, keyed: bool) -> Iterator[Row]:
    """What is wrong with each message that a table refuses, and its bytes."""
    for message in written:
        if message.is_bad_for(keyed=keyed):
            yield message.bad, message.value


def lines(written: Iterable[Message]) -> Iterator[Row]:
    """A row for each item of each order, and one for an order without items."""
    for message in written:
        event = message.meaning
        if event is None or event["type"] != "order":
            continue
        user = event["user"]
        head = event["n"], user.get("id"), _city(user)
        yield from ((*head, at, *item.values()) for at, item in enumerate(event["items"], 1))
        if not event["items"]:
            yield (*head, None, None, None)


def versions(written: Iterable[Message]) -> Iterator[Row]:
    """Key, kind, times and values of each version of each user."""
    for version in _folded(written).history():
        yield _version(version)


def current(written: Iterable[Message]) -> Iterator[Row]:
    """The last version of each user; those who unsubscribed are deleted, and stay."""
    for version in _folded(written).current(soft=True).values():
        yield _version(version)


def _folded(written: Iterable[Message]) -> Any:
    return fold([*_changes(written)])


def _changes(written: Iterable[Message]) -> Iterator[Event]:
    for message in written:
        event = message.meaning
        if event is None or message.is_bad_for(keyed=True) or event["type"] == "ping":
            continue
        op = DELETE if event["type"] == "unsubscribe" else UPSERT
        moment = datetime.fromisoformat(event["at"])
        user = event["user"]
        yield Event((user["id"],), message.number, op, _values(event, user), moment)


def _values(event: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    address = user.get("address", {})
    found = (_city(user), event["n"], user.get("name"), address.get("city"), address.get("zip"))
    return dict(zip(USERS[1:], found, strict=True))


def _version(version: Version) -> Row:
    values: Sequence[Any] = [version.values.get(name) for name in USERS[1:]]
    return version.key[0], version.op, version.from_ts, version.to_ts, *values


def _city(user: Mapping[str, Any]) -> str | None:
    city: str | None = user.get("address", {}).get("city")
    return None if city is None else city.strip().upper()
