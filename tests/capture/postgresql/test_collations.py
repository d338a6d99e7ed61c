"""Keys of texts are read once and whole, and compared, whatever collation orders them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from polynya.capture.compare.digest import DigestLayout, TextForm
from polynya.capture.compare.postgresql import ComparedPostgres
from polynya.capture.source import SourceTable
from polynya.model.errors import OperationError
from tests.capture.postgresql.shop import Shop, read_all, rows
from tests.postgresql import icu_server

ICU = "provider = icu, deterministic = false"
MADE = (
    f"CREATE COLLATION anycase ({ICU}, locale = 'und-u-ks-level2')",
    f"CREATE COLLATION plain ({ICU}, locale = 'und-u-ks-level1')",
    "CREATE COLLATION german (provider = icu, locale = 'de-u-co-phonebk')",
    "CREATE DOMAIN code AS text COLLATE german",
)
#: A small letter, a capital one, one with an accent, blanks, quotes; no two are equal anywhere.
TEXTS = (
    "(ARRAY['a', 'B', 'ç', ' ', '''', 'D', 'é', '', 'ä', 'Z'])[1 + i % 10] || lpad(i::text, 3, '0')"
)
#: What every server has.
PLAIN_KEYS = {
    "a domain in another collation": 'k plain_code COLLATE "POSIX" PRIMARY KEY',
    "two collations": 'k text COLLATE "POSIX", l text COLLATE "C", PRIMARY KEY (l, k)',
    "a system type": "k name PRIMARY KEY",
}
ICU_KEYS = {
    "case does not count": "k text COLLATE anycase PRIMARY KEY",
    "accents do not count": "k varchar(20) COLLATE plain PRIMARY KEY",
    "a domain": "k code PRIMARY KEY",
    "a domain in another collation": "k code COLLATE anycase PRIMARY KEY",
    "blanks at the end": "k char(9) COLLATE anycase PRIMARY KEY",
    "two collations": 'k text COLLATE anycase, l text COLLATE "C", PRIMARY KEY (l, k)',
    "numbers and texts": "l int, k text COLLATE plain, PRIMARY KEY (l, k)",
    "an index in another collation": "k text COLLATE anycase NOT NULL",
}


@pytest.fixture(scope="module")
def icu() -> Iterator[Shop]:
    """A database whose server knows the collations of ICU."""
    with icu_server() as server:
        server.run("CREATE DATABASE shop TEMPLATE template0")
        yield Shop(server, "shop")


@pytest.fixture
def icu_shop(icu: Shop) -> Iterator[Shop]:
    icu.run(*MADE)
    yield icu
    icu.close()
    icu.clear()


def read_once_and_compared(shop: Shop, kind: str) -> None:
    columns = "k, n" if "l " not in kind else "k, n, l"
    more = ", i % 3" if "l " in kind else ""
    shop.run(
        f"CREATE TABLE things ({kind}, n int)",
        f"INSERT INTO things ({columns}) SELECT {TEXTS}, i{more} FROM generate_series(1, 100) i",
    )
    if "KEY" not in kind:
        # For the index these are different rows, for the column they are the same one.
        shop.run(
            'CREATE UNIQUE INDEX exact ON things (k COLLATE "C")',
            "ALTER TABLE things REPLICA IDENTITY USING INDEX exact",
            "INSERT INTO things SELECT upper(k), 100 + n FROM things WHERE upper(k) <> k",
        )
    (table,), view = shop.begin("public.things")

    pages = read_all(view, table, 9)

    ((count,),) = shop.run("SELECT count(*) FROM things")
    assert sorted(row["n"] for page in pages for row in page) == list(range(1, count + 1))
    layout = DigestLayout((("k", TextForm.TEXT), ("n", TextForm.WHOLE)), ("k",))
    moment = ComparedPostgres(shop.access()).moment()
    found = moment.rows("public.things", layout, 2, range(4), None)
    moment.close()
    assert len(found) == count


@pytest.mark.parametrize("kind", PLAIN_KEYS)
def test_each_row_comes_once_and_is_compared_whatever_orders_its_key(shop: Shop, kind: str) -> None:
    shop.run('CREATE DOMAIN plain_code AS text COLLATE "C"')
    read_once_and_compared(shop, PLAIN_KEYS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ICU_KEYS)
def test_each_row_comes_once_where_different_texts_may_be_one_key(
    icu_shop: Shop, kind: str
) -> None:
    read_once_and_compared(icu_shop, ICU_KEYS[kind])


def test_keys_of_texts_in_two_collations_are_compared(shop: Shop) -> None:
    shop.run(
        'CREATE TABLE things (a text COLLATE "C", b text COLLATE "POSIX", PRIMARY KEY (a, b))',
        "INSERT INTO things VALUES ('A', 'b'), ('ä', '')",
    )
    columns = (("a", TextForm.TEXT), ("b", TextForm.TEXT))
    moment = ComparedPostgres(shop.access()).moment()

    found = moment.rows("public.things", DigestLayout(columns, ("a", "b")), 0, [0], None)
    some = moment.keys("public.things", DigestLayout(columns, ("a", "b")), [*found][:1], None)
    moment.close()

    assert sorted(one.key for one in found.values()) == ["A, b", "ä, "]
    assert len(some) == 1


def resumed(shop: Shop, change: str) -> tuple[list[Any], SourceTable]:
    """The first page, and all pages that another process reads after a change."""
    shop.run(
        'CREATE TABLE things (k text COLLATE "C" PRIMARY KEY, n int NOT NULL)',
        f"INSERT INTO things SELECT {TEXTS}, i FROM generate_series(1, 100) i",
    )
    (table,), view = shop.begin("public.things")
    first = view.read(table, None, 30, None)
    after = tuple(json.loads(json.dumps(first.last)))
    view.close()
    shop.run(change)
    database = shop.open()
    (table,) = database.tables(["public.things"], ())
    later = database.resume([table])
    shop.closes(later)
    pages = [rows(first)]
    while True:
        chunk = later.read(table, after, 30, None)
        pages.append(rows(chunk))
        if chunk.is_last:
            return pages, table
        after = tuple(json.loads(json.dumps(chunk.last)))


def test_a_load_goes_on_where_it_was_while_the_key_is_ordered_as_before(shop: Shop) -> None:
    pages, _ = resumed(shop, "ALTER TABLE things ADD COLUMN m int")

    assert [len(page) for page in pages] == [30, 30, 30, 10]


def test_a_key_in_another_collation_is_read_from_its_beginning(shop: Shop) -> None:
    pages, _ = resumed(shop, 'ALTER TABLE things ALTER COLUMN k TYPE text COLLATE "POSIX"')

    assert {row["n"] for page in pages[1:] for row in page} == set(range(1, 101))


@pytest.mark.parametrize("change", ["ADD PRIMARY KEY (n)", "RENAME COLUMN k TO l"])
def test_a_load_whose_table_has_another_key_is_ended_by_name(shop: Shop, change: str) -> None:
    dropped = "" if "RENAME" in change else "ALTER TABLE things DROP CONSTRAINT things_pkey; "

    with pytest.raises(OperationError) as error:
        resumed(shop, f"{dropped}ALTER TABLE things {change}")

    assert error.value.code == "POLYNYA-GTW-047"
    assert "landing reload shop public.things" in error.value.fix
