"""The queries of TPC-H and TPC-DS as views, and which of them are incremental.

The texts come with DuckDB's extensions. A view has no order and no LIMIT, so ORDER BY and LIMIT of
the whole query are left out; columns without a name get one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import sqlglot
from sqlglot import exp

from polynya.derived.affected import FullPlan, IncrementalPlan, Plan, analyse
from polynya.derived.lineage import QueryLineage, lineage_of
from polynya.derived.plans import TotalsPlan
from polynya.derived.schema import DerivedInput
from polynya.derived.statement import parse

BENCHMARKS: Final = {"tpch": ("TPC-H", "dbgen"), "tpcds": ("TPC-DS", "dsdgen")}
#: Primary keys, as both specifications define them.
KEYS: Final = {
    "part": "p_partkey", "supplier": "s_suppkey", "partsupp": "ps_partkey ps_suppkey",
    "customer": "c_custkey c_customer_sk", "orders": "o_orderkey",
    "lineitem": "l_orderkey l_linenumber", "nation": "n_nationkey", "region": "r_regionkey",
    "call_center": "cc_call_center_sk", "catalog_page": "cp_catalog_page_sk",
    "catalog_returns": "cr_item_sk cr_order_number",
    "catalog_sales": "cs_item_sk cs_order_number", "customer_address": "ca_address_sk",
    "customer_demographics": "cd_demo_sk", "date_dim": "d_date_sk",
    "household_demographics": "hd_demo_sk", "income_band": "ib_income_band_sk",
    "inventory": "inv_date_sk inv_item_sk inv_warehouse_sk", "item": "i_item_sk",
    "promotion": "p_promo_sk", "reason": "r_reason_sk", "ship_mode": "sm_ship_mode_sk",
    "store": "s_store_sk", "store_returns": "sr_item_sk sr_ticket_number",
    "store_sales": "ss_item_sk ss_ticket_number", "time_dim": "t_time_sk",
    "warehouse": "w_warehouse_sk", "web_page": "wp_web_page_sk",
    "web_returns": "wr_item_sk wr_order_number", "web_sales": "ws_item_sk ws_order_number",
    "web_site": "web_site_sk",
}  # fmt: skip
PAGE: Final = Path("docs/incremental-sql.md")
BEGIN, END = "<!-- corpus: begin -->\n", "<!-- corpus: end -->\n"


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a benchmark, and what the analysis says."""

    benchmark: str
    number: int
    plan: Plan
    lineage: QueryLineage


def texts(extensions: str) -> Iterator[tuple[str, int, str, dict[str, DerivedInput]]]:
    """Benchmark, number and text of all queries, with the tables that they read.

    `extensions` is the folder of DuckDB's extensions.
    """
    for extension, (benchmark, generator) in BENCHMARKS.items():
        with duckdb.connect(config={"extension_directory": extensions}) as connection:
            connection.execute(f"LOAD {extension}")
            connection.execute(f"CALL {generator}(sf = 0)")
            found = connection.execute(f"FROM {extension}_queries()").fetchall()
            columns = connection.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                "ORDER BY table_name, ordinal_position"
            ).fetchall()
        inputs = dict(_inputs(extension, columns))
        for number, text, *_ in found:
            yield benchmark, number, text, inputs


def queries(extensions: str) -> Iterator[Query]:
    """What the analysis says of all queries."""
    for benchmark, number, text, inputs in texts(extensions):
        statement = parse(view_of(text), inputs, f"{benchmark}-{number}.sql")
        yield Query(benchmark, number, analyse(statement), lineage_of(statement))


def _inputs(task: str, columns: list[tuple[str, str, str]]) -> Iterator[tuple[str, DerivedInput]]:
    for table in dict.fromkeys(table for table, _, _ in columns):
        own = {
            name: kind.lower().replace("varchar", "string")
            for other, name, kind in columns
            if other == table
        }
        keys = tuple(key for key in KEYS[table].split() if key in own)
        yield f"{task}.{table}", DerivedInput(f"{task}.{table}", own, keys)


def view_of(text: str) -> str:
    """A query as a view, in Spark's dialect."""
    tree = sqlglot.parse_one(text, read="duckdb")
    for clause in ("order", "limit", "offset"):
        tree.set(clause, None)
    first = tree
    while not isinstance(first, exp.Select):
        first = first.this
    taken: set[str] = set()
    for at, item in enumerate(first.expressions):
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.is_star):
            continue
        name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else ""
        if not name or name.lower() in taken:
            name = f"column_{at + 1}"
            item.replace(exp.alias_(item.unalias().copy(), name))
        taken.add(name.lower())
    return tree.sql("spark")


def table(found: list[Query]) -> str:
    """The table of the page, in Markdown, below its sums."""
    lines = []
    for benchmark, _ in BENCHMARKS.values():
        own = [query for query in found if query.benchmark == benchmark]
        lines.append(f"- {benchmark}: {_share(own)}")
    lines += [f"- together: {_share(found)}", "", "| query | restricted by, or why as a whole |"]
    lines.append("|---|---|")
    for query in found:
        match query.plan:
            case IncrementalPlan(columns=columns):
                shown = ", ".join(f"`{column}`" for column in columns)
            case TotalsPlan(columns=columns):
                shown = "totals, by " + ", ".join(f"`{column}`" for column in columns)
            case FullPlan(reason=reason):
                shown = f"**full**: {reason}"
        lines.append(f"| {query.benchmark} {query.number} | {shown} |")
    return "\n".join(lines) + "\n"


def _share(found: list[Query]) -> str:
    number = sum(not isinstance(query.plan, FullPlan) for query in found)
    return f"{number} of {len(found)} ({100 * number / len(found):.0f} %)"


def extensions() -> str | None:
    """The folder of DuckDB's extensions as packages; None where those of the corpus lack."""
    import duckdb_ext

    folder = Path(next(iter(duckdb_ext.__path__))) / "extensions"
    names = {path.name.partition(".")[0] for path in folder.glob("*/*/*.duckdb_extension")}
    return str(folder) if set(BENCHMARKS) <= names else None


def main() -> None:
    """Write the table to the page."""
    folder = extensions()
    assert folder is not None, "requirements/dev.txt has the extensions"
    found = list(queries(folder))
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}{table(found)}{END}{after}", "utf-8")
    print(table(found).partition("\n\n")[0])


if __name__ == "__main__":
    main()
