"""The share of the benchmarks' queries that is incremental, and its page."""

from __future__ import annotations

import pytest

from tests.absent import absent
from tests.derived.corpus import BEGIN, END, PAGE, extensions, queries, table
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
