"""What the demo asks its lake, and the source tables that it compares."""

from __future__ import annotations

from typing import Final

from examples.parity import SourceTable

SOURCE: Final = (
    SourceTable(
        "accounts", ("id",), instants=("updated",), decimals=("balance",), added=("tier", 1)
    ),
    SourceTable("lines", ("a", "b")),
)
VIEWS: Final = ("bank.accounts", "bank.lines", "shop.users")
BUSIEST: Final = (
    "SELECT id FROM bank.accounts__history GROUP BY id ORDER BY count(*) DESC, id LIMIT 1"
)
VERSION: Final = (
    "substr(hdr__from_timestamp, 1, 23) AS valid_from,"
    " substr(hdr__to_timestamp, 1, 23) AS valid_to, hdr__operation AS op, hdr__store AS store"
)
QUESTIONS: Final = {
    "versions": " UNION ALL ".join(
        f"SELECT '{view}' AS dataset, count(*) AS versions FROM {view}__history" for view in VIEWS
    ),
    "current": "SELECT id, owner, balance, left(note, 16) AS note, updated, tier FROM bank.accounts"
    " ORDER BY id LIMIT 5",
    "busiest": f"SELECT id, owner, balance, tier, {VERSION} FROM bank.accounts__history"
    f" WHERE id = ({BUSIEST}) ORDER BY hdr__from_timestamp, hdr__to_timestamp NULLS LAST",
    "late": f"SELECT userId, name, city, {VERSION} FROM shop.users__history"
    " WHERE userId IN (123, 125) ORDER BY userId, hdr__from_timestamp",
    **{table.name: f"SELECT * FROM bank.{table.name}" for table in SOURCE},
}
