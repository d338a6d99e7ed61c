"""What a capture makes in a database, what it refuses, and what it leaves alone."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from polynya.capture.postgresql import slots
from polynya.capture.postgresql.session import lsn_number, lsn_text
from polynya.model.errors import DependencyError, OperationError
from tests.capture.postgresql.shop import Shop, rows

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, n int)"
SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = 'shop' ORDER BY 1"
PUBLISHED = "SELECT tablename FROM pg_publication_tables ORDER BY 1"


def inserted(shop: Shop) -> int:
    """How many inserts the stream has from its beginning on."""
    ((changes,),) = shop.run(
        "SELECT count(*) FROM pg_logical_slot_peek_binary_changes('polynya_shop', NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'polynya_shop') WHERE get_byte(data, 0) = 73"
    )
    return int(changes)


class Held:
    """A transaction that is open until it is ended."""

    def __init__(self, shop: Shop, *statements: str) -> None:
        self._shop, self._session = shop, shop.server.connect(database=shop.name)
        for one in ("BEGIN", *statements):
            self._session.run(one)
        self._number = int(self._session.run("SELECT txid_current() % 4294967296")[0][0])

    def is_waited_for(self) -> None:
        """Until the maker of a slot waits for its end."""
        deadline = time.monotonic() + 30
        while not self._shop.run(
            "SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted "
            f"AND transactionid = '{self._number}'::xid"
        ):
            assert time.monotonic() < deadline, "no slot waits for the transaction"
            time.sleep(0.01)

    def end(self) -> None:
        self._session.run("COMMIT")
        self._session.close()


def test_the_stream_begins_where_the_view_ends(shop: Shop) -> None:
    shop.run(ORDERS, "INSERT INTO orders VALUES (1, 1)")
    database = shop.open()
    tables = database.tables(("public.*",), ())

    begun = database.begin(tables)
    shop.run("INSERT INTO orders VALUES (2, 2)")

    place = int(begun.offset["lsn_commit"])
    assert begun.snapshot.source["lsn"] == place
    assert [row["id"] for row in rows(begun.snapshot.read(tables[0], None, 10, None))] == [1]
    assert shop.run(f"SELECT '{lsn_text(place)}' = confirmed_flush_lsn::text "
                    "FROM pg_replication_slots") == [[True]]  # fmt: skip
    begun.snapshot.close()
    assert inserted(shop) == 1


def test_what_a_killed_beginning_left_is_made_again(shop: Shop) -> None:
    shop.run(ORDERS)
    database = shop.open()
    tables = database.tables(("public.*",), ())
    first = database.begin(tables)
    first.snapshot.close()
    shop.run("INSERT INTO orders VALUES (1, 1)")

    second = shop.open().begin(tables)

    assert int(second.offset["lsn"]) > int(first.offset["lsn"])
    assert len(rows(second.snapshot.read(tables[0], None, 10, None))) == 1
    second.snapshot.close()
    assert shop.run(SLOTS) == [["polynya_shop"]]


@pytest.mark.parametrize("change", ["ALTER n TYPE bigint", "ADD COLUMN m int"])
def test_a_slot_during_whose_making_a_table_was_altered_is_made_again(
    shop: Shop, change: str
) -> None:
    """The server would decode with the former table what was open when the slot was complete.

    Of the first it would say that it cannot; of the second it would leave out the new column.
    """
    shop.run(ORDERS)
    database = shop.open()
    tables = database.tables(("public.*",), ())
    first = Held(shop)
    with ThreadPoolExecutor() as pool:
        beginning = pool.submit(database.begin, tables)
        first.is_waited_for()
        second = Held(shop)
        shop.run(f"ALTER TABLE orders {change}")
        first.end()
        second.is_waited_for()
        writer = Held(shop, "INSERT INTO orders VALUES (1, 1)")
        second.end()
        writer.is_waited_for()
        writer.end()
        begun = beginning.result(60)
    shop.run("INSERT INTO orders VALUES (2, 2)")

    loaded = rows(begun.snapshot.read(tables[0], None, 10, None))
    begun.snapshot.close()

    assert [row["id"] for row in loaded] == [1]
    assert inserted(shop) == 1


def test_a_slot_is_given_up_when_tables_are_altered_each_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(ORDERS)
    database = shop.open()
    tables = database.tables(("public.*",), ())
    real = slots.create

    def create(access: Any, name: str, *, is_temporary: bool) -> slots.ExportedSnapshot:
        shop.run("TRUNCATE orders")
        return real(access, name, is_temporary=is_temporary)

    monkeypatch.setattr(slots, "create", create)
    with pytest.raises(DependencyError) as caught:
        database.begin(tables)

    assert caught.value.code == "POLYNYA-GTW-033"
    assert "altered while the slot" in caught.value.render()
    assert shop.run(SLOTS) == []


def test_a_slot_that_somebody_read_is_not_touched(shop: Shop) -> None:
    shop.run(ORDERS)
    database = shop.open()
    tables = database.tables(("public.*",), ())
    database.begin(tables).snapshot.close()
    session = shop.server.connect(database=shop.name)
    session.run("INSERT INTO orders SELECT i, i FROM generate_series(1, 1000) i")
    session.run(
        "SELECT count(*) FROM pg_logical_slot_get_binary_changes('polynya_shop', NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'polynya_shop')"
    )
    session.close()

    with pytest.raises(OperationError, match="it was read before") as caught:
        database.begin(tables)

    assert caught.value.code == "POLYNYA-GTW-028"
    assert shop.run(SLOTS) == [["polynya_shop"]]


def test_a_later_view_has_tables_that_came_meanwhile_and_leaves_no_slot(shop: Shop) -> None:
    shop.run(ORDERS, "INSERT INTO orders VALUES (1, 1)")
    database = shop.open()
    begun = database.begin(database.tables(("public.*",), ()))
    begun.snapshot.close()
    shop.run("CREATE TABLE lines (id int PRIMARY KEY)", "INSERT INTO lines VALUES (7)")
    later_tables = database.tables(("public.*",), ())

    later = database.resume(later_tables)

    assert [one.name for one in later_tables] == ["public.lines", "public.orders"]
    assert rows(later.read(later_tables[0], None, 10, None)) == [{"id": 7}]
    assert int(later.source["lsn"]) > int(begun.offset["lsn"])
    assert shop.run(PUBLISHED) == [["lines"], ["orders"]]
    later.close()
    shop.run("SELECT pg_sleep(0.2)")
    assert shop.run(SLOTS) == [["polynya_shop"]]


def test_rows_of_a_later_view_stand_behind_the_last_transaction_that_it_has(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(ORDERS, "CREATE TABLE apart (n int)", "INSERT INTO orders VALUES (1, 0)")
    database = shop.open()
    tables = database.tables(("public.orders",), ())
    database.begin(tables).snapshot.close()
    create = slots.create

    def beside_others(*args: Any, **more: Any) -> slots.ExportedSnapshot:
        shop.run(
            "UPDATE orders SET n = 1", "UPDATE orders SET n = 2", "INSERT INTO apart VALUES (1)"
        )
        made = create(*args, **more)
        shop.run("UPDATE orders SET n = 3")
        return made

    monkeypatch.setattr(slots, "create", beside_others)
    later = database.resume(tables)

    begins = shop.run(
        "SELECT lsn::text, get_byte(data, 0) = ascii('C') FROM pg_logical_slot_peek_binary_changes("
        "'polynya_shop', NULL, NULL, 'proto_version', '1', 'publication_names', 'polynya_shop', "
        "'messages', 'true') WHERE get_byte(data, 0) IN (ascii('C'), ascii('U'))"
    )
    commits = [lsn_number(place) for place, is_commit in begins if is_commit]
    changes = [place for place, is_commit in begins if not is_commit]
    assert rows(later.read(tables[0], None, 10, None)) == [{"id": 1, "n": 2}]
    # The message of our own, the three changes, the message behind the view.
    assert (len(commits), len(changes)) == (5, 3)
    assert later.source["lsn"] == commits[2]
    later.close()


def test_slot_and_publication_go_only_when_asked(shop: Shop) -> None:
    shop.run(ORDERS)
    database = shop.open()
    database.begin(database.tables(("public.*",), ())).snapshot.close()
    database.close()
    assert shop.run(SLOTS) == [["polynya_shop"]]

    shop.open().drop()

    assert list(shop.run(SLOTS)) == []
    assert list(shop.run("SELECT pubname FROM pg_publication")) == []


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (["CREATE TABLE bare (n int)"], "POLYNYA-GTW-025"),
        (["CREATE TABLE silent (n int PRIMARY KEY)", "ALTER TABLE silent REPLICA IDENTITY NOTHING"],
         "POLYNYA-GTW-025"),
        (["CREATE TABLE loose (n int UNIQUE)", "ALTER TABLE loose REPLICA IDENTITY FULL"],
         "POLYNYA-GTW-035"),
        (["CREATE TYPE size AS ENUM ('s')", "CREATE DOMAIN sizes AS size"], "POLYNYA-GTW-029"),
    ],
)  # fmt: skip
def test_what_would_harm_the_source_or_the_stream_is_refused_before_anything_is_made(
    shop: Shop, made: list[str], code: str
) -> None:
    shop.run(ORDERS, *made)
    database = shop.open()

    with pytest.raises(OperationError) as caught:
        database.begin(database.tables(("public.*",), ()))

    assert caught.value.code == code
    assert list(shop.run(SLOTS)) == []
    assert list(shop.run("SELECT pubname FROM pg_publication")) == []


def test_patterns_pass_over_views_and_a_view_by_its_name_is_refused_with_the_reason(
    shop: Shop,
) -> None:
    shop.run(ORDERS, "CREATE VIEW big AS SELECT * FROM orders", "CREATE TABLE tmp_1 (n int)")
    database = shop.open()

    tables = database.tables(("public.*",), ("public.tmp_%",))
    named = database.tables(("public.big",), ())

    assert [one.name for one in tables] == ["public.orders"]
    with pytest.raises(OperationError, match="a view has no changes of its own"):
        database.begin(named)


def test_a_publication_of_others_is_used_when_it_has_all_and_refused_when_it_tells_less(
    shop: Shop,
) -> None:
    shop.run(ORDERS, "CREATE PUBLICATION theirs FOR ALL TABLES")
    database = shop.open(publication="theirs")
    tables = database.tables(("public.*",), ())

    with pytest.raises(OperationError, match="publish_via_partition_root"):
        database.begin(tables)
    shop.run("ALTER PUBLICATION theirs SET (publish_via_partition_root = true)")
    database.begin(tables).snapshot.close()

    assert shop.run("SELECT pubname FROM pg_publication") == [["theirs"]]


def test_rows_are_left_out_only_by_what_updates_and_deletes_can_tell(shop: Shop) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, region text)")
    wanted = {"public.orders": "region = 'eu'"}
    database = shop.open(rows=wanted)
    tables = database.tables(("public.*",), ())

    with pytest.raises(OperationError, match="filtered by region") as caught:
        database.begin(tables)
    assert caught.value.code == "POLYNYA-GTW-030"
    assert list(shop.run("SELECT pubname FROM pg_publication")) == []
    shop.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    shop.open(rows=wanted).begin(tables).snapshot.close()

    condition = shop.run("SELECT rowfilter FROM pg_publication_tables")[0][0]
    assert "region" in condition


def test_generated_columns_are_left_out_and_keys_follow_the_identity(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE a (x int NOT NULL, y int NOT NULL, z int GENERATED ALWAYS AS (x + y) STORED)",
        "CREATE UNIQUE INDEX a_yx ON a (y, x)",
        "ALTER TABLE a REPLICA IDENTITY USING INDEX a_yx",
    )
    database = shop.open()

    (table,) = database.tables(("public.a",), ())

    assert [one.name for one in table.columns] == ["x", "y"]
    assert table.key == ("y", "x")
    settings = database.engine_properties([table])
    assert settings["message.key.columns"] == r"public\x{2e}a:y,x"
    assert settings["column.exclude.list"] == r"public\x{2e}a\x{2e}z"


def test_a_value_that_cannot_be_converted_is_an_error_unless_a_list_needs_null_for_it(
    shop: Shop,
) -> None:
    shop.run(
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE TABLE a (id int PRIMARY KEY, n numeric NOT NULL, l int[], m mood[] NOT NULL)",
        "CREATE TABLE b (id int PRIMARY KEY, m mood[])",
    )
    database = shop.open()
    shop.run("CREATE TABLE c (id int PRIMARY KEY, f double precision[])")
    a, b, c = database.tables(("public.*",), ())

    said = "event.converting.failure.handling.mode"
    assert database.engine_properties([a])[said] == "fail"
    assert database.engine_properties([a, b])[said] == "warn"
    assert database.engine_properties([a, b], without={"public.b"})[said] == "fail"
    # A list of doubles that is not in the log must not become NULL, unless the log has all of it.
    assert database.engine_properties([a, b, c])[said] == "fail"
    shop.run("ALTER TABLE c REPLICA IDENTITY FULL")
    a, b, c = database.tables(("public.*",), ())
    assert database.engine_properties([a, b, c])[said] == "warn"


@pytest.mark.parametrize(
    "column",
    [
        "b text DEFAULT 'x'",
        "b uuid DEFAULT gen_random_uuid()",
        "b serial",
        "b int GENERATED ALWAYS AS IDENTITY",
        "b with_default",
    ],
)
def test_a_column_that_filled_the_rows_that_were_there_is_known_by_its_number(
    shop: Shop, column: str
) -> None:
    shop.run(
        "CREATE DOMAIN with_default AS int DEFAULT 7",
        "CREATE TABLE orders (id int PRIMARY KEY, a text DEFAULT 'y')",
        "INSERT INTO orders VALUES (1)",
    )
    (before,) = shop.open().tables(("public.orders",), ())

    shop.run("ALTER TABLE orders ADD COLUMN bare text", f"ALTER TABLE orders ADD COLUMN {column}")

    (after,) = shop.open().tables(("public.orders",), ())
    assert (before.columns_made, before.columns_filled) == (2, 2)
    assert (after.columns_made, after.columns_filled) == (4, 4)
    shop.run("ALTER TABLE orders DROP COLUMN b", "ALTER TABLE orders RENAME bare TO other")
    (dropped,) = shop.open().tables(("public.orders",), ())
    assert (dropped.columns_made, dropped.columns_filled) == (3, 2)


def test_a_table_that_took_the_name_of_another_is_another(shop: Shop) -> None:
    shop.run(ORDERS)
    (before,) = shop.open().tables(("public.orders",), ())
    shop.run("ALTER TABLE orders RENAME TO orders_old", ORDERS)

    (after,) = shop.open().tables(("public.orders",), ())

    assert before.identity != after.identity


def test_a_table_that_somebody_took_out_of_the_publication_is_not_followed(shop: Shop) -> None:
    shop.run(ORDERS)
    database = shop.open()
    tables = database.tables(("public.orders",), ())
    database.begin(tables).snapshot.close()
    assert [one.is_followed for one in database.tables(("public.orders",), ())] == [True]

    shop.run("ALTER PUBLICATION polynya_shop DROP TABLE orders")

    assert [one.is_followed for one in database.tables(("public.orders",), ())] == [False]
    database.resume(tables).close()
    assert [one.is_followed for one in database.tables(("public.orders",), ())] == [True]
