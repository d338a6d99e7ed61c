"""`verify` finds nothing in a sound table, and every planted fault by its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polynya.lake.read.verify import verify
from tests.lab.kept import Kept
from tests.lab.lab import Feed, Lab, clear, drop, put


def lived_in(lab: Lab, *, history: bool = True) -> Feed:
    """A dataset with versions, deletes, a late event, a truncate and a quarantined record."""
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), put(3, 3, name="Cid"), b"{broken")
    users.apply(put(1, 9, name="Anna"), drop(2, 8), put(3, 9, name="Cy"))
    users.apply(put(1, 5, name="late"), clear(4), drop(2, 12), put(2, 20, name="Ben again"))
    return users


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    return Kept(lived_in(module_lab))


@pytest.fixture
def users(kept: Kept) -> Feed:
    """`lived_in`, with history."""
    return kept.again()


def broken(users: Feed) -> list[str]:
    """Names of the rules that do not hold."""
    verdict = verify(users.table())
    for finding in verdict.findings:
        assert finding.rule in verdict.rules
        assert finding.count
        assert finding.example
    return [finding.rule for finding in verdict.findings]


def test_a_table_that_lived_through_much_is_sound(lab: Lab, users: Feed) -> None:
    assert broken(users) == []
    assert broken(lived_in(lab, history=False)) == []


def test_an_append_only_table_is_sound(lab: Lab) -> None:
    log = lab.feed(mode="append_only", keys=None, sequence_by=None)
    log.apply(put(1, 1), put(1, 1), b"{broken")

    assert broken(log) == []


def _twice(users: Feed) -> str:
    return f"INSERT INTO {users.internal} SELECT * FROM {users.internal} WHERE {_CURRENT} LIMIT 1"


def _set(column: str, value: str, where: str) -> Callable[[Feed], str]:
    return lambda users: f"UPDATE {users.internal} SET {column} = {value} WHERE {where}"


_CURRENT, _PRIOR = "hdr__partition = 'current'", "hdr__partition = 'prior'"
FAULTS: dict[str, tuple[str, Callable[[Feed], str]]] = {
    "a row twice": ("one_row_a_record", _twice),
    "a key that is not its hash": ("keys", _set("id", "77", f"{_CURRENT} AND id = 1")),
    "an older version in Current": (
        "newest_is_current",
        _set("hdr__change_identifier", "repeat('0', 35)", f"{_CURRENT} AND id = 3"),
    ),
    "a deleted record in Current": (
        "deleted_is_not_current",
        _set("hdr__operation", "'D'", f"{_CURRENT} AND id = 3"),
    ),
    "a hole in history": (
        "intervals",
        _set(
            "hdr__to_timestamp",
            "hdr__to_timestamp - INTERVAL 1 MILLISECOND",
            f"{_PRIOR} AND hdr__to_timestamp IS NOT NULL AND id = 1",
        ),
    ),
    "a quarantined record lost": (
        "accounting",
        lambda users: f"DELETE FROM {users.internal} WHERE hdr__partition = 'quarantine'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_named(users: Feed, fault: str) -> None:
    rule, statement = FAULTS[fault]

    users.lab.spark.sql(statement(users))

    assert rule in broken(users)


def test_a_pending_change_that_was_lost_is_found(users: Feed) -> None:
    users.copy(put(7, 30, name="Gil"), put(8, 31, name="Hal"), b"{broken")
    assert broken(users) == []

    users.lab.spark.sql(f"DELETE FROM {users.internal} WHERE hdr__partition = 'changes' AND id = 7")

    assert broken(users) == ["accounting"]
    example = verify(users.table()).findings[0].example
    assert example == "1 rows, 2 in the books"


def test_a_missing_file_and_a_cut_one_are_found(lab: Lab) -> None:
    users = lived_in(lab)
    live = lab.rows(
        f"SELECT file_path FROM {users.internal}.files "
        "WHERE content = 0 AND partition.hdr__partition IN ('current', 'prior')"
    )
    first, second = (next(f for f in users.files() if str(f) in row[0]) for row in live[:2])

    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])

    verdict = verify(users.table())
    assert verdict.rules == ["files"]
    assert [finding.count for finding in verdict.findings] == [1, 1]
