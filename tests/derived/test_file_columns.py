"""`validate` follows the names of queries as far as the files of a project tell them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.derived.names import StatementText
from polynya.derived.query_errors import query_errors
from polynya.derived.schema import DerivedInput
from polynya.derived.statement import result_columns
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - {name: orders, path: orders/*, keys: [id], sequence_by: [seq], except_columns: [seq]}
  - name: prices
    path: prices/*
    keys: [sku]
    sequence_by: [at]
    columns: {sku: string, at: bigint, cents: int}
    except_columns: [at]
    history: true
"""
#: Files without a header line have the columns that are named, and no others.
PRICES = """\
apiVersion: polynya/v1
kind: storage
name: lists
schema: lists
landing: {path: lists, format: csv, header: false}
datasets:
  - name: prices
    path: "*.csv"
    keys: [sku]
    sequence_by: [at]
    columns: {sku: string, at: bigint, cents: int}
    except_columns: [at]
    history: true
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop, lists]
datasets:
  - name: spending
    sql: SELECT o.user_id, sum(p.cents) AS total FROM orders o JOIN lists.prices p USING (sku) GROUP BY o.user_id
    keys: [user_id]
  - name: other
    QUERY
    keys: [KEY]
"""  # noqa: E501
REPORTS = """\
apiVersion: polynya/v1
kind: transform
name: reports
from: [sales]
datasets:
  - name: by_total
    QUERY
    keys: [KEY]
"""


def _errors(folder: Path, query: str, key: str = "id", task: str = "sales") -> list[ConfigError]:
    plain = {"sales": (SALES, "sql: SELECT id FROM orders", "id")}
    plain["reports"] = (REPORTS, "sql: SELECT total FROM spending", "total")
    plain[task] = (plain[task][0], query, key)
    files = {
        name: text.replace("QUERY", own).replace("KEY", of_key)
        for name, (text, own, of_key) in plain.items()
    }
    return query_errors(
        load_project(write_project(folder, shop=SHOP, lists=PRICES, **files), tolerant=True)
    )


