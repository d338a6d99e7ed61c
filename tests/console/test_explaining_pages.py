"""Pages that explain: queries, lineage, transforms, one record, and why a row is so. No JVM."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from polynya.engine.commands.lineage import project_graph
from polynya.engine.project_views import ProjectViews
from polynya.server.access.actions import Action
from polynya.server.app import app_of
from polynya.server.console import lineage as lineage_page
from polynya.server.console.query import completions
from polynya.server.routes import queries
from polynya.server.routes.queries import QueryAnswered
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.console.shop import HOSTILE, SALES, STORAGE, fill, harmless
from tests.projects import write_project
from tests.server.access.served import served

PART = {"hx-request": "true"}
VIEWS = {"shop.orders": ["id", "person"], "shop.orders__history": ["id"], "bank.lines": ["a"]}


PAID = """\
apiVersion: polynya/v1
kind: transform
name: paid
from: [shop]
datasets:
  - name: people
    keys: [person]
    sql: |
      WITH paid AS (SELECT id, person, amount FROM shop.orders WHERE state = 'paid'),
      large AS (SELECT person, amount FROM paid WHERE amount > 5)
      SELECT person, uuid() AS id, sum(amount) AS total FROM large GROUP BY person
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_project(tmp_path_factory.mktemp("shop"), shop=STORAGE, sales=SALES)
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    state = ServerState(folder, None, SystemClock())
    yield TestClient(app_of(state), raise_server_exceptions=False)


def shown(client: TestClient, path: str, status: int = 200) -> str:
    """The text of a page, without its markup."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return plain(harmless(answer.text))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def graph(client: TestClient, path: str) -> tuple[set[str], set[tuple[str, str]]]:
    """The titles of the nodes of a page's graph, and its edges by them."""
    found = re.search(r'data-graph="([^"]*)"', client.get(path).text)
    assert found is not None
    told = json.loads(html.unescape(found[1]))
    titles = {one["id"]: one["title"] for one in told["nodes"]}
    return set(titles.values()), {(titles[e["from"]], titles[e["to"]]) for e in told["edges"]}


def test_a_statement_of_the_address_is_answered_with_its_command(client: TestClient) -> None:
    text = shown(client, "/console/query?sql=SELECT 1 AS n UNION ALL SELECT 2 AS n&limit=1")

    assert re.search(r"1 rows? *, and there are more", text)
    assert "polynya query 'SELECT 1 AS n UNION ALL SELECT 2 AS n' --limit 1" in text


def test_rows_with_markup_are_shown_as_they_are(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{HOSTILE: HOSTILE, "n": None, "nested": {"a": [HOSTILE]}}]
    columns = {HOSTILE: "string", "n": "int32", "nested": f"struct<{HOSTILE}: string>"}
    found = QueryAnswered(columns=columns, rows=rows, more=False)
    monkeypatch.setattr(queries, "answered", lambda *_: found)
    text = shown(client, f"/console/query?sql={quote(HOSTILE)}")

    assert text.count("<script>alert(1)</script>") >= 4
    assert "NULL" in text


def test_a_statement_that_fails_tells_its_place_and_the_way_to_spark(client: TestClient) -> None:
    text = shown(client, f"/console/query?sql=SELECT nothing, '{quote(HOSTILE)}' FROM orders", 422)

    assert "POLYNYA-QRY" in text
    assert "Copy" in text


def test_a_plan_says_which_engine_answers(client: TestClient) -> None:
    here = client.post("/console/query/plan", data={"sql": "SELECT 1 AS n"}, headers=PART)
    spark = client.post("/console/query/plan", data={"sql": "SELECT uuid() AS n"}, headers=PART)
    wrong = client.post("/console/query/plan", data={"sql": HOSTILE}, headers=PART)

    assert "The embedded engine answers this statement" in plain(here.text)
    assert "Spark answers this statement" in plain(spark.text)
    assert wrong.status_code == 422
    harmless(wrong.text)


@pytest.mark.parametrize(
    ("form", "begins"),
    [("csv", '"id"'), ("json", '{"columns'), ("arrow", "\N{REPLACEMENT CHARACTER}")],
)
def test_rows_leave_as_files(client: TestClient, form: str, begins: str) -> None:
    answer = client.get(
        "/console/query/export",
        params={"sql": "SELECT 7 AS id", "limit": 10, "form": form},
    )

    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="rows.{form}"'
    assert answer.content.decode("utf-8", "replace").lstrip().startswith(begins)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("SELECT pe", " FROM shop.orders", [("person", "column of shop.orders", 2)]),
        ("SELECT o.pe", " FROM shop.orders o", [("person", "column of shop.orders", 2)]),
        ("SELECT 1 FROM ba", "", [("bank.lines", "view", 2)]),
        ("SELECT 1 FROM lin", "", [("bank.lines", "view", 3)]),
        ("SELECT 1 FROM shop.orders__h", "", [("shop.orders__history", "view", 14)]),
        ("SELECT ", "", []),
    ],
)
def test_words_follow_what_stands_before_the_cursor(
    before: str, after: str, found: list[tuple[str, str, int]]
) -> None:
    assert completions(before + after, len(before), VIEWS) == found


