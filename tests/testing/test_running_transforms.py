"""`polynya test` of transforms on the real engine: what passes, what fails and how it says so."""

from __future__ import annotations

import json

import pytest

from polynya.cli.main import main
from tests.projects import BANK, write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: csv}
datasets:
  - name: orders
    keys: [id]
    sequence_by: [seq]
    except_columns: [seq]
    columns: {id: bigint, user_id: bigint, amount: "decimal(10,2)", at: timestamp}
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop, bank]
datasets:
  - name: spending
    sql: SELECT user_id, sum(amount) AS total, max(at) AS last FROM shop.orders GROUP BY user_id
    keys: [user_id]
    expect: [{range: {column: total, max: 100}}]
  - name: owners
    sql: SELECT a.id, a.owner, o.amount FROM bank.accounts a LEFT JOIN orders o ON o.user_id = a.id
    keys: [id]
"""
LOYAL = """\
apiVersion: polynya/v1
kind: transform
name: loyal
from: [sales]
datasets:
  - name: regulars
    flow: [{filter: {input: spending, condition: "total > 9"}}, {select: [user_id, total]}]
    keys: [user_id]
"""
PRICES = """\
apiVersion: polynya/v1
kind: registered
name: prices
tables:
  - {name: rates, parquet: not_there, keys: [currency]}
"""
BILLS = """\
apiVersion: polynya/v1
kind: transform
name: bills
from: [shop, prices]
datasets:
  - name: bills
    sql: SELECT id, amount * rate AS total FROM orders CROSS JOIN rates WHERE currency = 'SEK'
    keys: [id]
"""
GOOD = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: no order makes no row, and a deleted one takes it away
    task: loyal
    given:
      - rows: {orders: []}
        expect: {regulars: {current: []}, sales.spending: {current: []}}
      - rows:
          orders: [{id: 1, user_id: 7, amount: "9.01", at: "2026-01-01T10:00:00Z"}]
        expect:
          regulars: {current: [{user_id: 7, total: "9.01"}]}
          spending:
            current: [{user_id: 7, total: "9.01", last: "2026-01-01T11:00:00+01:00"}]
      - deletes: {orders: [{id: 1}]}
        expect: {regulars: {current: []}}

  - name: rows of a derived table stand for its query
    task: loyal
    given:
      - rows: {spending: [{user_id: 1, total: 9}, {user_id: 2, total: 10}]}
        expect: {regulars: {current: [{user_id: 2, total: 10}]}}

  - name: a table that a capture finds has its keys in the test
    task: sales
    inputs: {bank.accounts: {keys: [id]}}
    given:
      - rows: {bank.accounts: [{id: 1, owner: ann}, {id: 2, owner: null}], orders: []}
        expect:
          owners:
            current: [{id: 1, owner: ann, amount: null}, {id: 2, owner: null}]
      - rows: {bank.accounts: [{id: 2, owner: bob}], orders: [{id: 1, user_id: 2, amount: "1.5"}]}
        expect:
          owners:
            current: [{id: 1, owner: ann, amount: null}, {id: 2, owner: bob, amount: "1.50"}]

  - name: a registered table has the rows of the test
    task: bills
    given:
      - rows: {orders: [{id: 1, user_id: 7, amount: "2.00"}], rates: [{currency: SEK, rate: 3}]}
        expect: {bills: {current: [{id: 1, total: 6}]}}
      - rows: {rates: [{currency: SEK, rate: 4}]}
        expect: {bills: {current: [{id: 1, total: 8}]}}
"""
WRONG = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: types and nulls differ
    task: sales
    given:
      - rows: {orders: [{id: 1, user_id: 1, amount: "5.00"}, {id: 2, user_id: 2}]}
        expect:
          spending:
            current: [{user_id: 1, total: 5}, {user_id: 2, total: 0}, {user_id: "3"}]
      - rows: {orders: [{id: 1, user_id: 1, amount: "6.00"}]}
        expect: {spending: {current: []}}
  - name: no step fails
    task: sales
    given:
      - rows: {orders: [{id: 1, user_id: 1, amount: "5.00"}]}
        fails: POLYNYA-TRF-080
        expect: {spending: {current: [{user_id: 1}]}}
  - name: another step fails
    task: loyal
    given:
      - rows: {orders: [{id: 1, user_id: 1, amount: "500.00"}]}
        expect: {regulars: {current: []}}
"""


@pytest.mark.slow
def test_tests_of_transforms_pass_and_fail_readably(spark, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("polynya.engine.session.start_spark", lambda project: spark)
    project = write_project(
        tmp_path, shop=SHOP, bank=BANK, sales=SALES, loyal=LOYAL, prices=PRICES, bills=BILLS
    )
    (project / "tests").mkdir()
    (project / "tests/good.yml").write_text(GOOD)

    code = main(["test", "-p", str(project)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "4 passed, 0 failed" in said

    (project / "tests/good.yml").unlink()
    (project / "tests/wrong.yml").write_text(WRONG)
    assert main(["test", "-p", str(project)]) == 1
    said = capsys.readouterr().out
    assert "0 passed, 3 failed" in said
    assert "  spending after item 1, current (2 rows):" in said
    assert '    different   {"user_id": 2}  (tests/wrong.yml:10:47)' in said
    assert '      total: expected "0.00", found null' in said
    assert '    missing     {"user_id": "3"}' in said
    assert "user_id: 1" not in said
    assert "after item 2" not in said
    assert "    no step failed with POLYNYA-TRF-080" in said
    assert "[POLYNYA-TRF-080]: range(total) fails: 1 of 1 rows" in said

    assert main(["test", "-p", str(project), "-k", "differ", "--json"]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (relation,) = next(one["relations"] for one in told if "relations" in one)
    assert (relation["table"], relation["batch"], relation["relation"]) == (
        "spending",
        1,
        "current",
    )
    assert [one["kind"] for one in relation["differences"]] == ["different", "missing"]
