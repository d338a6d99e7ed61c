"""rows in = rows out + rows filtered + rows quarantined, exactly, for every batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from polynya.lake.copy import copy
from polynya.model.errors import InternalError
from tests.lab.events import delete, land, load, upsert
from tests.lab.lab import Feed, Lab, clear, drop, put

DEEP = b'{"id": 7, "seq": 7, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD = {
    b"{broken": "bad_json",
    b'{"id": 1, "seq": 1, "name": "\xff"}': "bad_utf8",
    DEEP: "too_deep",
    b'{"id": 1, "id": 2, "seq": 1}': "duplicate_key",
    b"[1]": "not_an_object",
    b'{"id": null, "seq": 3}': "null_key",
    b'{"id": 4, "seq": null}': "null_sequence",
    b'{"id": 5, "seq": 5, "at": "yesterday"}': "bad_timestamp",
    b'{"id": 6, "seq": 6, "day": "2026-13-01"}': "bad_value",
    b'{"id": "six", "seq": 6}': "type_mismatch",
}


def balanced(users: Feed) -> bool:
    """Whether the books add up and agree with what the table holds."""
    totals = users.totals()
    stored = len(users.stored("changes", "hdr__operation"))
    return (
        totals["in"] == totals["out"] + totals["filtered"] + totals["quarantined"]
        and totals["quarantined"] == len(users.rejected())
        and totals["out"] == stored
    )


def test_every_bad_record_is_counted_and_kept_and_delays_no_good_one(lab: Lab) -> None:
    users = lab.feed(columns={"day": "date"})

    users.copy(put(1, 1), *BAD, drop(2, 2), put(2, 1))

    assert users.current("id") == [(1,)]
    assert {offset: rule for _, offset, rule in users.rejected()} == dict(
        enumerate(BAD.values(), start=1)
    )
    raw = [row[0] for row in users.stored("quarantine", "hdr__quarantine.raw")]
    assert sorted(raw) == sorted(BAD)
    assert users.totals() == {"in": 13, "out": 3, "filtered": 0, "quarantined": len(BAD)}
    assert balanced(users)


def test_a_batch_that_is_applied_at_once_is_counted_like_any_other(lab: Lab) -> None:
    users = lab.feed()

    users.copy(put(1, 1), b"{broken", clear(2), put(3, 3))

    assert users.totals() == {"in": 4, "out": 3, "filtered": 0, "quarantined": 1}
    assert len(users.rejected()) == 1


def test_a_file_that_is_no_json_is_one_record_and_does_not_block_the_next(lab: Lab) -> None:
    users = lab.feed()
    users.land(put(1, 1))
    (users.folder / "0000.json.gz").write_bytes(b"\x1f\x8b no gzip")
    users.configure(path="*.json*")

    users.run()

    assert users.current("id") == [(1,)]
    assert [row[1] for row in users.rejected()] == [-1]
    assert balanced(users)


def test_a_file_of_nothing_but_bad_records_is_done_once(lab: Lab) -> None:
    users = lab.feed()

    users.copy(b"{broken", b"{broken too")
    users.run()

    assert users.totals() == {"in": 2, "out": 0, "filtered": 0, "quarantined": 2}


def test_captures_count_what_belongs_to_no_table(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, load(1, name="Ann"), upsert(1, 10, name="Anna"), delete(1, 20))
    land(capture, upsert(2, 10, name="lines"), table="lines")
    capture.land(b"{broken", b'{"value": {"op": "?"}}')

    capture.run()

    ledger = capture.ledger().totals()
    tables = [capture[name].totals() for name in ("users", "lines")]
    for totals in [ledger, *tables]:
        assert totals["in"] == totals["out"] + totals["filtered"] + totals["quarantined"]
    assert sum(totals["in"] for totals in [ledger, *tables]) == _lines_of(capture.folder)
    assert [totals["out"] for totals in tables] == [3, 1]
    assert ledger["quarantined"] == 2


def _lines_of(folder: object) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in folder.iterdir())  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_arrow", [True, False], ids=["arrow", "query"])
def test_books_that_do_not_balance_commit_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, in_arrow: bool
) -> None:
    """The planted fault: a row is lost between reading and writing."""
    users = lab.feed()
    users.copy(put(1, 1))
    before = users.table().state
    rows, query = copy.arrow_rows, copy.derive

    def lossy(*arguments: Any) -> pa.Table | None:
        found = rows(*arguments) if in_arrow else None
        return found if found is None else found.filter(pc.not_equal(found.column("id"), 3))

    monkeypatch.setattr(copy, "arrow_rows", lossy)
    monkeypatch.setattr(copy, "derive", lambda *a, **k: query(*a, **k).where("id <> 3"))

    with pytest.raises(InternalError) as caught:
        users.copy(put(2, 2), put(3, 3))

    assert caught.value.code == "POLYNYA-LAKE-007"
    assert users.changes("id") == [(1,)]
    assert users.table().state.copy.position.files == before.copy.position.files
    assert balanced(users)

    monkeypatch.undo()
    users.run()
    assert users.changes("id") == [(1,), (2,), (3,)]
