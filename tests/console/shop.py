"""A small shop with its tables, and with values that would run or reorder text if they could."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from polynya.formats.values.sequence import sequence_encoder
from polynya.lake.table.state import (
    CopyState,
    Derivation,
    DerivationCosts,
    ExpectationFailures,
    SourceColumns,
)
from polynya.model.types import BIGINT
from tests.server.tables import current, event, prior, write_table

#: Markup, a script, a control character, a change of direction, and both kinds of quotes.
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u2066\x07\"'&{{ 7 * 7 }}"

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - {name: orders, path: "orders/*.json", keys: [id], sequence_by: [seq], history: true}
"""
SALES = """\
# What each person has paid.
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - name: totals
    keys: [person]
    flow:
      - filter: {input: orders, condition: "state = 'paid'"}  # and not yet sent
      - aggregate:
          by: [person]
          columns: {total: {sum: amount}, orders: {count: "*"}}
    expect:
      - {not_null: [person], name: "<script>alert(1)</script>\\u202E", on_failure: warn}
"""
INT, TEXT = ("bigint", pa.int64()), ("string", pa.string())
ORDERS = {"id": TEXT, "person": TEXT, "amount": INT, "state": TEXT, "seq": INT}
_AT = {number: sequence_encoder([BIGINT])([number])[0] for number in (1, 2, 3)}


def fill(folder: Path) -> None:
    """Tables as runs would leave them: an order with a pending event, and a late one."""
    one = {"id": "7", "person": HOSTILE, "amount": 5, "state": "paid"}
    rows = [
        prior(_AT[1], "I", (1, 3), (10, 12), **one, seq=1),
        current(_AT[2], "U", 3, 12, **{**one, "amount": 8}, seq=2),
        event(_AT[3], "U", 5, 20, **{**one, "amount": 9}, seq=3),
        current(_AT[1], "I", 1, 10, **{**one, "id": HOSTILE}, seq=1),
    ]
    write_table(folder, "shop_internal.orders_internal", ORDERS, ["id"], rows)
    columns = {"person": TEXT, "total": INT, "orders": INT}
    copy = CopyState(
        columns=SourceColumns(
            schema={name: kind for name, (kind, _) in columns.items()}, keys=["person"]
        ),
        derivation=Derivation("", costs=DerivationCosts(whole=2.5, keyed=0.5, share=0.25)),
        failures={
            "<script>alert(1)</script>\u202e": ExpectationFailures(
                2, HOSTILE, "2026-01-01T12:00:00+00:00"
            )
        },
    )
    total = current("1", "I", 1, 30, person=HOSTILE, total=14, orders=2)
    write_table(folder, "sales_internal.totals_internal", columns, ["person"], [total], copy)
    place = folder / "landing" / "shop" / "orders"
    place.mkdir(parents=True)
    landed = [{**one, "seq": 1}, {**one, "amount": 8, "seq": 2}, {**one, "amount": 9, "seq": 3}]
    (place / "<b>1.json").write_text("".join(json.dumps(each) + "\n" for each in landed))


def harmless(text: str) -> str:
    """A page of which no value is markup, and none hides or reorders text."""
    for sign in ("<script>alert", "<img src=x", "<b>", "\u202e", "\u2066", "\x07", ">49<"):
        assert sign not in text, sign
    return text
