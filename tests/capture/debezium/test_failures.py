"""What the end of an engine means: to be tried again, or for a person to decide."""

from __future__ import annotations

import pytest

from polynya.capture.debezium import failure_of
from polynya.capture.wire import TableError
from polynya.model.errors import DependencyError, OperationError

#: As Debezium 3.5 says it.
BEFORE = "An exception occurred in the change event producer. This connector will be stopped.; "
STATEMENT = (
    f"{BEFORE}Error processing binlog event; DDL statement couldn't be parsed. Please open a "
    "GitHub issue at https://github.com/debezium/dbz/issues with the statement 'ALTER TABLE t ADD "
    "COLUMN ip INET6 DEFAULT '::1''\nno viable alternative at input 'ALTER TABLE t'"
)
UNREADABLE = {
    "value": f"{BEFORE}Error while deserializing binlog data of date: Invalid date 'FEBRUARY 31'",
    "type": 'Cannot invoke "ColumnType.ordinal()" because "ColumnType.byCode(int)" is null',
    "YEAR": "Failed to deserialize data of EventHeaderV4{timestamp=1795890121000, "
    "eventType=TABLE_MAP, serverId=1}; Failed to read remaining 1 of 3 bytes from position 4",
    "map": f'{BEFORE}ERROR: could not map filenumber "base/5/16395" to relation OID',
    "fit": "Error processing row in t, internal schema size 4, but row size 5 , restart connector",
}


def test_a_statement_that_was_cut_is_told_as_one_that_cannot_be_read() -> None:
    error = failure_of(f"{STATEMENT.partition('::1')[0]}a secret, which is lo")

    assert error.code == "POLYNYA-GTW-049"
    assert not error.retryable
    assert "INET6 DEFAULT '…'" in str(error)
    assert "secret" not in str(error)


def test_a_statement_that_cannot_be_read_is_told_without_its_texts() -> None:
    error = failure_of(STATEMENT)

    assert isinstance(error, OperationError)
    assert error.code == "POLYNYA-GTW-049"
    assert "ALTER TABLE t ADD COLUMN ip INET6 DEFAULT '…'" in error.message
    assert "::1" not in error.message
    assert "polynya landing reload" in str(error.fix)


@pytest.mark.parametrize("word", UNREADABLE)
def test_what_cannot_be_read_needs_a_person(word: str) -> None:
    error = failure_of(UNREADABLE[word])

    assert isinstance(error, OperationError)
    assert word in error.message


@pytest.mark.parametrize(
    ("said", "table", "code"),
    [
        (
            "Failed to properly convert data value for 'public.of.it.v' of type numeric",
            "public.of.it",
            "POLYNYA-GTW-057",
        ),
        (
            "change event for table shop.orders whose schema isn't known to this connector",
            "shop.orders",
            "POLYNYA-GTW-049",
        ),
        (UNREADABLE["fit"], "t", "POLYNYA-GTW-049"),
    ],
)
def test_a_table_that_debezium_names_is_named(said: str, table: str, code: str) -> None:
    error = failure_of(said)

    assert isinstance(error, TableError)
    assert (error.table, error.code) == (table, code)


def test_what_may_be_of_any_table_names_none() -> None:
    for word in ("value", "type"):
        assert not isinstance(failure_of(UNREADABLE[word]), TableError)


def test_anything_else_may_pass_by_itself() -> None:
    error = failure_of("Connection refused")

    assert isinstance(error, DependencyError)
    assert error.code == "POLYNYA-GTW-006"
    assert "Connection refused" in error.message


def test_a_password_that_needs_tls_is_told() -> None:
    error = failure_of("Unable to connect: Public Key Retrieval is not allowed")

    assert error.code == "POLYNYA-GTW-059"
    assert "mode: verify" in str(error)