@pytest.mark.parametrize(
    ("query", "problem", "fix"),
    [
        ("SELECT sku AS id, cent FROM lists.prices", "`cent` at line 1, column 19", "`cents`?"),
        ("SELECT sku AS id, at FROM lists.prices", "`at` at line 1, column 19", None),
        ("SELECT p.skuu AS id FROM lists.prices p", "`p.skuu` at line 1, column 8", "`sku`?"),
        ("SELECT id FROM orders a JOIN orders b ON a.id = b.id", "`a.id`, `b.id`", "`a.id`"),
        ("SELECT id, seq FROM orders", "`seq` at line 1, column 12", None),
        ("SELECT id FROM orders o WHERE o.SEQ = 1", "`o.SEQ` at line 1", None),
        (
            "SELECT sku AS id, hdr__operatoin AS o FROM lists.prices__history",
            "`hdr__operatoin`", "`hdr__operation`?",
        ),
        (
            "WITH a AS (SELECT id AS k FROM orders) SELECT kk AS id FROM a",
            "`kk` at line 1, column 47", "`k`?",
        ),
        (
            "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM lists.prices p WHERE p.skuu = id)",
            "`p.skuu`", "`sku`?",
        ),
        (
            "SELECT sku AS id FROM lists.prices UNION SELECT id FROM orders ORDER BY idd",
            "`idd`", "`id`",
        ),
        (
            "SELECT sku AS id FROM lists.prices a JOIN lists.prices__history b ON a.sku = b.sku",
            "`sku` may be one of `a.sku`, `b.sku`", "`a.sku`",
        ),
        ("SELECT sku AS id FROM lists.prices JOIN orders USING (skuu)", "`skuu`", "`sku`?"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_an_error_at_its_query(
    query: str, problem: str, fix: str | None, tmp_path: Path
) -> None:
    (error,) = _errors(tmp_path, f"sql: {query}")

    assert error.code in {"POLYNYA-TRF-006", "POLYNYA-TRF-007"}
    assert error.where == "tasks/sales.yml:10:5"
    assert problem in error.message
    assert fix is None or fix in (error.fix or "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, anything, o.more, o.place.city FROM orders o",
        "SELECT id, cents FROM orders JOIN shop.prices ON orders.sku = prices.sku",
        "SELECT hdr__key_hash AS id, `cents` FROM lists.prices__history",
        "SELECT sku AS id, transform(array(cents), x -> x + 1) AS n FROM lists.prices",
        "SELECT sku AS id, aggregate(array(cents), 0, (acc, x) -> acc + x) AS n FROM lists.prices",
        "SELECT sku AS id, dateadd(DAY, 1, current_date) AS n, user AS u FROM lists.prices",
        "SELECT sku AS id, timestampdiff(MONTH, now(), now()) AS n FROM lists.prices",
        "SELECT sku AS id, `max(1)` AS n FROM (SELECT sku, max(1) FROM lists.prices GROUP BY sku)",
        "SELECT id, col FROM (SELECT sku AS id, explode(array(cents)) FROM lists.prices)",
        "SELECT sku AS id, key, value FROM lists.prices LATERAL VIEW explode(map(sku, cents)) t",
        "SELECT sku AS id, k FROM lists.prices LATERAL VIEW explode(array(1)) t AS k ORDER BY k",
        "SELECT a.sku AS id FROM lists.prices a JOIN lists.prices b ON a.sku = b.sku ORDER BY id",
        "SELECT a.sku FROM lists.prices a JOIN lists.prices b ON a.sku = b.sku ORDER BY sku",
        "SELECT named_struct('x', cents) AS s, s.x AS y, sku AS id FROM lists.prices",
        "SELECT sku AS id FROM lists.prices NATURAL JOIN lists.prices__history",
        "SELECT id, x FROM (VALUES (1, 2)) AS t(id, x)",
        "SELECT * FROM lists.prices PIVOT (sum(cents) FOR sku IN ('a' AS id))",
        "SELECT id, n FROM (SELECT CAST(sku AS STRING), 1 AS n FROM lists.prices) t(id, n)",
        "SELECT sku AS id FROM lists.prices GROUP BY ALL ORDER BY ALL",
        "SELECT sku AS id, row_number() OVER w AS n FROM lists.prices WINDOW w AS (ORDER BY cents)",
        "SELECT id FROM orders p WHERE 1 IN (SELECT k FROM (SELECT 1 AS k WHERE p.sku = 1) q)",
        "SELECT shop.orders.id FROM shop.orders, shop.prices",
        "SELECT id FROM read_files('x')",
    ],
)
def test_what_may_be_there_is_no_error(query: str, tmp_path: Path) -> None:
    key = "sku" if " AS id" not in query and "id" not in query else "id"

    assert [e for e in _errors(tmp_path, f'sql: "{query}"', key) if "TRF-00" in e.code] == []


def test_a_query_in_a_file_has_its_errors_there(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir(parents=True)
    text = "SELECT sku AS id,\n  cent\nFROM lists.prices\n"
    (tmp_path / "sql" / "x.sql").write_text(text, "utf-8")

    (error,) = _errors(tmp_path, "sql: sql/x.sql")

    assert error.where == "sql/x.sql:2:3"


def test_names_follow_through_the_chain_of_transforms(tmp_path: Path) -> None:
    (error,) = _errors(tmp_path, "sql: SELECT totl FROM spending", "totl", "reports")

    assert (error.code, error.where) == ("POLYNYA-TRF-006", "tasks/reports.yml:7:5")
    assert "did you mean `total`?" in (error.fix or "")


def test_a_wrong_query_hides_no_other_and_its_readers_stay_open(tmp_path: Path) -> None:
    query = "sql: SELECT nope AS id FROM lists.prices"
    wrong = SALES.replace("p.cents", "p.cent").replace("QUERY", query)
    reports = REPORTS.replace("QUERY", "sql: SELECT nothing FROM spending")
    files = {"sales": wrong.replace("KEY", "id"), "reports": reports.replace("KEY", "nothing")}

    errors = query_errors(load_project(write_project(tmp_path, shop=SHOP, lists=PRICES, **files)))

    assert [error.where for error in errors] == ["tasks/sales.yml:7:5", "tasks/sales.yml:10:5"]


def test_keys_that_a_result_lacks_are_an_error_at_their_place(tmp_path: Path) -> None:
    (error,) = _errors(tmp_path, "sql: SELECT sku, cents FROM lists.prices", "skuu")

    assert (error.code, error.where) == ("POLYNYA-TRF-074", "tasks/sales.yml:11:5")
    assert "did you mean `sku`?" in (error.fix or "")


def test_all_wrong_names_of_a_query_are_told_at_once(tmp_path: Path) -> None:
    query = """sql: >-
      WITH cheap AS (SELECT skuu, cents FROM lists.prices WHERE cent < 5),
      dear AS (SELECT sku FROM lists.prices p WHERE q.cents > 5 OR q.cents < cent)
      SELECT c.sku AS id, o.idd FROM cheap c JOIN dear USING (sku) JOIN orders o ON o.id = c.sku"""

    errors = _errors(tmp_path, query)

    assert [error.message.partition(" at line")[0] for error in errors] == [
        "no column is called `skuu`",
        "no column is called `cent`",
        "no table of this SELECT is called `q`",
    ], "each once; `c.sku` follows from the first, and records of orders may bring `idd`"
    assert errors[2].fix == "allowed here: p"


def test_a_union_has_as_many_columns_on_both_sides(tmp_path: Path) -> None:
    query = "sql: SELECT sku AS id, cents FROM lists.prices UNION ALL SELECT id FROM orders"

    (error,) = _errors(tmp_path, query)

    assert error.code == "POLYNYA-TRF-011"
    assert error.message.startswith("the sides of this UNION have 2 and 1 columns at line 1")


@pytest.mark.parametrize(
    "made",
    [
        "explode(map(1, 2))", "explode_outer(map(1, 2))", "inline(array(struct(1, 2)))",
        "inline_outer(array(struct(1, 2)))", "json_tuple('{}', 'a', 'b')",
        "posexplode(array(1))", "posexplode_outer(array(1))", "stack(1, 2, 3)",
    ],
)  # fmt: skip
def test_a_function_that_gives_rows_may_give_any_columns(tmp_path: Path, made: str) -> None:
    query = f"sql: SELECT sku AS id, cents FROM lists.prices UNION ALL SELECT {made} FROM orders"

    assert _errors(tmp_path, query) == []


def test_the_wrong_names_of_a_file_have_their_own_places(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "q.sql").write_text("SELECT skuu AS id,\n  cent\nFROM lists.prices")

    errors = _errors(tmp_path, "sql: sql/q.sql")

    assert [error.where for error in errors] == ["sql/q.sql:1:8", "sql/q.sql:2:3"]


def test_a_flow_over_known_columns_has_its_errors_at_the_step(tmp_path: Path) -> None:
    flow = "flow: [{select: {input: lists.prices, columns: [sku, cent]}}]"

    (error,) = _errors(tmp_path, flow, "sku")

    assert (error.where or "").startswith("tasks/sales.yml:10:")
    assert "cent" in error.message


INPUTS = {"t": DerivedInput("t", {"aa": "int", "bb": "int"}), "u": DerivedInput("u", {"cc": "int"})}
_TABLES = {"t": ["aa", "bb"], "u": ["cc"]}


@st.composite
def _queries(draw: st.DrawFn, depth: int = 2) -> tuple[str, list[str]]:
    """A query, and the names of its columns, which are all different."""
    if depth == 0 or draw(st.booleans()):
        table = draw(st.sampled_from(sorted(_TABLES)))
        source, names = table, _TABLES[table]
    else:
        inner, names = draw(_queries(depth - 1))
        source = f"({inner}) q{depth}"
    picked = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    made = [f"n{depth}_{number}" for number in range(len(picked))]
    items = ", ".join(f"{name} + 1 AS {new}" for name, new in zip(picked, made, strict=True))
    wheres = draw(st.sampled_from(["", f" WHERE {names[0]} > 1", f" ORDER BY {made[-1]}"]))
    return f"SELECT {items} FROM {source}{wheres}", made


@given(_queries(), st.randoms(use_true_random=False))
def test_each_name_counts_at_any_depth(query: tuple[str, list[str]], random: object) -> None:
    text, names = query
    assert list(result_columns(text, INPUTS, "q").names) == names

    # The columns stand between SELECT and `+ 1`.
    places = [at for at in range(len(text)) if text.startswith(" + 1", at)]
    at = text.rfind(" ", 0, random.choice(places)) + 1  # type: ignore[attr-defined]
    typo = f"{text[:at]}zz{text[at:]}"
    with pytest.raises(ConfigError) as refused:
        result_columns(typo, INPUTS, "q")
    assert refused.value.where == StatementText(typo, "q").at(at)


def test_two_columns_of_one_name_are_an_error_at_their_query(tmp_path: Path) -> None:
    (error,) = _errors(tmp_path, "sql: SELECT sku AS id, cents, CENTS FROM lists.prices")

    assert (error.code, error.where) == ("POLYNYA-TRF-074", "tasks/sales.yml:10:5")
    assert "more than one column called `cents`" in error.message


def test_a_query_reads_no_table_of_its_own_transform(tmp_path: Path) -> None:
    (error,) = _errors(tmp_path, "sql: SELECT user_id AS id FROM spending")

    assert error.code == "POLYNYA-TRF-076"
    assert "`spending`, which the same transform makes" in error.message
    assert "a transform of its own" in (error.fix or "")


def test_a_file_of_a_query_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "orders.sql").write_text("SELECT id FROM orders")
    text = SALES.replace("QUERY", "sql: sql/ordres.sql").replace("KEY", "id")

    (error,) = load_project(
        write_project(tmp_path, shop=SHOP, lists=PRICES, sales=text), tolerant=True
    ).errors

    assert (error.code, error.where) == ("POLYNYA-TRF-072", "tasks/sales.yml:10:5")
    assert "the file `sql/ordres.sql` does not exist" in error.message
    assert "did you mean `sql/orders.sql`?" in (error.fix or "")
