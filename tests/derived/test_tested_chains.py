"""Which tables a test of a transform fills, which transforms run for it, and what does not fit."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.derived.tested_chains import chain_errors, chain_of_test
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.model.task_tests import load_tests
from polynya.testing.transforms import given_rows, isolated_tasks
from tests.projects import BANK, write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
defaults: {keys: [id], sequence_by: [seq], except_columns: [seq]}
datasets:
  - {name: orders, columns: {seq: int, amount: "decimal(10,2)"}}
  - {name: users}
  - {name: clicks, mode: append_only, keys: []}
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - {name: spending, keys: [user_id], history: true, sql: "SELECT user_id, sum(amount) AS total
      FROM shop.orders GROUP BY user_id"}
  - {name: seen, keys: [id], sql: "SELECT id FROM shop.clicks"}
"""
LOYAL = """\
apiVersion: polynya/v1
kind: transform
name: loyal
from: [sales, shop, bank]
datasets:
  - name: regulars
    flow: [{filter: {input: sales.spending, condition: "total > 9"}}]
    keys: [user_id]
    expect: [{relationship: {columns: [user_id], to: users, to_columns: [id]}}]
  - {name: owners, keys: [id], sql: "SELECT id FROM bank.accounts"}
"""
PRICES = """\
apiVersion: polynya/v1
kind: registered
name: prices
tables:
  - {name: rates, iceberg: finance.rates, keys: [currency]}
  - {name: offers, parquet: offers}
"""
BILLS = """\
apiVersion: polynya/v1
kind: transform
name: bills
from: [shop, prices]
datasets:
  - name: bills
    sql: SELECT o.id, o.amount * r.rate AS total FROM orders o JOIN prices.rates r USING (currency)
    keys: [id]
  - {name: offered, keys: [id], sql: "SELECT id, count(*) AS n FROM offers GROUP BY id"}
"""
TEST = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: one
    task: loyal
    given:
      - rows:
          shop.orders: [{id: 1, user_id: 1, amount: "10.00"}]
          users: [{id: 1}]
        expect: {regulars: {current: []}}
