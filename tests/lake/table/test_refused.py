"""Whom a refused step has to blame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from polynya.lake.table import refused
from polynya.lake.table.state import ApplyState, CopyState, TableOwnership, TableState
from polynya.model.errors import ConflictError, StaleStepError

OURS = TableOwnership(3, "ours", "a commit")
BEFORE = TableState(7, CopyState(ownership=OURS), ApplyState(ownership=OURS))
THEIRS = TableOwnership(4, "theirs", "another")


class Table:
    """As much of a table as the question needs."""

    name = "shop_internal.users_internal"


@pytest.mark.parametrize(
    ("found", "stale"),
    [
        (replace(BEFORE, snapshot=8), True),
        (BEFORE, False),
        (replace(BEFORE, snapshot=8, apply=ApplyState(ownership=THEIRS)), False),
        (replace(BEFORE, snapshot=8, copy=CopyState(ownership=replace(OURS, commit="b"))), False),
    ],
    ids=["files moved", "nothing moved", "another owner", "another commit of ours"],
)
def test_only_who_left_the_states_as_they_were_is_no_owner(
    monkeypatch: pytest.MonkeyPatch, found: TableState, stale: bool
) -> None:
    monkeypatch.setattr(refused, "read_state", lambda _: found)
    table: Any = Table()
    error = ConflictError("POLYNYA-LAKE-003", "another owner changed it")

    try:
        refused.refuse_stale(table, BEFORE, error)
    except StaleStepError as told:
        assert stale
        assert (told.code, told.why) == ("POLYNYA-LAKE-051", error.message)
    else:
        assert not stale


def test_a_refusal_that_says_so_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "read_state", lambda _: replace(BEFORE, snapshot=8))
    table: Any = Table()

    refused.refuse_stale(table, BEFORE, StaleStepError("POLYNYA-LAKE-050", "expired"))
