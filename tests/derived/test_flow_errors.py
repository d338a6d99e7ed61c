"""What is wrong with a flow: each error at its step, with what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.derived.flow import MAX_COLUMNS, compile_flow, tables_read
from polynya.derived.schema import DerivedInput
from polynya.model.config.flow import FlowStep
from polynya.model.errors import ConfigErrors
from tests.derived.flow_tables import FILE, Table, answered, errors_of, flow_of

PEOPLE = {"person_id": "int", "first_name": "string", "born": "date", "tags": "map<string,string>"}
TABLES = {
    "crm.people": Table(PEOPLE, keys=("person_id",)),
    "crm.visits": Table({"person_id": "bigint", "at": "timestamp", "cost": "double"}),
}


def flow(*steps: str) -> str:
    return "flow:\n" + "".join(f"  - {step}\n" for step in steps)


def only(*steps: str) -> str:
    """The one error of a flow."""
    [error] = errors_of(flow(*steps), TABLES)
    return error


def test_an_unknown_column_is_found_at_its_place_in_a_list() -> None:
    error = only("select: {input: people, columns: [person_id, frist_name]}")

    assert error.startswith(f"TRF-040 {FILE}:2:50: step 1 (`select`) names `frist_name`, which ")
    assert "`crm.people` does not have; did you mean `first_name`?" in error
    assert error.endswith("it has: born, first_name, person_id, tags")


def test_an_unknown_column_is_found_in_an_expression() -> None:
    error = only("select: {input: people, columns: [born]}", 'filter: "born > dead"')

    assert error.startswith(f"TRF-040 {FILE}:3:5: step 2 (`filter`) names `dead`, which `select_1`")
    assert "at position 8 of the expression" in error


def test_an_unknown_field_is_found() -> None:
    tables = {"t": Table({"a": "struct<b:int>"})}

    [error] = errors_of(flow('filter: {input: t, condition: "a.B > 1 AND a.c > 1"}'), tables)

    assert "`a` of type struct<b:int> has no field `c`" in error


def test_steps_that_read_a_wrong_one_are_not_looked_at() -> None:
    errors = errors_of(
        flow("select: {input: people, columns: [nobody]}", 'filter: "nobody = 1"',
             "dedupe: {input: people}"), TABLES,
    )  # fmt: skip

    assert [error.partition(" ")[0] for error in errors] == ["TRF-040", "TRF-045", "TRF-051"]


def test_all_errors_of_a_step_are_found() -> None:
    errors = errors_of(
        flow("aggregate: {input: people, by: [a, b], columns: {n: {sum: c}}}"), TABLES
    )

    assert len(errors) == 3


@pytest.mark.parametrize(
    ("step", "place", "message"),
    [
        ("filtre: x", "2:5", "unknown key `filtre`; did you mean `filter`?"),
        ("filter: {conditon: x}", "2:14", "unknown key `conditon`; did you mean `condition`?"),
        ("{}", "2:5", "exactly one of the processors is expected here; it has none"),
        ("{filter: x, select: [a]}", "2:5", "it has `filter` and `select`"),
        ("dedupe: {keys: [a]}", "2:5", "nothing says which one of several rows is kept"),
        ("join: {with: people}", "2:5", "nothing says which rows match"),
        ("window: {columns: {n: {row_number: true}}}", "2:5", "`n` depends on an order"),
        ("window: {columns: {n: {sum: a, offset: 1}}}", "2:24", "`offset` is for `lag` and"),
        ("fill_missing: {values: {a: [1]}}", "2:29", "one value is expected here"),
        ("fill_missing: {values: {a: 1e999}}", "2:29", "this number is too large"),
        ("select: {input: a.b.c, columns: [a]}", "2:14", "not the name of a step or a table"),
        ("aggregate: {columns: {n: {sum: a, max: a}}}", "2:27", "it has `sum` and `max`"),
    ],
)
def test_settings_are_strict(step: str, place: str, message: str) -> None:
    errors = errors_of(flow(step), TABLES)

    assert any(message in error and f" {FILE}:{place}: flow[0]" in error for error in errors)


def test_an_incremental_filter_is_refused_by_name() -> None:
    error = only('incremental_filter: "at > 1"')

    assert error.startswith(f"TRF-048 {FILE}:2:5: flow[0]: `incremental_filter` cannot be exact")
    assert "write `filter`" in error


def test_inputs_have_to_be_there() -> None:
    assert "the first step does not say which table it reads" in only('filter: "true"')
    assert errors_of(flow('filter: "true"'), {"t": Table({"a": "int"})}) == []
    error = only("select: {input: poeple, columns: [born]}")
    assert error.startswith(f"TRF-042 {FILE}:2:14: step 1 (`select`) reads `poeple`, which is")
    assert "did you mean" in error
    later = errors_of(
        flow('filter: {input: x, condition: "true"}', "dedupe: {input: visits, as: x}"), TABLES
    )
    assert "move that step up" in later[0]


def test_the_tables_of_a_flow_are_known_without_their_columns() -> None:
    steps = [
        {"select": {"input": "a", "columns": ["x"], "as": "b"}},
        {"union": {"inputs": ["B", "c.d", "a"]}},
        {"lookup": {"from": "e", "on": ["x"], "columns": ["y"]}},
    ]

    found = tables_read([FlowStep.model_validate(step) for step in steps])

    assert found == {
        "a": (0, "select", "input"),
        "c.d": (1, "union", "inputs", 1),
        "e": (2, "lookup", "from"),
    }
    assert tables_read([FlowStep.model_validate({"filter": "x"})]) is None


def test_a_table_name_that_two_schemas_have_is_written_whole() -> None:
    tables = {"a.t": Table({"x": "int"}), "b.t": Table({"x": "int"})}

    [error] = errors_of(flow("select: {input: t, columns: [x]}"), tables)

    assert "may be a.t or b.t" in error
    assert errors_of(flow("select: {input: b.t, columns: [x]}"), tables) == []


def test_step_names_are_their_own() -> None:
    error = only("dedupe: {input: visits, as: People}")
    assert error.startswith(f"TRF-043 {FILE}:2:")
    assert "which is the name of the table `crm.people`" in error
    errors = errors_of(flow("dedupe: {input: visits, as: x}", "dedupe: {as: X}"), TABLES)
    assert "which is the name of step 1" in errors[0]


def test_a_step_that_nothing_reads_is_an_error() -> None:
    errors = errors_of(
        flow("dedupe: {input: visits, as: lost}", "select: {input: people, columns: [born]}"),
        TABLES,
    )

    assert [error.partition(";")[0] for error in errors] == [
        f"TRF-051 {FILE}:2:5: no later step reads `lost`"
    ]


def test_a_later_default_input_does_not_read_earlier_steps() -> None:
    text = flow(
        "dedupe: {input: visits, as: lost}",
        "select: {input: people, columns: [born]}",
        'filter: "born IS NULL"',
    )

    [error] = errors_of(text, TABLES)

    assert "no later step reads `lost`" in error


def test_a_column_with_other_values_is_a_key_no_longer() -> None:
    rest = "dedupe: {keys: [first_name], keep: first, order: [person_id]}"

    assert errors_of(flow("select: {input: people, except: [tags]}", rest), TABLES) == []
    for change in (
        'derive: {columns: {person_id: "1"}}',
        "fill_missing: {values: {person_id: 1}}",
        "join: {with: visits, on: [person_id]}",
    ):
        found = errors_of(flow("select: {input: people, except: [tags]}", change, rest), TABLES)
        assert [error[:7] for error in found] == ["TRF-046"]


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        ("select: {input: people, columns: [born, BORN]}", "041", "two columns `born`"),
        ("rename: {input: people, columns: {born: Tags}}", "041", "two columns `tags`"),
        ("join: {input: people, with: visits, type: cross}", "041", "two columns `person_id`"),
        ("join: {input: people, with: visits, on: {first_name: person_id}}", "044",
         "joins `first_name` (string) with `person_id` (bigint)"),
        ("union: {inputs: [people, clashes]}", "042", "reads `clashes`"),
        ("aggregate: {input: people, columns: {n: {sum: first_name}}}", "045", "needs a number"),
        ("aggregate: {input: people, by: [tags]}", "045", "`tags` is map<string,string>"),
        ("filter: {input: people, condition: person_id + 1}", "045", "needs a condition"),
        ("cleanse: {input: people, trim: [born]}", "045", "needs text, and `born` is date"),
        ("explode: {input: people, column: born}", "045", "needs an array"),
        ("dedupe: {input: visits, keys: [person_id], keep: latest, order: [at]}", "046",
         "rows of `crm.visits` may be equal in all of `person_id`, `at`"),
        (("window: {input: people, by: [born], order: [first_name], "
          "columns: {n: {row_number: true}}}"), "046", "add `person_id` to `order`"),
        ("fill_missing: {input: visits, last: [cost], order: [at]}", "046", "may be equal"),
        ("lookup: {input: people, from: visits, on: [person_id], columns: [at]}", "047",
         "use `join`: it has no key"),
        ("lookup: {input: visits, from: people, on: {cost: born}, columns: [tags]}", "044", "cost"),
        ("fill_missing: {input: people, values: {born: soon}}", "052", "with `soon`"),
        ("fill_missing: {input: people, values: {person_id: 3000000000}}", "052", "of type int"),
        ("fill_missing: {input: visits, values: {at: '2026-11-29 10:00'}}", "052", "timestamp"),
        (("pivot: {input: people, by: [born], column: person_id, values: [a], "
          "value: {count: '*'}}"), "052", "with `a`"),
        ('join: {input: people, with: visits, condition: "person_id = 1"}', "053",
         "write `left.person_id` or `right.person_id`"),
        ("filter: {input: people, condition: \"to_upper(concat(first_name, tags['a'])) = 'A'\"}",
         "050", "the type of `CONCAT("),
        ('filter: {input: people, condition: "get_processing_time() IS NULL"}', "050",
         "a value of the message"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(step: str, code: str, message: str) -> None:
    found = errors_of(flow(step), TABLES)

    assert any(f"{code} {FILE}:2:" in one for one in found), found
    assert any(message in one for one in found), found


def test_names_of_the_result_are_those_of_a_table() -> None:
    tables = {"a": Table({"k": "int"}), "b": Table({"k": "int", "n" * 255: "int"})}

    [error] = errors_of(flow("join: {input: a, with: b, on: [k], prefix: p_}"), tables)

    assert error.startswith(f"TRF-054 {FILE}:2:5: step `join_1` is the result, and column name")
    assert "longer than 255 characters" in error


def test_a_union_refuses_types_that_would_change_values() -> None:
    tables = {"a": Table({"x": "bigint"}), "b": Table({"x": "double"})}

    [error] = errors_of(flow("union: {inputs: [a, b]}"), tables)

    assert error.startswith(f"TRF-044 {FILE}:2:")
    assert "`x` (bigint) with `x` (double)" in error


@pytest.mark.parametrize(
    "expression",
    ["(SELECT 1)", "sum(person_id) > 1", "current_timestamp > born", "1; DROP TABLE x",
     "reflect('java.lang.Runtime', 'exit')", "born > /* x */ 1", "`parquet`.`/etc/passwd` = 1"],
)  # fmt: skip
def test_expressions_pass_the_one_check(expression: str) -> None:
    errors = errors_of(flow(f"filter: {{input: people, condition: {expression!r}}}"), TABLES)

    assert len(errors) == 1
    assert errors[0].startswith(("EXP-", "FUN-", "TRF-040"))


HOSTILE = ["a`b", 'a"b', "a'; DROP TABLE x; --", "sélect", "FROM", "a.b", "a b", "`", "input", "l"]


def test_hostile_names_are_only_names() -> None:
    steps: list[dict[str, Any]] = [
        {"select": {"input": "t", "columns": HOSTILE, "as": "l"}},
        {"cleanse": {"trim": HOSTILE, "null_if": {HOSTILE[0]: ["x' OR 1=1 --\\", "a\nb"]}}},
        {"join": {"with": "l", "on": HOSTILE[:1], "prefix": "r_", "type": "left"}},
        {"unpivot": {"columns": HOSTILE, "name": "n", "value": "v"}},
        {"window": {"by": ["n"], "order": ["v"], "columns": {"`r`": {"rank": True}}}},
        {"select": {"columns": ["n", "v", "`r`"]}},
    ]
    table = Table(dict.fromkeys(HOSTILE, "string"), [tuple("x" * len(HOSTILE))])
    made = [FlowStep.model_validate(step) for step in steps]

    compiled = compile_flow(made, {"t": DerivedInput("t", table.columns)}, str)

    assert answered(compiled.sql, {"t": table}) == sorted((name, "x", 1) for name in HOSTILE)


def test_a_line_break_in_a_literal_stays_one() -> None:
    tables = {"t": Table({"a": "string"}, [("x\n  y",), ("x\ny",)])}
    text = "flow:\n  - filter: {input: t, condition: \"a = 'x\\ny'\"}\n"

    assert answered(flow_of(text, tables).sql, tables) == [("x\ny",)]


def test_sizes_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.derived.flow.MAX_CHARACTERS", 300_000)
    wide = {"t": DerivedInput("t", {f"c{number}": "int" for number in range(MAX_COLUMNS)}, ("c0",))}

    def limit(*steps: dict[str, Any]) -> str:
        with pytest.raises(ConfigErrors) as caught:
            compile_flow([FlowStep.model_validate(step) for step in steps], wide, str)
        return caught.value.errors[-1].message

    small = {"select": {"input": "t", "columns": ["c0"], "as": "s0"}}
    doubled = [{"union": {"inputs": [f"s{n}", f"s{n}"], "as": f"s{n + 1}"}} for n in range(12)]
    assert "100 steps" in limit(*[{"filter": "c0 = 1"}] * 101)
    assert "5,000 columns" in limit({"derive": {"input": "t", "columns": {"d": "c0"}}})
    assert "1,000 readings" in limit(small, *doubled)
    copy = {"select": {"input": "t", "except": ["c1"]}}
    assert "300,000 characters" in limit(copy, *[{"filter": "c0 = 1"}] * 10)
