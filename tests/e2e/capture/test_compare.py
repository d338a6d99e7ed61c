"""`polynya compare` over a real PostgreSQL: it finds what was changed behind the capture's back."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.e2e.capture.test_commands import Lab, lab, until

__all__ = ("lab",)
pytestmark = pytest.mark.slow


def compared(lab: Lab, code: int) -> dict[str, Any]:
    """What the comparison says of each table."""
    process = lab.start("compare", "shop_db", "--json")
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, err + out
    said = [json.loads(line) for line in out.splitlines()]
    return {one["table"]: one for one in said if one["type"] == "table.compared"}


def test_planted_differences_are_named_by_their_keys(lab: Lab) -> None:
    run = lab.start("run")
    until(lambda: set(lab.states().values()) == {"running"})
    lab.sql("UPDATE orders SET name = 'seen' WHERE id = 5", "DELETE FROM orders WHERE id = 6")

    found = compared(lab, 0)

    assert found["public.orders"]["source_rows"] == found["public.orders"]["current_rows"] == 19_999
    assert found["public.people"]["compared"] == ["id"]
    assert {one["column"] for one in found["public.people"]["not_compared"]} == {"ssn", "mail"}

    [[publication]] = lab.sql("SELECT pubname FROM pg_publication")
    lab.sql(
        f"ALTER PUBLICATION {publication} DROP TABLE orders",
        "UPDATE orders SET amount = -1 WHERE id = 7",
        "DELETE FROM orders WHERE id = 9",
        "INSERT INTO orders VALUES (90001, 'unseen', 1)",
        f"ALTER PUBLICATION {publication} ADD TABLE orders",
        "UPDATE orders SET name = 'seen' WHERE id = 8",
    )

    found = compared(lab, 1)

    assert {one["key"]: one["fault"] for one in found["public.orders"]["differences"]} == {
        "7": "other values",
        "9": "only in Current",
        "90001": "missing in Current",
    }
    assert found["public.people"]["differences"] == []
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=240)
