"""The page of flows: each listing of YAML compiles to the SQL below it.

`POLYNYA_TEST_WRITE=1` writes the SQL into the page, for a person to look at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from polynya.model.config.flow import FlowStep
from tests.derived.flow_tables import Table, answered, flow_of

PAGE = Path(__file__).parents[2] / "docs" / "flows.md"
_LISTING = re.compile(r"^```yaml\n(.*?)^```\n(.*?)^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\| `(\w+\.\w+)` \| `(.+?)` \| `(.+?)` \|$", re.MULTILINE)
_COLUMN = re.compile(r"(\w+) (\w+(?:<.+>|\([\d,]+\))?)(?:, |$)")


def tables(page: str) -> dict[str, Table]:
    """The tables of the page, without rows."""
    return {
        name: Table(dict(_COLUMN.findall(columns)), keys=tuple(keys.split(", ")))
        for name, columns, keys in _TABLE.findall(page)
    }


def compiled(page: str) -> Iterator[tuple[str, str, str]]:
    """Each listing: its YAML, the SQL below it, and the SQL that it becomes."""
    for text, _, sql in _LISTING.findall(page):
        whole = text.startswith("flow:")
        flow = flow_of(text if whole else f"flow:\n  -\n{indent(text, '    ')}", tables(page))
        yield text, sql, f"{flow.sql if whole else flow.steps[-1].sql}\n"


def with_sql(page: str) -> str:
    """The page with the SQL that its listings become."""
    made = iter([now for _, _, now in compiled(page)])
    return _LISTING.sub(
        lambda match: f"```yaml\n{match[1]}```\n{match[2]}```sql\n{next(made)}```", page
    )


def test_the_page_shows_the_sql_of_its_listings() -> None:
    page = PAGE.read_text("utf-8")

    now = with_sql(page)

    if "POLYNYA_TEST_WRITE" in os.environ:
        PAGE.write_text(now, encoding="utf-8")
    assert now == page


def test_every_processor_has_a_listing_that_runs() -> None:
    page = PAGE.read_text("utf-8")

    shown = {text.partition(":")[0] for text, _, _ in compiled(page)}

    assert shown - {"flow"} == set(FlowStep.model_fields)
    for _, _, sql in compiled(page):
        if "items" not in sql:
            # DuckDB has no struct type of this name.
            assert answered(sql, tables_for_duckdb(page)) == []


def tables_for_duckdb(page: str) -> dict[str, Table]:
    """The tables, with a text in place of the array of structs."""
    return {
        name: Table(
            {column: "int" if "<" in kind else kind for column, kind in one.columns.items()}
        )
        for name, one in tables(page).items()
    }


def test_a_changed_listing_is_seen() -> None:
    page = PAGE.read_text("utf-8").replace("status = 'paid' AND amount > 0", "amount > 1")

    assert with_sql(page) != page
