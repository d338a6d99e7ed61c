"""The share of the benchmarks' queries that is incremental, and its page."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from polynya.derived.names import StatementText
from polynya.derived.statement import result_columns
from polynya.model.errors import ConfigError
from tests.absent import absent
from tests.derived.corpus import BEGIN, END, PAGE, extensions, queries, table, texts
from tests.repo.test_layout import ROOT


@pytest.mark.slow
def test_the_page_has_what_the_analysis_says_of_every_query() -> None:
    folder = extensions()
    if folder is None:
        absent("the extensions tpch and tpcds of DuckDB")

    found = list(queries(folder))

    page = (ROOT / PAGE).read_text("utf-8")
    assert len(found) == 22 + 99
    assert page.partition(BEGIN)[2].partition(END)[0] == table(found)


@pytest.mark.slow
def test_the_lineage_of_every_query_is_known() -> None:
    folder = extensions()
    if folder is None:
        absent("the extensions tpch and tpcds of DuckDB")

    for query in queries(folder):
        found = (query.lineage.rows, *query.lineage.columns.values())
        assert not any(one.unknown for one in found), (query.benchmark, query.number)


@pytest.mark.slow
def test_each_query_has_sound_names_and_a_mistyped_one_is_found_at_its_place() -> None:
    folder = extensions()
    if folder is None:
        absent("the extensions tpch and tpcds of DuckDB")

    for benchmark, number, text, inputs in texts(folder):
        query = sqlglot.parse_one(text, read="duckdb").sql("spark")
        assert not result_columns(query, inputs, "q").is_open, (benchmark, number)

        columns = [
            one
            for one in sqlglot.parse_one(query, read="spark").find_all(exp.Column)
            if isinstance(one.this, exp.Identifier) and "start" in one.this.meta
        ]
        column = columns[number % len(columns)]
        at = column.this.meta["start"]
        typo = f"{query[:at]}zz_{query[at:]}"
        with pytest.raises(ConfigError) as refused:
            result_columns(typo, inputs, "q")
        place = StatementText(typo, "q").at(column.parts[0].meta["start"])
        assert (refused.value.code, refused.value.where) == ("POLYNYA-TRF-006", place)
