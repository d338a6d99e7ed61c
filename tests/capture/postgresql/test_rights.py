"""The rights that the page on capturing PostgreSQL names are enough, and each is needed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.door import certificate, door
from polynya.capture.wire import TableError
from polynya.model.errors import OperationError
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop, rows

PAGE = Path(__file__).parents[3] / "docs" / "capture-postgresql.md"


def statements() -> list[str]:
    """Those of the page, one by one."""
    block = re.search(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    lines = [line for line in block[1].splitlines() if not line.startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]


@pytest.fixture
def secured(shop: Shop) -> Iterator[Shop]:
    """A database where others have no rights, and the user `capture` has those of the page."""
    shop.run(
        "CREATE TABLE customers (id int PRIMARY KEY)",
        "CREATE TABLE orders (id int PRIMARY KEY, n int)",
        "INSERT INTO orders VALUES (1, 1)",
        "REVOKE ALL ON DATABASE shop FROM PUBLIC",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        *statements(),
    )
    yield shop
    shop.close()
    shop.run("DROP OWNED BY capture", "DROP ROLE capture")


def capture(shop: Shop) -> dict[str, str]:
    return {"user": "capture", "password": "a-secret", "task": "shop_db"}


def test_a_capture_begins_and_goes_on_with_these_rights_alone(secured: Shop) -> None:
    database = secured.open(**capture(secured))

    assert [one.what for one in database.findings() if not one.ok] == []
    tables = database.tables(("public.*",), ())
    begun = database.begin(tables)
    assert rows(begun.snapshot.read(tables[1], None, 10, None)) == [{"id": 1, "n": 1}]
    begun.snapshot.close()
    later = database.resume(tables)
    assert rows(later.read(tables[1], None, 10, None)) == [{"id": 1, "n": 1}]
    later.close()
    assert database.lag(begun.offset).bytes is not None
    assert database.lost(begun.offset) is None
    database.drop()
    # The slots of closed views go when the server has ended their sessions.
    kept = "SELECT 1 FROM pg_replication_slots WHERE database = 'shop' AND NOT temporary"
    assert list(secured.run(kept)) == []
    assert secured.run("SELECT pubname FROM pg_publication") == [["polynya_shop_db"]]


@pytest.mark.parametrize(
    ("later", "code"),
    [("id int PRIMARY KEY", "POLYNYA-GTW-027"), ("line text", "POLYNYA-GTW-025")],
)
def test_a_table_that_comes_later_and_cannot_be_captured_does_not_keep_the_others(
    secured: Shop, later: str, code: str
) -> None:
    database = secured.open(**capture(secured))
    before = database.tables(("public.*",), ())
    database.begin(before).snapshot.close()
    secured.run(f"CREATE TABLE later ({later})")

    with pytest.raises(TableError) as caught:
        database.resume(database.tables(("public.*",), ()))

    assert (caught.value.table, caught.value.code) == ("public.later", code)
    assert "later" in str(caught.value.fix)
    database.resume(before).close()


@pytest.fixture
def capturing(secured: Shop, tmp_path: Path) -> Iterator[CaptureProcess]:
    """A capture of that user that runs, through TLS with a certificate that is verified."""
    shown = certificate(tmp_path)
    (tmp_path / "landing").mkdir()
    with door(secured.server.port, certificate=shown) as tls:
        given = capture(secured) | {"tls": "verify", "ca": str(shown)}
        process = CaptureProcess(tmp_path / "landing", secured.access(port=tls.port, **given))
        process.start()
        process.wait_for("loaded", times=2)
        yield process
        process.end()


def test_a_capture_loads_and_streams_with_these_rights_alone(
    secured: Shop, capturing: CaptureProcess
) -> None:
    secured.run("UPDATE orders SET n = 3 WHERE id = 1", "INSERT INTO orders VALUES (2, 2)")
    capturing.wait_for_line("orders", id=2)

    rows = capturing.tables()["public.orders"].values()
    assert [*rows] == [{"id": 1, "n": 3}, {"id": 2, "n": 2}]


@pytest.mark.slow
def test_the_slot_moves_on_with_these_rights_where_only_other_tables_are_written(
    secured: Shop, capturing: CaptureProcess
) -> None:
    """Each sign of life may write a message into the log, without which the slot would stay."""
    place = (
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_type = 'logical'"
    )
    capturing.wait_for("streaming")
    secured.run(
        "CREATE SCHEMA elsewhere",
        "CREATE TABLE elsewhere.other (t text)",
        "ALTER TABLE elsewhere.other ALTER t SET STORAGE EXTERNAL",
        "INSERT INTO elsewhere.other SELECT repeat('x', 3000) FROM generate_series(1, 9000)",
    )
    (written,) = secured.run("SELECT pg_current_wal_lsn() - '0/0'")[0]

    deadline = time.monotonic() + 240
    while secured.run(place)[0][0] < written:
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("taken", "code"),
    [
        ("ALTER ROLE capture NOREPLICATION", "POLYNYA-GTW-023"),
        ("REVOKE SELECT ON orders FROM capture", "POLYNYA-GTW-023"),
        ("REVOKE CONNECT ON DATABASE shop FROM capture", "POLYNYA-GTW-023"),
        ("DROP PUBLICATION polynya_shop_db", "POLYNYA-GTW-027"),
        ("ALTER TABLE orders ENABLE ROW LEVEL SECURITY", "POLYNYA-GTW-023"),
    ],
)
def test_without_one_of_them_the_error_says_so(secured: Shop, taken: str, code: str) -> None:
    secured.run(taken)
    database = secured.open(**capture(secured))

    with pytest.raises(OperationError) as caught:
        tables = database.tables(("public.*",), ())
        begun = database.begin(tables)
        try:
            begun.snapshot.read(tables[1], None, 10, None)
        finally:
            begun.snapshot.close()

    assert caught.value.code == code
    assert "a-secret" not in caught.value.render()


def test_a_test_of_the_connection_names_what_is_missing(secured: Shop) -> None:
    secured.run("ALTER ROLE capture NOREPLICATION", "DROP PUBLICATION polynya_shop_db")

    wrong = [one for one in secured.open(**capture(secured)).findings() if not one.ok]

    assert "may not replicate" in wrong[0].what
    assert wrong[0].fix == 'ALTER ROLE "capture" REPLICATION'
    assert "may not make one" in wrong[1].what
    assert "CREATE PUBLICATION" in wrong[1].fix
