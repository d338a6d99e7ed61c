"""A server that follows another one: what changes is captured elsewhere, what is there is read."""

from __future__ import annotations

import pytest

from polynya.model.errors import OperationError
from tests.capture.postgresql.shop import Shop, read_all
from tests.postgresql import postgres_server

pytestmark = pytest.mark.slow


def test_a_standby_gives_loads_without_changes_and_says_why_no_more() -> None:
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(
            "CREATE TABLE orders (id int PRIMARY KEY)",
            "INSERT INTO orders SELECT generate_series(1, 30)",
            "CREATE VIEW odd AS SELECT id FROM orders WHERE id % 2 = 1",
        )
        server.stop()
        (server.data / "standby.signal").touch()
        server.start()

        database = shop.open()
        wrong = [one.what for one in database.findings() if not one.ok]
        assert wrong == ["the server is a standby, of which changes cannot be captured"]
        assert all(one.ok for one in shop.open(follows=False).findings())
        tables = database.tables(("public.orders", "public.odd"), ())
        with pytest.raises(OperationError) as refused:
            database.begin([one for one in tables if one.key])
        assert "read-only transaction" in str(refused.value.why)
        first, second = (database.look(tables, None) for _ in range(2))
        again = database.look(tables, second.offset)
        odd, orders = tables
        assert len(read_all(first.snapshot, orders, 7)) == 5
        assert [row["id"] for row in read_all(again.snapshot, odd, 100)[0]] == [*range(1, 30, 2)]
        # Nothing is written here, so the log says the same; the place moves all the same.
        assert int(again.snapshot.source["lsn"]) == int(second.snapshot.source["lsn"]) + 2
        for one in (first, second, again):
            one.snapshot.close()
        shop.close()
