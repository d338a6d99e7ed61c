"""Records that were torn, changed or made up: read or skipped, never an exception."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from polynya.cluster.gossip.messages import Hint
from polynya.cluster.gossip.records import (
    MAX_RECORD_BYTES,
    OtherClusterRecord,
    Skipped,
    heartbeat_records,
    hint_record,
    read_record,
)
from polynya.cluster.gossip.stream import MOST_PROCESSES, Listener
from tests.cluster.gossip.given import AT, CLUSTER, heartbeat, process, unit

GOOD = [
    *heartbeat_records(heartbeat(5, *(unit(f"t{number}") for number in range(20)))),
    *heartbeat_records(heartbeat(6)),
    hint_record(Hint("released", process("n3"), 4, AT, ("me.1",))),
]
ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 2**63, 10**400, "", "x" * 600, "\x00", "\ud83d",
    "../../x", "'; DROP TABLE t --", "nan", [], [[]], {}, {"v": 1}, "2026-01-01T00:00:00Z", "n1.1",
]  # fmt: skip


def _torn(record: bytes, draw: random.Random) -> bytes:
    kind = draw.randrange(5)
    place = draw.randrange(len(record))
    if kind == 0:
        return record[:place]
    if kind == 1:
        return record[:place] + draw.randbytes(draw.randint(1, 4)) + record[place + 1 :]
    if kind == 2:
        return record[place:] + record[:place]
    if kind == 3:
        return draw.randbytes(draw.randrange(64))
    return record + record


def _changed(record: bytes, draw: random.Random) -> bytes:
    """With other values in one to three places, or with fields too many or too few."""
    value = json.loads(record)
    for _ in range(draw.randint(1, 3)):
        inside = draw.choice([value, *value.get("units", [])])
        if not isinstance(inside, dict) or not inside:
            continue
        field = draw.choice([*inside, "new"])
        if draw.random() < 0.15:
            inside.pop(field, None)
        else:
            inside[field] = draw.choice(ODD)
        if not isinstance(value.get("units", []), list):
            break
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _made_up(draw: random.Random) -> bytes:
    """A heartbeat of a process that does not exist."""
    sender = process(f"n{draw.randrange(10**9)}")
    return heartbeat_records(heartbeat(draw.randrange(2**63), unit(), sender=sender))[0]


def hear(records: int, seed: int) -> tuple[Listener, Counter[str], int]:
    """Take so many hostile records, with a good one among each ten of them."""
    draw = random.Random(seed)
    listener, kinds, good = Listener(process("me")), Counter[str](), 0
    for number in range(records):
        if number % 10 == 0:
            good += 1
            record = heartbeat_records(heartbeat(good, unit("told"), sender=process("true")))[0]
        else:
            record = draw.choice(GOOD)
            how = draw.randrange(4)
            record = (
                _torn(record, draw)
                if how == 0
                else _made_up(draw)
                if how == 1
                else _changed(record, draw)
            )
        read = read_record(record, CLUSTER)
        kinds[read.value if isinstance(read, Skipped) else type(read).__name__] += 1
        listener.take(record, float(number))
    return listener, kinds, good


@pytest.mark.parametrize(
    "records", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["quick", "many"]
)
def test_nothing_in_a_record_stops_the_listener_or_changes_what_others_told(records: int) -> None:
    seed = 17
    listener, kinds, good = hear(records, seed)

    heard = listener.received(float(records))
    told = heard["true.1"].heartbeat
    assert (told.seq, [one.unit.name for one in told.units]) == (good, ["shop.told"]), seed
    assert len(heard) <= MOST_PROCESSES
    # All kinds of records were there: the run was about something.
    assert min(kinds[kind] for kind in ("Heartbeat", "Hint", *ALL_KINDS)) > records / 1000, kinds
    assert sum(listener.skipped.values()) >= sum(kinds[kind] for kind in ALL_KINDS)


ALL_KINDS = [
    Skipped.NOT_JSON.value,
    Skipped.VERSION.value,
    Skipped.FIELD.value,
    OtherClusterRecord.__name__,
    Skipped.TYPE.value,
]


def test_names_are_only_ever_values() -> None:
    """What looks like a path or like SQL comes out as the text that it is."""
    name = "../../etc/passwd'; DROP TABLE t --"
    sender = process(name)
    listener = Listener(process("me"))

    listener.take(heartbeat_records(heartbeat(1, unit(name), sender=sender))[0], 0.0)

    (heard,) = listener.received(0.0).values()
    assert heard.heartbeat.sender == sender
    assert heard.heartbeat.units[0].unit.name == f"shop.{name}"


def test_a_record_is_never_read_when_it_is_larger_than_any_message() -> None:
    listener = Listener(process("me"))

    listener.take(b" " * (MAX_RECORD_BYTES + 1), 0.0)

    assert dict(listener.skipped) == {Skipped.HUGE.value: 1}
