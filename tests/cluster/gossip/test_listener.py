"""The picture of the others: the newest of each, whatever the stream does to records."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from polynya.cluster.gossip.messages import Hint, Picture
from polynya.cluster.gossip.records import Skipped, heartbeat_records, hint_record
from polynya.cluster.gossip.stream import FORGET_SECONDS, MOST_PROCESSES, Listener
from tests.cluster.gossip.given import AT, heartbeat, names, process, unit

ME = process("me")


def records(seq: int, *units: Any, **parts: Any) -> list[bytes]:
    return heartbeat_records(heartbeat(seq, *units, **parts))


def heard_units(listener: Listener, now: float = 0.0) -> list[str]:
    (heard,) = listener.received(now).values()
    return sorted(names(heard.heartbeat.units))


def test_the_newest_of_each_process_is_known_with_its_age() -> None:
    listener = Listener(ME)
    for seq, at in ((1, 10.0), (2, 20.0)):
        listener.take(records(seq, unit(f"t{seq}"))[0], at)
    listener.take(records(1, unit("other"), sender=process("n2"))[0], 24.0)

    heard = listener.received(25.0)

    assert {name: (one.heartbeat.seq, one.age_seconds) for name, one in heard.items()} == {
        "n1.1": (2, 5.0),
        "n2.1": (1, 1.0),
    }
    assert names(heard["n1.1"].heartbeat.units) == ["t2"]


def test_own_records_are_no_news() -> None:
    listener = Listener(ME)

    listener.take(records(1, sender=ME)[0], 0.0)
    woken = listener.take(hint_record(Hint("released", ME, 2, AT)), 0.0)

    assert (listener.received(0.0), woken, dict(listener.skipped)) == ({}, None, {})


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order_and_repetition_end_in_the_same_picture(order: tuple[int, ...]) -> None:
    told = [records(seq, unit(f"t{seq}"))[0] for seq in range(1, 5)]
    listener = Listener(ME)

    for number in (*order, *order):
        listener.take(told[number], 0.0)

    assert heard_units(listener) == ["t4"]
    assert sum(listener.skipped.values()) == 8 - _rises(order)


def _rises(order: tuple[int, ...]) -> int:
    """How many are larger than all before them."""
    return sum(number == max(order[: place + 1]) for place, number in enumerate(order))


def test_a_replay_makes_nobody_younger() -> None:
    listener = Listener(ME)
    for seq in (1, 2, 3):
        listener.take(records(seq)[0], float(seq))

    for seq in (1, 2, 3):
        listener.take(records(seq)[0], 100.0)

    assert listener.received(103.0)["n1.1"].age_seconds == 100.0
    assert dict(listener.skipped) == {Skipped.LATE.value: 2, Skipped.REPEATED.value: 1}


def test_a_process_that_starts_again_is_another_one() -> None:
    listener = Listener(ME)
    listener.take(records(900)[0], 0.0)
    again = process()
    again = type(again)(again.cluster, again.node, "n1.2")

    listener.take(records(1, unit("t"), sender=again)[0], 5.0)

    heard = listener.received(5.0)
    assert {name: one.heartbeat.seq for name, one in heard.items()} == {"n1.1": 900, "n1.2": 1}


MANY = [unit(f"t{number:03}", backlog_seconds=300.0 - number) for number in range(200)]


@pytest.mark.parametrize("backwards", [False, True])
def test_parts_are_put_together_in_any_order(backwards: bool) -> None:
    parts = records(1, *MANY)
    listener = Listener(ME)

    for part in reversed(parts) if backwards else parts:
        listener.take(part, 0.0)

    assert len(parts) > 1
    assert heard_units(listener) == [f"t{number:03}" for number in range(200)]


def test_a_part_that_is_lost_leaves_its_units_as_they_were_for_one_heartbeat() -> None:
    listener = Listener(ME)
    for part in records(1, *MANY):
        listener.take(part, 0.0)

    listener.take(records(2, *MANY)[0], 10.0)
    assert len(heard_units(listener)) == 200

    listener.take(records(3, *MANY)[0], 20.0)
    (heard,) = listener.received(20.0).values()
    assert 0 < len(heard.heartbeat.units) < 200


def test_units_that_a_whole_heartbeat_does_not_name_are_gone() -> None:
    listener = Listener(ME)
    for part in records(1, *MANY):
        listener.take(part, 0.0)

    listener.take(records(2, MANY[0])[0], 10.0)

    assert heard_units(listener) == ["t000"]


def test_who_was_not_heard_for_long_is_forgotten() -> None:
    listener = Listener(ME)
    listener.take(records(1)[0], 0.0)

    assert "n1.1" in listener.received(FORGET_SECONDS)
    assert listener.received(FORGET_SECONDS + 1) == {}


def test_inventions_do_not_fill_the_memory() -> None:
    listener = Listener(ME)

    for number in range(MOST_PROCESSES + 5):
        listener.take(records(1, sender=process(f"n{number}"))[0], 0.0)

    assert len(listener.received(0.0)) == MOST_PROCESSES
    assert dict(listener.skipped) == {Skipped.CROWDED.value: 5}


def test_the_load_of_a_unit_is_what_its_newest_owner_said() -> None:
    listener = Listener(ME)
    for name, at, epoch, load in (("a", 9.0, 3, 0.1), ("b", 5.0, 4, 0.4), ("c", 7.0, 4, 0.3)):
        told = unit("moves", epoch=epoch, load=load)
        listener.take(records(1, told, unit(name), sender=process(name))[0], at)

    loads = Picture(listener.received(10.0)).loads()

    assert {key.name: load for key, load in loads.items()} == {
        "shop.moves": 0.3, "shop.a": 0.25, "shop.b": 0.25, "shop.c": 0.25
    }  # fmt: skip


def hint(seq: int, *to: str) -> bytes:
    return hint_record(Hint("released", process(), seq, AT, to))


def test_a_hint_wakes_whom_it_concerns_and_once() -> None:
    listener = Listener(ME)

    woken = [
        listener.take(record, 0.0)
        for record in (hint(1), hint(1), hint(3, "me.1"), hint(2, "n2.1", "n3.1"), hint(3, "me.1"))
    ]

    assert [bool(hint) for hint in woken] == [True, False, True, False, False]
    assert dict(listener.skipped) == {Skipped.REPEATED.value: 2}


def test_hints_of_long_ago_wake_nobody() -> None:
    listener = Listener(ME)
    for seq in range(100, 200):
        listener.take(hint(seq), 0.0)

    assert not listener.take(hint(99), 0.0)
    assert dict(listener.skipped) == {Skipped.LATE.value: 1}
