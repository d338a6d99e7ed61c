"""What `polynya query` and `polynya shell` say."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from polynya.cli.context import CommandContext
from polynya.cli.format import RowFormat
from polynya.cli.options import GlobalOptions
from polynya.cli.output import Output, TextOutput
from polynya.cli.query import Words, lines_of, query, serve
from polynya.engine.answers import Answers
from polynya.lake.read.inspect import see_newest
from polynya.lake.read.query import fix_of, split_statements
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import CATALOG
from polynya.model.errors import ConfigError, OperationError
from polynya.model.loader import load_project
from tests.lab.lab import next_schema
from tests.projects import USERS, write_project

MANY = "SELECT id, if(id = 1, NULL, 'it''s') AS note, array(named_struct('x', id)) AS tags FROM range(0, 2500, 1, 3) ORDER BY id"  # noqa: E501


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Pipe(io.TextIOWrapper):
    """Text and bytes, as a process has it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def value(self) -> bytes:
        self.flush()
        written = self.buffer
        assert isinstance(written, io.BytesIO)
        return written.getvalue()


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("polynya.engine.session.start_spark", lambda *_, **__: spark)
    return write_project(tmp_path, users=USERS)


def on(project: Path, out: io.TextIOBase) -> tuple[CommandContext, io.StringIO]:
    err = io.StringIO()
    options = GlobalOptions(no_color=True, project=project)
    output: Output = TextOutput(options, out, err)  # type: ignore[arg-type]
    return CommandContext(options, output), err


def test_each_format_has_all_rows_in_order(project: Path) -> None:
    written = {}
    for form in ("json", "csv", "parquet"):
        pipe = Pipe()
        context, _ = on(project, pipe)
        query(MANY, output=RowFormat(form), context=context)
        written[form] = pipe.value()

    rows = [json.loads(line) for line in written["json"].splitlines()]
    assert [row["id"] for row in rows] == list(range(2500))
    assert rows[1] == {"id": 1, "note": None, "tags": [{"x": 1}]}
    lines = written["csv"].decode().splitlines()
    assert lines[:3] == [
        '"id","note","tags"',
        '0,"it\'s","[{""x"": 0}]"',
        '1,,"[{""x"": 1}]"',
    ]
    assert len(lines) == 2501
    assert pq.read_table(io.BytesIO(written["parquet"])).to_pylist() == rows


def test_a_table_on_a_terminal_ends_with_a_note(project: Path) -> None:
    screen = Screen()
    context, err = on(project, screen)
    query(MANY, context=context)

    assert err.getvalue() == "the first 1,000 rows; `--limit 0` shows all\n"
    shown = screen.getvalue()
    assert "NULL" in shown
    assert '[{"x": 999}]' in shown
    assert '[{"x": 1000}]' not in shown

    pipe = io.StringIO()
    context, err = on(project, pipe)
    query(MANY, context=context)
    assert '[{"x": 2499}]' in pipe.getvalue()
    assert err.getvalue() == ""


def test_an_error_names_the_statement_and_a_fix_that_fits(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "ask.sql"
    script.write_text("SELECT 1;\n\n-- two\nSELECT idd FROM\n range(3);\n")
    context, _ = on(project, io.StringIO())

    with pytest.raises(OperationError) as failed:
        query(file=script, context=context)

    assert (
        failed.value.where == f"{script}, statement 2, line 4: -- two\nSELECT idd FROM\n range(3)"
    )
    assert failed.value.fix == "did you mean `id`?"
    with pytest.raises(OperationError, match="too odd"):
        query(
            "SELECT if(id = 2, raise_error('too odd'), id) FROM range(3)",
            output=RowFormat.JSON,
            context=context,
        )
    with pytest.raises(OperationError, match="only statements that read") as failed:
        query("DROP VIEW shop.users", context=context)
    assert "only `polynya run` writes" in (failed.value.fix or "")


def test_hints_for_names() -> None:
    views = ["shop.orders", "shop.users", "shop.users__history"]

    def missing(name: str, among: list[str]) -> str:
        return fix_of("TABLE_OR_VIEW_NOT_FOUND", {"relationName": name}, among)

    assert missing("`shop`.`user`", views) == "did you mean `shop.users`?"
    assert missing("`x`", views) == "there are: shop.orders, shop.users, shop.users__history"
    assert missing("`x`", []) == "`polynya run --once` makes the views"


def test_statements_know_their_place() -> None:
    found = split_statements("SELECT ';';\n;\n/* ; */ SELECT 2", "a.sql")

    assert [one.text for one in found] == ["SELECT ';'", "/* ; */ SELECT 2"]
    assert found[1].place == "a.sql, statement 2, line 3"


def test_formats_that_do_not_fit_are_refused(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "ask.sql"
    script.write_text("SELECT 1; SELECT 2")
    context, _ = on(project, Screen())

    with pytest.raises(ConfigError, match="not for a terminal"):
        query("SELECT 1", output=RowFormat.PARQUET, context=context)
    with pytest.raises(ConfigError, match="the rows of one statement"):
        query(file=script, output=RowFormat.CSV, context=context)


def test_a_shell_goes_on_after_an_error(project: Path, spark: SparkSession) -> None:
    typed = iter(
        ["\n", "SELECT 1\n", " AS one;\n", "SELECT nothing;\n", "SELECT 7 AS x; \n", "\\q\n"]
    )
    out = io.StringIO()
    context, err = on(project, out)

    answers = Answers(load_project(project), lambda: spark)

    code = serve(context, answers, lines_of(lambda _: next(typed)))

    assert code == 1
    assert "one" in out.getvalue()
    assert "7" in out.getvalue()
    assert "POLYNYA-QRY-001" in err.getvalue()


def test_completion_knows_views_and_the_columns_of_those_in_the_line(
    project: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(1).selectExpr("id AS userId").createOrReplaceTempView("told")
    answers = Answers(load_project(project), lambda: spark)
    monkeypatch.setattr(answers, "views", lambda: ["told"])
    assert answers.spark is spark
    words = Words(answers)

    assert words.starting("to", "SELECT * FROM to") == ["told"]
    assert words.starting("us", "SELECT * FROM told WHERE us") == ["userId", "USING"]
    assert words.starting("us", "SELECT us") == ["USING"]
    spark.catalog.dropTempView("told")


def test_a_session_that_goes_on_sees_what_another_committed(spark: SparkSession) -> None:
    schema = next_schema()
    table, count = f"{CATALOG}.{schema}.t", f"SELECT count(*) FROM {CATALOG}.{schema}.t"
    spark.sql(f"CREATE NAMESPACE {CATALOG}.{schema}")
    spark.sql(f"CREATE TABLE {table} (id int) USING iceberg")
    assert spark.sql(count).first()[0] == 0  # type: ignore[index]
    spark.newSession().sql(f"INSERT INTO {table} VALUES (1)")

    assert spark.sql(count).first()[0] == 0  # type: ignore[index]
    see_newest(spark)
    assert spark.sql(count).first()[0] == 1  # type: ignore[index]