"""


def loaded(folder, text):
    """The tests of a file, and the errors of their chains as code, place and message."""
    write_project(
        folder, shop=SHOP, sales=SALES, loyal=LOYAL, bank=BANK, prices=PRICES, bills=BILLS
    )
    (folder / "tests").mkdir()
    (folder / "tests/a.yml").write_text(text)
    tests, errors = load_tests(load_project(folder))
    errors += chain_errors(tests)
    return tests, [(error.code, error.where, str(error)) for error in errors]


def chain_of(folder, text):
    (test,), errors = loaded(folder, text)
    assert errors == []
    return test, chain_of_test(test)[0]


def test_what_the_expected_table_is_made_of_runs_and_nothing_else(tmp_path):
    _, chain = chain_of(tmp_path, TEST)

    assert {name: table.identity for name, table in chain.given.items()} == {
        "shop.orders": ("shop", "orders"),
        "users": ("shop", "users"),
    }
    assert {name: [one.name for one in made] for name, made in chain.running.items()} == {
        "sales": ["spending"],
        "loyal": ["regulars"],
    }
    assert [task.name for task in chain.tasks] == ["sales", "loyal"]

    storing, transforms = isolated_tasks(chain)
    (shop,) = storing
    assert [one.name for one in shop.datasets] == ["orders", "users"]
    assert [read.name for read in transforms["loyal"].reads] == ["sales", "shop"]
    assert transforms["loyal"].reads[0].internal_schema.startswith("test_")


def test_rows_of_a_derived_table_stand_for_its_query(tmp_path):
    text = TEST.replace(
        'shop.orders: [{id: 1, user_id: 1, amount: "10.00"}]', "spending: [{user_id: 1, total: 1}]"
    )
    _, chain = chain_of(tmp_path, text)

    assert chain.given["spending"].keys == ("user_id",)
    assert list(chain.running) == ["loyal"]


def test_a_table_that_a_capture_finds_is_named_with_its_keys(tmp_path):
    text = TEST.replace("users: [{id: 1}]", "bank.accounts: [{id: 1}]").replace(
        "{regulars: ", "{owners: "
    )
    _, errors = loaded(tmp_path / "without", text)
    assert [(code, where) for code, where, _ in errors] == [("POLYNYA-CFG-008", "tests/a.yml:9:11")]

    inputs = "    inputs: {bank.accounts: {keys: [id], columns: {since: date}}}\n"
    test, chain = chain_of(tmp_path / "with", text + inputs)
    accounts = chain.given["bank.accounts"]
    assert (accounts.identity, accounts.keys) == (("bank", "accounts"), ("id",))
    assert given_rows(test, "bank.accounts", accounts).keys() == {0}


def test_the_rows_of_all_items_have_the_same_columns_and_types(tmp_path):
    text = TEST + (
        "      - rows: {shop.orders: [{id: 2, amount: null, note: 1}, {id: 3, note: 1.5}]}\n"
        "        deletes: {shop.orders: [{id: 1}]}\n"
        "        expect: {regulars: {current: []}}\n"
    )
    test, chain = chain_of(tmp_path, text)

    files = given_rows(test, "shop.orders", chain.given["shop.orders"])
    first, second = (pq.read_table(io.BytesIO(files[number])) for number in (0, 1))

    assert first.schema == second.schema
    assert first.schema.field("amount").type == pa.decimal128(10, 2)
    assert second.drop_columns(["amount", "user_id"]).to_pylist() == [
        {"id": 2, "note": 1.0, "polynya_test_order": 1, "polynya_test_deleted": False},
        {"id": 3, "note": 1.5, "polynya_test_order": 2, "polynya_test_deleted": False},
        {"id": 1, "note": None, "polynya_test_order": 3, "polynya_test_deleted": True},
    ]


def test_a_table_without_rows_has_its_declared_columns(tmp_path):
    text = TEST.replace('[{id: 1, user_id: 1, amount: "10.00"}]', "[]")
    inputs = "    inputs: {shop.orders: {columns: {id: bigint, user_id: bigint}}}\n"
    test, chain = chain_of(tmp_path / "a", text + inputs)
    files = given_rows(test, "shop.orders", chain.given["shop.orders"])
    assert pq.read_table(io.BytesIO(files[0])).column_names[:3] == ["id", "amount", "user_id"]

    test, chain = chain_of(tmp_path / "b", text)
    with pytest.raises(ConfigError, match="no row has a value of `id`"):
        given_rows(test, "shop.orders", chain.given["shop.orders"])


@pytest.mark.parametrize(
    ("was", "becomes", "code", "where", "says"),
    [
        ("users: [", "shop.userz: [", "TEST-001", "9:11", "did you mean `shop.users`?"),
        ("users: [{id: 1}]", "orders: [{id: 1}]", "CFG-009", "9:11", "has another name"),
        ("users: [{id: 1}]", "users: [{name: ann}]", "CFG-008", "9:19", "`id`, a key of `users`"),
        ("          users: [{id: 1}]\n", "", "TEST-001", "6:5", "reads `users`, and no item"),
        ("{regulars: ", "{shop.users: ", "TEST-001", "10:18", "names `shop.users`"),
        ("{regulars: ", "{spendin: ", "TEST-001", "10:18", "did you mean `spending`?"),
        ("{current: []}", "{history: []}", "TEST-001", "10:29", "keeps no history"),
        ("{current: []}", "{}", "CFG-009", "10:18", "nothing is expected"),
        ("{current: []}", "{quarantined: []}", "CFG-016", "10:29", "not for transforms"),
        ("        expect: {regulars: {current: []}}\n", "", "CFG-009", "6:5", "nothing is"),
        ("      - rows:", "      - events: [{id: 1}]\n        rows:", "CFG-016", "7:9", "not for"),
        ("    given:", "    dataset: regulars\n    given:", "CFG-016", "6:5", "not for transforms"),
        ("    given:", "    expect: {current: []}\n    given:", "CFG-016", "6:5", "an item of"),
        ("    given:", "    inputs: {users: {keys: [id]}, x.y: {}}\n    given:", "TEST-001",
         "6:35", "has rows of `x.y`"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_place(tmp_path, was, becomes, code, where, says):
    assert was in TEST
    _, errors = loaded(tmp_path, TEST.replace(was, becomes, 1))

    assert [error[:2] for error in errors] == [(f"POLYNYA-{code}", f"tests/a.yml:{where}")]
    assert says in errors[0][2]


@pytest.mark.parametrize("key", ["rows: {a: [{id: 1}]}", "fails: POLYNYA-TRF-080"])
def test_other_tasks_have_no_rows(tmp_path, key):
    text = TEST.partition("    task")[0] + (
        "    task: shop\n    dataset: orders\n    expect: {current: []}\n"
        f"    given: [{{events: [{{id: 1}}], {key}}}]\n"
    )
    _, errors = loaded(tmp_path, text)

    assert [error[0] for error in errors] == ["POLYNYA-CFG-016"]
    assert "only for transforms" in errors[0][2]


def test_rows_that_are_only_appended_are_not_deleted(tmp_path):
    text = TEST.replace("task: loyal", "task: sales").replace("regulars", "seen")
    text = text.replace(
        "users: [{id: 1}]", "shop.clicks: [{at: 1}]\n        deletes: {clicks: [{}]}"
    )
    _, errors = loaded(tmp_path, text.replace("clicks: [{}]", "shop.clicks: [{at: 1}]"))

    assert [error[:2] for error in errors] == [("POLYNYA-CFG-009", "tests/a.yml:10:19")]
    assert "only appended" in errors[0][2]


def test_registered_tables_get_their_rows_from_the_test(tmp_path) -> None:
    text = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: one
    task: bills
    given:
      - rows:
          orders: [{id: 1, amount: "10.00", currency: SEK}]
          prices.rates: [{currency: SEK, rate: 2}]
          offers: [{id: 1}, {id: 1}]
        expect: {bills: {current: []}, offered: {current: []}}
"""
    _, chain = chain_of(tmp_path, text)
    storing, transforms = isolated_tasks(chain)

    assert {(task.name, task.schema_) for task in storing} == {
        ("shop", "shop"),
        ("prices", "prices"),
    }
    rates, offers = next(task for task in storing if task.name == "prices").datasets
    assert (rates.mode, rates.keys, offers.mode) == ("merge", ("currency",), "append_only")
    assert {read.name for read in transforms["bills"].reads} == {"shop", "prices"}
    assert transforms["bills"].registered == ()


def test_rows_of_a_registered_table_without_keys_are_not_deleted(tmp_path) -> None:
    text = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: one
    task: bills
    given:
      - rows: {offers: [{id: 1}]}
      - deletes: {offers: [{id: 1}]}
        expect: {offered: {current: []}}
"""
    _, errors = loaded(tmp_path, text)

    assert [message for _, _, message in errors if "only appended" in message]
