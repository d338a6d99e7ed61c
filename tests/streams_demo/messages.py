"""What the generator writes: nested events of users, with bad ones among them. Pure, by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

USERS = 60
CITIES = ("oslo", " Rome", "Graz ", "bern", "Łódź")
SKUS = ("A-1", "B-7", "C-3", "D-9")
NAMES = ("Ann", "Ben", "Cid", "Dot")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

#: What a bad message is, by the rules of quarantine that may name it. A word where a number is
#: expected is seen by the mapping, or before it when the table knows that it is a number.
KINDS = {
    "bad_json": "cut",
    "duplicate_key": "a key twice",
    "not_an_object": "a number",
    "bad_utf8": "bytes",
    "mapping": "a word",
    "type_mismatch": "a word",
    "null_key": "no user",
}
#: Kinds that only a table with a key refuses.
KEYED_ONLY = frozenset({"no user"})


@dataclass(frozen=True)
class Message:
    """One message, as it is written and as it is meant.

    Attributes:
        number: counts the messages of a source from 0; each message holds it.
        key: of the user; messages of one key stay in their order.
        value: the bytes.
        meaning: the event, None for a message that is none.
        bad: one of `KINDS`, "" for a good one.
    """

    number: int
    key: str
    value: bytes
    meaning: Mapping[str, Any] | None = None
    bad: str = ""

    def is_bad_for(self, *, keyed: bool) -> bool:
        """Whether a table refuses it."""
        return bool(self.bad) and (keyed or self.bad not in KEYED_ONLY)


def messages(seed: int, group_size: int) -> Iterator[list[Message]]:
    """Messages without end, in groups in which no key is there twice."""
    chance = random.Random(seed)
    living: set[int] = set()
    number = 0
    while True:
        group = []
        for user in chance.sample(range(1, USERS + 1), group_size):
            group.append(_message(chance, number, user, living))
            number += 1
        yield group


def _message(chance: random.Random, number: int, user: int, living: set[int]) -> Message:
    key = f"user {user}"
    draw = chance.random()
    if draw < 0.06:
        return _bad(
            chance.choice(sorted({*KINDS.values()})), _event(chance, number, user, "order"), key
        )
    kind = "order"
    if draw < 0.16:
        kind = "ping"
    elif draw < 0.26 and user in living:
        kind = "unsubscribe"
    if kind != "ping":
        (living.discard if kind == "unsubscribe" else living.add)(user)
    event = _event(chance, number, user, kind)
    return Message(number, key, json.dumps(event, ensure_ascii=False).encode(), event)


def _event(chance: random.Random, number: int, user: int, kind: str) -> dict[str, Any]:
    # Milliseconds between two events, so that the times of a user only grow.
    at = BEGIN + timedelta(milliseconds=number)
    event: dict[str, Any] = {"n": number, "type": kind, "at": at.isoformat(timespec="milliseconds")}
    if kind == "ping":
        return event
    event["user"] = {"id": user}
    if kind == "order":
        address = {"city": chance.choice(CITIES), "zip": f"{chance.randrange(10_000):04}"}
        event["user"] |= {"name": chance.choice(NAMES), "address": address}
        event["items"] = [
            {"sku": chance.choice(SKUS), "qty": chance.randrange(1, 9)}
            for _ in range(chance.randrange(4))
        ]
    return event


def _bad(kind: str, event: dict[str, Any], key: str) -> Message:
    number = event["n"]
    if kind == "no user":
        del event["user"]["id"]
    elif kind == "a word":
        event["user"]["id"] = f"nobody {number}"
    text = json.dumps(event, ensure_ascii=False)
    value = {
        "cut": text[: len(text) // 2],
        "a key twice": f'{{"n": {number}, "n": {number}}}',
        "a number": f"{number}",
    }.get(kind, text).encode()
    if kind == "bytes":
        value = value.replace(b'"order"', b'"\xff"')
    meaning = event if kind in KEYED_ONLY else None
    return Message(number, key, value, meaning, kind)
