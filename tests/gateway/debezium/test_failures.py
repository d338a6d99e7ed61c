"""What the end of an engine means: to be tried again, or for a person to decide."""

from __future__ import annotations

import pytest

from polynya.gateway.debezium.failures import failure_of
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
    "fit": "Error processing row in t, internal schema size 4, but row size 5 , restart connector",
}


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


def test_anything_else_may_pass_by_itself() -> None:
    error = failure_of("Connection refused")

    assert isinstance(error, DependencyError)
    assert error.code == "POLYNYA-GTW-006"
    assert "Connection refused" in error.message
