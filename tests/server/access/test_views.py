"""What a person may read, and what is masked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from polynya.model.errors import RefusedError
from polynya.model.types import DataType, parse_type
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import STATEMENT_LIMITS, answer_here
from polynya.server.access.roles import LOCAL, Person
from polynya.server.access.views import guarded_find, may_read
from tests.server.access.served import ROLES, document_of

GRANTS = """grants:
- {to: ["group:analysts"], datasets: ["shop.*"], views: [current], masked: [mail, "*_phone"]}
- {to: [dora@example.com], datasets: [shop.users], views: [history]}
- {to: [dora@example.com], datasets: [shop.users], masked: [mail]}
"""
DOCUMENT = document_of(ROLES + GRANTS)
ANALYST = Person("x@example.com", frozenset({"x@example.com", "group:analysts"}), "session")
DORA = Person("dora@example.com", frozenset({"dora@example.com", "group:analysts"}), "session")


class Users:
    """A view of two users."""

    name = "shop.users"
    keys: Sequence[str] = ("mail",)
    columns: Mapping[str, DataType] = {
        name: parse_type("string") for name in ("mail", "HOME_PHONE", "city")
    }

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        rows = {
            "mail": ["a@x.de", "b@x.de"],
            "HOME_PHONE": ["1", "2"],
            "city": ["Bonn", "Ulm"],
        }
        return pa.table({name: rows[name] for name in columns}).to_reader()


def query(statement: str, person: Person) -> list[dict[str, object]]:
    find = guarded_find(lambda name: Users(), [], person, DOCUMENT)
    _, batches = answer_here(statement, find, limit=None, limits=STATEMENT_LIMITS)
    return [row for batch in batches for row in batch.to_pylist()]


def test_masked_columns_are_null_in_every_part_of_a_statement():
    rows = query("SELECT mail, HOME_PHONE, city FROM shop.users ORDER BY city", ANALYST)

    assert [list(row.values()) for row in rows] == [[None, None, "Bonn"], [None, None, "Ulm"]]
    # A condition finds nothing out either.
    assert query("SELECT city FROM shop.users WHERE mail LIKE 'a%'", ANALYST) == []


def test_a_view_without_a_grant_is_not_there():
    stranger = Person("eve@example.com", frozenset({"eve@example.com"}), "session")

    with pytest.raises(RefusedError) as refused:
        query("SELECT city FROM shop.users", stranger)

    assert refused.value.code == "POLYNYA-ACC-003"


def test_grants_add_up_for_each_kind_of_view():
    history = may_read(DORA, "shop.users", DOCUMENT, "history")
    current = may_read(DORA, "shop.users", DOCUMENT, "current")

    assert history.whole
    assert not current.whole
    # Two grants of Current: a column is masked if both of them mask it.
    assert [current.masked(one) for one in ("MAIL", "home_phone", "city")] == [True, False, False]
    assert may_read(ANALYST, "bank.users", DOCUMENT).kinds == frozenset()


def test_those_who_manage_and_this_machine_read_all():
    manager = Person("max@example.com", frozenset({"max@example.com"}), "session")

    assert may_read(manager, "shop.users", DOCUMENT).whole
    assert may_read(LOCAL, "shop.users", None).whole
    assert not may_read(LOCAL, "shop.users", DOCUMENT).kinds
