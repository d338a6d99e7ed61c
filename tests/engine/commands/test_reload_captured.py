"""A captured table is reloaded from its database, which has what no change told of."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.worker.capture import Capture
from polynya.engine.commands import reload_captured
from polynya.engine.commands.reload import ReloadRequest, ReloadResult, reload
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.connection import Connection
from polynya.model.config.dataset import ReloadMode
from polynya.model.errors import OperationError
from tests.capture.stand_in import StandIn, StandInEngines
from tests.capture.worker.test_capture import SETTINGS
from tests.lab.lab import Lab

pytestmark = pytest.mark.slow

COMPARE: ReloadMode = "compare_and_apply_with_deleted_rows"
KEEP: ReloadMode = "compare_and_apply_without_deleted_rows"
#: The database after changes that nobody was told of, and one that was not copied yet.
NOW = [(1, "silently"), (2, "told"), (4, "new")]


class Shop:
    """A database that is captured into a lab."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab, self.table = lab, f"{lab.schema}.users"
        self.database = StandIn({self.table: {1: "Ann", 2: "Ben", 3: "Cid"}})
        self.tables = lab.capture()
        self.land()
        self.tables.run("always")

        @contextmanager
        def database_of(_task: ConnectedCapture) -> Any:
            yield self.database

        monkeypatch.setattr(reload_captured, "database_of", database_of)

    def land(self) -> None:
        """Land what there is now."""
        seconds = count()
        Capture(
            replace(SETTINGS, folder=self.lab.schema), self.database,
            CaptureLog(self.lab.context().landing, self.lab.schema), StandInEngines(),
            lambda *_, **__: None, monotonic=lambda: 0.0,
            now=lambda: datetime(2026, 1, 1, second=next(seconds) % 60, tzinfo=UTC),
        ).run()  # fmt: skip

    def changes(self) -> None:
        """Some that are in no log, and one that is."""
        self.database.rows[self.table] |= {1: "silently", 4: "new"}
        self.database.forget(self.table, 3)
        self.database.commit(("u", self.table, 2, "told"))

    def reload(self, mode: ReloadMode, **settings: Any) -> ReloadResult | None:
        capture = ConnectedCapture(
            apiVersion="polynya/v1", kind="landing", name="shop_db", connection="shop",
            folder=self.lab.schema, tables={"include": ["*"]}, **settings,
            database=Connection(
                type="postgresql", host="127.0.0.1", database="shop", user="me",
                password={"env": "SHOP_PW"},
            ),
        )  # fmt: skip
        users = self.tables["users"].dataset
        return reload(
            self.lab.context(), ReloadRequest(self.tables.task, users, mode=mode, capture=capture)
        )

    def current(self) -> list[tuple[Any, ...]]:
        return self.tables["users"].current("id", "v")


@pytest.fixture
def shop(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(lab, monkeypatch)


def test_differences_are_moved_and_changes_that_come_later_win(shop: Shop) -> None:
    shop.changes()

    result = shop.reload(COMPARE)

    assert result is not None
    assert result.loaded == 3
    assert shop.current() == NOW
    operations = [row[1] for row in shop.tables["users"].history("id")]
    assert sorted(operations) == ["L", "L", "L", "d", "i", "u", "u"]
    shop.database.commit(("u", shop.table, 4, "newer"))
    shop.land()
    shop.tables.run("always")
    assert shop.current() == [*NOW[:2], (4, "newer")]


@pytest.mark.parametrize("mode", [KEEP, "truncate_and_insert", "drop_and_create"])
def test_the_other_modes(shop: Shop, mode: ReloadMode) -> None:
    shop.changes()

    shop.reload(mode)

    kept = [(3, "Cid")] if mode == KEEP else []
    assert shop.current() == sorted([*NOW, *kept])


def test_a_filter_is_not_taken_for_deletes(shop: Shop) -> None:
    shop.changes()
    load = {"filter": {shop.table: "id < 2"}}

    with pytest.raises(OperationError, match="which the reload would delete"):
        shop.reload(COMPARE, load=load)
    assert shop.reload(KEEP, load=load) is not None
