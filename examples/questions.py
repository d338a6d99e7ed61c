"""What the demo asks its lake and the sources, and the source tables that it compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from examples.parity import SourceTable


@dataclass(frozen=True, slots=True)
class MartQuestion:
    """A question for the mart, and plain SQL that answers it from the sources in DuckDB."""

    of_mart: str
    of_sources: str


SOURCE: Final = (
    SourceTable(
        "accounts", ("id",), instants=("updated",), decimals=("balance",), added=("tier", 1)
    ),
    SourceTable("lines", ("a", "b")),
)
VIEWS: Final = ("bank.accounts", "bank.lines", "shop.users")
#: The record of the capture that has the most versions.
BUSIEST: Final = 247
#: What the mart is asked, and the same over what the sources have themselves, without a lake.
MART: Final = {
    "balances by customer": MartQuestion(
        "SELECT c.name, c.city, count(*) AS accounts, sum(b.balance) AS balance"
        " FROM mart.balances b JOIN mart.customer c ON c.customer_key = b.customer_key"
        " GROUP BY c.name, c.city ORDER BY c.name, c.city",
        "SELECT coalesce(name, 'unknown') AS name, city, count(*) AS accounts,"
        " sum(CAST(balance AS DECIMAL(12, 2))) AS balance"
        " FROM (SELECT a.balance, e.name, e.city FROM accounts a ASOF LEFT JOIN users e"
        " ON e.userId = a.id AND e.eventTime <= CAST(a.updated AS TIMESTAMP))"
        " GROUP BY ALL ORDER BY name, city",
    ),
    "quantities by owner": MartQuestion(
        "SELECT a.owner, count(*) AS lines, sum(q.quantity) AS quantity"
        " FROM mart.quantities q JOIN mart.account a ON a.account_key = q.account_key"
        " GROUP BY a.owner ORDER BY lines DESC, a.owner",
        "SELECT coalesce(a.owner, 'unknown') AS owner, count(*) AS lines, sum(l.qty) AS quantity"
        " FROM lines l LEFT JOIN accounts a ON a.id = l.a GROUP BY ALL ORDER BY lines DESC, owner",
    ),
}
VERSION: Final = (
    "hdr__from_timestamp AS valid_from, hdr__to_timestamp AS valid_to,"
    " hdr__operation AS op, hdr__store AS store"
)
QUESTIONS: Final = {
    "rows": " UNION ALL ".join(
        f"SELECT '{view}' AS dataset, count(*) AS now FROM {view}" for view in VIEWS
    ),
    "versions": " UNION ALL ".join(
        f"SELECT '{view}' AS dataset, count(*) AS versions FROM {view}__history" for view in VIEWS
    ),
    "current": "SELECT id, owner, balance, note, updated, tier FROM bank.accounts"
    " ORDER BY id LIMIT 5",
    "busiest": f"SELECT id, owner, balance, tier, {VERSION} FROM bank.accounts__history"
    f" WHERE id = {BUSIEST} ORDER BY hdr__from_timestamp, hdr__to_timestamp NULLS LAST",
    "late": f"SELECT userId, name, city, {VERSION} FROM shop.users__history"
    " WHERE userId IN (123, 125) ORDER BY userId, hdr__from_timestamp",
    **{table.name: f"SELECT * FROM bank.{table.name}" for table in SOURCE},
    **{name: question.of_mart for name, question in MART.items()},
}