def test_words_and_views_come_from_what_the_tables_have(client: TestClient) -> None:
    form = {"sql": "SELECT am FROM shop.orders", "at": "9"}
    words = client.post("/console/query/words", data=form, headers=PART).text
    views = client.get("/console/query/views?find=ORD", headers=PART).text

    assert re.search(r'data-insert="amount" data-back="2"', words)
    assert 'data-insert="shop.orders__history"' in views
    assert "sales.totals" not in views


def test_a_query_is_saved_as_a_file_that_the_page_opens_again(
    client: TestClient, folder: Path
) -> None:
    form = {"sql": "SELECT 1 AS one\r\n", "name": "one"}
    asked = client.post("/console/query/save", data=form, headers=PART).text
    unwritten = (folder / "queries" / "one.sql").exists()
    done = client.post(
        "/console/documents/queries/one.sql",
        data={"do": "save", "content": "SELECT 1 AS one\n", "then": "/console/query?saved=one.sql"},
        headers=PART,
    )
    text = shown(client, "/console/query?saved=one.sql")

    assert "+SELECT 1 AS one" in asked
    assert not unwritten
    assert done.headers["hx-redirect"] == "/console/query?saved=one.sql"
    assert (folder / "queries" / "one.sql").read_text() == "SELECT 1 AS one\n"
    assert "polynya query --file queries/one.sql" in text


def test_who_may_not_query_sees_neither_rows_nor_words(tmp_path: Path) -> None:
    console = served(tmp_path)
    viewer = console.token("vera@example.com", *Action)
    paths = ["/console/query", "/console/record", "/console/why", "/console/query/views"]

    assert {console.client.get(path, headers=viewer).status_code for path in paths} == {403}


def test_lineage_shows_the_neighbours_of_one_subject(client: TestClient) -> None:
    nodes, edges = graph(client, "/console/lineage?of=sales.totals")
    _, of_column = graph(client, "/console/lineage?of=sales.totals.total")
    impact, _ = graph(client, "/console/lineage?of=shop.orders&direction=impact")
    further, _ = graph(client, "/console/lineage?of=sales.totals&steps=2")

    assert nodes == {"shop.orders", "sales.totals"}
    assert edges == {("shop.orders", "sales.totals")}
    assert ("amount", "total") in of_column
    assert ("rows of sales.totals", "total") in of_column
    assert impact == {"shop.orders", "sales.totals"}
    assert further - nodes == {"shop/orders/*.json"}


def test_the_graph_is_made_anew_only_where_files_or_columns_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_project(tmp_path, shop=STORAGE, sales=SALES)
    fill(folder)
    state = ServerState(folder, None, SystemClock())
    made: list[int] = []
    monkeypatch.setattr(
        "polynya.engine.commands.lineage.project_graph",
        lambda *given: made.append(1) or project_graph(*given),
    )
    before = state.lineage()
    state.overview.look()
    same = state.lineage()
    (folder / "tasks" / "sales.yml").write_text(SALES.replace("sum: amount", "max: amount"))
    state.overview.look()
    after = state.lineage()

    assert same is before
    assert after is not before
    assert len(made) == 2


def test_the_check_of_these_pages_sees_markup_and_hidden_signs() -> None:
    for text in (HOSTILE, "<b>", "\u202e", "\x07", "<p>49</p>"):
        with pytest.raises(AssertionError):
            harmless(text)


def test_a_graph_of_too_many_nodes_is_a_table(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage_page, "MOST_NODES", 1)
    answer = client.get("/console/lineage?of=sales.totals").text

    assert "data-graph" not in answer
    assert "2 nodes are too many for a picture" in plain(answer)


def test_a_subject_that_nothing_has_is_told_as_an_error(client: TestClient) -> None:
    text = shown(client, f"/console/lineage?of={quote(HOSTILE)}", 422)

    assert "POLYNYA-TRF-090" in text
    assert r"\u202e" in text


def test_a_transform_shows_its_graph_how_it_is_computed_and_what_it_expects(
    client: TestClient,
) -> None:
    path = "/console/transforms/sales/sales.totals"
    nodes, edges = graph(client, path)
    text = shown(client, path)

    assert nodes == {"shop.orders", "1 filter", "2 aggregate", "sales.totals"}
    assert ("2 aggregate", "sales.totals") in edges
    assert "Incremental. A step computes the rows that changes concern, by person." in text
    assert "The whole query took 2.5 s" in text
    assert "Affected keys took 0.5 s, while 25 % of the input rows had changed" in text
    assert "2 committed results failed it" in text
    assert "sales.totals" in shown(client, "/console/transforms")


