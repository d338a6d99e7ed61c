"""Users' conditions: what passes comes out canonical, whatever is hostile is a clear error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.model.names import literal
from polynya.transform.expressions import expression_columns, validate_expression
from polynya.transform.parsing import unescape
from polynya.transform.project import expression_errors
from tests.projects import USERS, write_project


def code_of(text):
    with pytest.raises(ConfigError) as caught:
        validate_expression(text, where="tasks/users.yml:9:5")
    assert caught.value.where == "tasks/users.yml:9:5"
    assert caught.value.exit_code == 2
    return caught.value.code.removeprefix("POLYNYA-EXP-")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("operation = 'DELETE'", "`operation` = 'DELETE'"),
        ("op IN ('d', 'D') and not a", "`op` IN ('d', 'D') AND NOT `a`"),
        ("a.b.c = 1", "`a`.`b`.`c` = 1"),
        ("`x ``y` is null", "`x ``y` IS NULL"),
        ("items[0]['k'] = 1", "`items`[0]['k'] = 1"),
        ("a <=> b", "`a` IS NOT DISTINCT FROM `b`"),
        ("case when a then 1 else 0 end = 1", "CASE WHEN `a` THEN 1 ELSE 0 END = 1"),
        ("cast(a as decimal(3,2)) >= 1.5", "CAST(`a` AS DECIMAL(3, 2)) >= 1.5"),
        ("coalesce(lower(op), 'x') like 'd%'", "COALESCE(LOWER(`op`), 'x') LIKE 'd%'"),
        # Functions and their format strings stay as they were written.
        (
            "to_date(d, 'yyyy-MM-dd') < date'2020-01-01'",
            "TO_DATE(`d`, 'yyyy-MM-dd') < CAST('2020-01-01' AS DATE)",
        ),
        ("get_json_object(j, '$.op') = 'd'", "GET_JSON_OBJECT(`j`, '$.op') = 'd'"),
        ('a = "it\'s"', "`a` = 'it\\'s'"),
        ("a = 'it''s'", "`a` = 'it\\'s'"),
        ("a rlike '\\\\d+'", "`a` RLIKE '\\\\d+'"),
        ("a = r'\\n'", "`a` = '\\\\n'"),
        ("user = 'x' and `current_date` = 'y'", "`user` = 'x' AND `current_date` = 'y'"),
        ("- -a > 1", "- -`a` > 1"),
    ],
)
def test_a_condition_comes_out_with_every_column_quoted(text, expected):
    assert validate_expression(text) == expected
    # What comes out is itself a condition with the same meaning.
    assert validate_expression(expected) == expected


def test_the_columns_are_the_top_level_ones():
    text = "a.b = 1 and `c d`[0] = lower(e) or case when f then true end"

    assert expression_columns(text) == {"a", "c d", "e", "f"}


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.Runtime', 'getRuntime')",
        "java_method('java.lang.System', 'exit', 1)",
        "`reflect`('a', 'b')",
        "sys.reflect('a', 'b')",
        "a.java_method('a')",
        "try_reflect('a', 'b')",
        "input_file_name() = 'x'",
        "current_timestamp() > a",
        "current_timestamp > a",
        "current_user = 'x'",
        "session_user = 'x'",
        "unix_timestamp() > 1",
        "now() > a",
        "rand() > 0.5",
        "uuid() = a",
        "monotonically_increasing_id() = 1",
        "count(*) > 1",
        "sum(a) > 1",
        "explode(a)",
        "raise_error('x')",
        "assert_true(a)",
        "repeat('x', 2000000000) = a",
        "sequence(1, 1000000000)",
        "my_udf(a)",
        "transform(a, x -> x)",
        "ai_query('x')",
        "table(x)",
    ],
)
def test_functions_outside_the_list_are_refused(text):
    assert code_of(text) == "004"


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "(select 1)",
        "a in (select id from t)",
        "exists (select 1)",
        "a = any(select 1)",
        "a in (1) union select 2",
        "(values (1))",
        "from t",
        "with t as (select 1) select * from t",
        "parquet.`/etc/passwd`",
        "CSV.`hdfs://x/y`",
        "select * from parquet.`/etc/x`",
    ],
)
def test_sub_queries_tables_and_paths_are_refused(text):
    assert code_of(text) == "003"


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; drop table t",
        "a = 1;",
        ";",
        "",
        "   ",
        "\n",
    ],
)
def test_a_condition_is_one_expression(text):
    assert code_of(text) == "002"


@pytest.mark.parametrize(
    "text",
    ["a = 1 -- x", "/* x */ a", "a /* x */ = 1", "/*+ BROADCAST(t) */ a", "a = 'x'\n-- c\n"],
)
def test_comments_and_hints_are_refused(text):
    assert code_of(text) == "007"


@pytest.mark.parametrize(
    "text",
    [
        "sum(a) over ()",
        "upper(a) over (partition by b)",
        "*",
        "a.*",
        ":p = 1",
        "? = 1",
        "@v = 1",
        "${v} = 1",
        "a as b",
        "(a, b) = (1, 2)",
        "upper(distinct a)",
        "upper(a) filter (where b)",
        "upper(x => a)",
        "a = 'x' 'y'",
        "a at time zone 'x'",
        "a collate unicode = 'x'",
        "`` = 1",
        "cast(a as struct<b: int>)",
    ],
)
def test_constructs_that_are_no_condition_are_refused(text):
    assert code_of(text) == "005"


@pytest.mark.parametrize(
    "text", ["a = ", "upper(a", "a b c", "'a", "`a", "a, b", "cast(a as nope)"]
)
def test_what_is_no_sql_is_an_error(text):
    assert code_of(text) == "001"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2000 + "a" + ")" * 1999,
        "not " * 900 + "a",
        "- " * 900 + "a",
        "case when " * 300 + "a",
        "upper(" * 500,
        "a" + " and a" * 600,
        "'" + "x" * 5000 + "'",
    ],
)
def test_huge_and_deep_conditions_end_in_an_error_and_soon(text):
    started = time.monotonic()

    assert code_of(text) == "006"
    assert time.monotonic() - started < 5


def test_errors_name_the_place_and_the_nearest_function():
    with pytest.raises(ConfigError) as caught:
        validate_expression("op = 'd' and lowr(a) = 'x'")

    assert caught.value.message == "expression: function `lowr` is not allowed at position 14"
    assert caught.value.fix == "did you mean `lower`?"


@given(st.text(max_size=40))
def test_any_string_reaches_spark_as_the_same_string(text):
    """The literal cannot be left from inside: reading it back gives the text, and nothing else."""
    written = literal(text)

    canonical = validate_expression(f"a = {written}")

    assert canonical == f"`a` = {written}"
    assert unescape(written[1:-1]) == text


@given(st.text(min_size=1, max_size=40).filter(lambda name: "\0" not in name))
def test_any_column_name_stays_one_column(name):
    quoted = "`" + name.replace("`", "``") + "`"

    assert expression_columns(f"{quoted} = 1") == {name}
    assert validate_expression(f"{quoted} = 1") == f"{quoted} = 1"


WORDS = (
    "a `b` 1 'x' = + - * / ( ) and or not is null in , . [ ] case when then end select from ; --"
    " /* */ reflect upper cast as int over -> :: union \\ \" ` ' like between interval day"
)
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=14).map(" ".join))
def test_any_words_are_a_plain_condition_or_a_clear_error(text):
    try:
        canonical = validate_expression(text)
    except ConfigError as error:
        assert error.code.startswith("POLYNYA-EXP-")
    else:
        tree = parse_one(canonical, read="spark")
        assert not list(tree.find_all(exp.Query, exp.Table, exp.Command, exp.Window, exp.Lambda))
        assert validate_expression(canonical) == canonical


def test_the_expressions_of_a_project_are_found_at_their_lines(tmp_path):
    text = USERS.replace("operation = 'DELETE'", "reflect('a')")
    text += "defaults: {apply_as_truncates: 'a = 1; b'}\n"
    project = load_project(write_project(tmp_path, users=text))

    found = [(error.where, error.code) for error in expression_errors(project)]

    assert sorted(found) == [
        ("tasks/users.yml:10:5", "POLYNYA-EXP-004"),
        ("tasks/users.yml:11:12", "POLYNYA-EXP-002"),
    ]