@pytest.fixture(scope="module")
def in_sql(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = write_project(tmp_path_factory.mktemp("in_sql"), shop=STORAGE, paid=PAID)
    fill(folder)
    return TestClient(app_of(ServerState(folder, None, SystemClock())))


def test_a_query_in_sql_shows_each_part_that_it_names_as_a_step(in_sql: TestClient) -> None:
    path = "/console/transforms/paid/paid.people"
    nodes, edges = graph(in_sql, path)
    text = shown(in_sql, path)

    assert nodes == {"shop.orders", "1 paid", "2 large", "3 select", "paid.people"}
    assert edges == {
        ("shop.orders", "1 paid"),
        ("1 paid", "2 large"),
        ("2 large", "3 select"),
        ("3 select", "paid.people"),
    }
    assert "large, reads paid" in text and "amount > 5" in text


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run makes the views, which this lake does not have; the engine reads what they show."""
    monkeypatch.setattr(ProjectViews, "check", lambda *_: None)


@pytest.mark.usefixtures("views")
def test_each_part_of_a_query_in_sql_shows_its_rows(in_sql: TestClient) -> None:
    path = "/console/transforms/paid/paid.people/rows"
    paid, large = shown(in_sql, f"{path}/0"), shown(in_sql, f"{path}/1")
    total = in_sql.get(f"{path}/2", headers=PART)

    assert re.search(r"2 rows, computed in [0-9.]+ s by the embedded engine", paid)
    assert re.search(r"1 row, computed in [0-9.]+ s", large)
    assert '<div id="rows-2">' in total.text and "<h1" not in total.text
    # Only Spark draws identifiers.
    assert (total.status_code, "POLYNYA-QRY-002" in total.text) == (422, True)


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("in_sql", {"1 paid": "2 rows", "2 large": "1 row", "3 select": "3 columns"}),
        ("client", {"1 filter": "2 rows", "2 aggregate": "1 row"}),
    ],
)
def test_the_graph_has_rows_and_seconds_of_each_step_that_the_engine_computes(
    request: pytest.FixtureRequest, which: str, said: dict[str, str]
) -> None:
    asked: TestClient = request.getfixturevalue(which)
    path = "paid/paid.people" if which == "in_sql" else "sales/sales.totals"
    text = asked.get(f"/console/transforms/{path}/counts", headers=PART).text
    found = re.search(r'data-graph="([^"]*)"', text)
    assert found is not None
    says = {one["title"]: one["says"] for one in json.loads(html.unescape(found[1]))["nodes"]}

    for title, begins in said.items():
        assert re.fullmatch(rf"{begins}(, [0-9.]+ s)?", says[title]), (title, says[title])
        assert (", " in says[title]) == ("row" in begins)
    left_out = which == "in_sql"
    assert ("1 step was not counted" in plain(text)) == left_out
    assert ("POLYNYA-QRY-002" in text) == left_out


def test_one_record_is_told_by_both_clocks(client: TestClient) -> None:
    text = shown(client, "/console/record?dataset=shop.orders&key=id%3D7")
    by_field = shown(client, "/console/record?dataset=shop.orders&key.id=7")

    assert "The table holds 3 events of it" in text
    assert "12:00:03.000 2026-01-01" in text
    assert re.search(r"Updated event 3 +pending .*amount +8 +9 ", text)
    assert re.search(r"applied +12:00:12.000 2026-01-01 9.0 s after it happened", text)
    assert "queries saw it" in text
    assert "polynya history shop.orders id=7" in text
    assert "<b>1.json , record 2" in text
    assert by_field.count("event 3") == 1


def test_a_key_with_markup_is_only_a_key(client: TestClient) -> None:
    text = shown(client, f"/console/record?dataset=shop.orders&key={quote(f'id={HOSTILE}')}")

    assert "The table holds 1 event of it" in text


def test_a_row_is_followed_back_to_the_file_that_brought_it(client: TestClient) -> None:
    path = f"/console/why?dataset=sales.totals&key={quote(f'person={HOSTILE}')}"
    nodes, edges = graph(client, path)
    text = shown(client, path)

    assert ("shop.orders", "sales.totals") in edges
    assert "<b>1.json" in nodes
    assert "A query of task sales made this row" in text
    assert "GROUP BY" in text
    assert "record 2" in text


def test_a_row_that_does_not_exist_has_no_reasons(client: TestClient) -> None:
    text = shown(client, "/console/why?dataset=sales.totals&key=person%3Dnobody")

    assert "No row with this key exists now." in text


@pytest.mark.parametrize("page", ["record", "why"])
def test_a_wrong_key_is_told_as_an_error(client: TestClient, page: str) -> None:
    text = shown(client, f"/console/{page}?dataset=shop.orders&key={quote(HOSTILE)}%3D1", 422)

    assert "POLYNYA-SRV-080" in text
