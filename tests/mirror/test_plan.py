"""What a mirror changes in its target, decided without one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from polynya.mirror import snowflake
from polynya.mirror.plan import Mark, MirrorOrigin, TargetObject, plan
from polynya.mirror.setup import SetupNames, as_sql, as_terraform, setup_steps
from polynya.mirror.snowflake import text
from polynya.model.names import Dialect
from tests.mirror.faked import ORIGIN, SNOWFLAKE, TARGET, mirror, shown, storage

#: What could end a name, a string or a statement.
HOSTILE = st.text(st.sampled_from(list("aA\"'\\;-/*$ .`é\u202e")), min_size=1, max_size=20)


def after(made, there=()):
    """The objects of the target after the statements of a plan."""
    objects = {thing.name: thing for thing in there}
    for one in made.statements:
        if one.action == "drop":
            objects.pop(one.name)
        elif one.action in {"create", "replace"}:
            comment = one.sql.split(" COMMENT = '", 1)[1].split("'", 1)[0]
            objects[one.name] = TargetObject(one.name, one.kind, comment)
    return list(objects.values())


def test_a_dataset_becomes_a_table_and_its_views_in_this_order():
    source = storage("users")
    made = plan(mirror(source), ORIGIN, [shown(source, "users")], [])
    assert [(one.action, one.kind, one.name) for one in made.statements] == [
        ("create", "TABLE", "USERS_INTERNAL"),
        ("create", "VIEW", "USERS"),
        ("create", "VIEW", "USERS__HISTORY"),
        ("create", "VIEW", "USERS__CHANGES"),
    ]
    table, view, *_ = (one.sql for one in made.statements)
    assert "CATALOG_NAMESPACE = 'shop_internal' CATALOG_TABLE_NAME = 'users_internal'" in table
    assert view.startswith('CREATE VIEW "LAKE"."SHOP"."USERS" COMMENT = \'polynya mirror {')
    assert '"LAKE"."SHOP"."USERS_INTERNAL"' in view


def test_what_is_there_needs_no_statement():
    source, task = storage("users", "orders"), mirror()
    datasets = [shown(source, "users"), shown(source, "orders")]
    there = after(plan(task, ORIGIN, datasets, []))
    assert plan(task, ORIGIN, datasets, there).statements == ()


def test_new_columns_replace_the_views_after_a_refresh():
    source, task = storage("users"), mirror()
    there = after(plan(task, ORIGIN, [shown(source, "users")], []))
    wider = shown(source, "users", name="string", age="int")
    made = plan(task, ORIGIN, [wider], there)
    assert [(one.action, one.name) for one in made.statements] == [
        ("refresh", "USERS_INTERNAL"),
        ("replace", "USERS"),
        ("replace", "USERS__HISTORY"),
        ("replace", "USERS__CHANGES"),
    ]
    assert "COPY GRANTS" in made.statements[1].sql
    frozen = plan(mirror(schema_evolution="freeze"), ORIGIN, [wider], there)
    assert frozen.statements == ()
    assert len(frozen.notes) == 3


def test_only_what_the_mirror_made_is_dropped_and_only_if_all_datasets_are_known():
    source, task = storage("users", "orders"), mirror()
    both = [shown(source, "users"), shown(source, "orders")]
    others = [
        TargetObject("PEOPLE", "TABLE", "somebody's"),
        TargetObject(
            "BUDGET", "VIEW", Mark(replace(ORIGIN, task="other"), "x", "current", "y").text
        ),
        TargetObject(
            "STAGED", "VIEW", Mark(replace(ORIGIN, target="dev"), "x", "current", "y").text
        ),
    ]
    there = [*after(plan(task, ORIGIN, both, [])), *others]
    made = plan(task, ORIGIN, both[:1], there)
    assert [(one.action, one.name) for one in made.statements] == [
        ("drop", "ORDERS"), ("drop", "ORDERS__CHANGES"), ("drop", "ORDERS__HISTORY"),
        ("drop", "ORDERS_INTERNAL"),
    ]  # fmt: skip
    assert plan(task, ORIGIN, both[:1], there, complete=False).statements == ()


@pytest.mark.parametrize("comment", ["", "a table of finance", 'polynya mirror {"origin":3}'])
def test_a_name_that_somebody_else_has_refuses_its_dataset_alone(comment):
    source = storage("users", "orders")
    there = [TargetObject("USERS", "TABLE", comment)]
    made = plan(mirror(), ORIGIN, [shown(source, "users"), shown(source, "orders")], there)
    assert made.refused["shop.users"].code == "POLYNYA-MIR-004"
    assert {one.dataset for one in made.statements} == {"shop.orders"}


def test_names_that_fold_together_are_refused_by_name():
    source = storage("users", "Users", "orders")
    datasets = [shown(source, name) for name in ("users", "Users", "orders")]
    made = plan(mirror(), ORIGIN, datasets, [])
    assert set(made.refused) == {"shop.users", "shop.Users"}
    assert "USERS" in str(made.refused["shop.users"])
    columns = shown(source, "orders", name="string", NAME="string")
    assert plan(mirror(), ORIGIN, [columns], []).refused["shop.orders"].code == "POLYNYA-MIR-005"


def test_a_refused_dataset_keeps_what_it_has():
    source, task = storage("users"), mirror()
    there = after(plan(task, ORIGIN, [shown(source, "users")], []))
    folding = shown(source, "users", name="string", NAME="string")
    assert plan(task, ORIGIN, [folding], there).statements == ()


def test_a_linked_database_has_the_tables_by_itself():
    source = storage("users")
    linked = {
        k: v for k, v in SNOWFLAKE.items() if k not in {"external_volume", "catalog_integration"}
    }
    task = mirror(source, target={"snowflake": {**linked, "linked_database": "GLUE_DB"}})
    made = plan(task, ORIGIN, [shown(source, "users")], [])
    assert {one.kind for one in made.statements} == {"VIEW"}
    assert '"GLUE_DB"."shop_internal"."users_internal"' in made.statements[0].sql


@settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(names=st.lists(HOSTILE, min_size=5, max_size=5), column=HOSTILE, secure=st.booleans())
@example(names=['a"; DROP TABLE x; --'] * 5, column='b"', secure=True)
def test_hostile_names_stay_names(names, column, secure):
    assert_stay_names(names, column, secure=secure)


def assert_stay_names(names, column, *, secure):
    source = storage("users")
    keys = ("database", "schema", "warehouse", "external_volume", "catalog_integration")
    target = {"snowflake": {**SNOWFLAKE, **dict(zip(keys, names, strict=True))}}
    task = mirror(source, target=target, views={"secure": secure, "kinds": ["current"]})
    made = plan(task, ORIGIN, [shown(source, "users", **{column: "string"})], [])
    table, view = (one.sql for one in made.statements)
    (tree,) = sqlglot.parse(view, read="snowflake")
    assert [tree.this.catalog, tree.this.db] == names[:2]
    assert column in {found.name for found in tree.find_all(exp.Column)}
    tokens = sqlglot.tokenize(table, read="snowflake")
    strings = [token.text for token in tokens if token.token_type == TokenType.STRING]
    plain = (names[3], Dialect.SNOWFLAKE.quote(names[3]))
    assert strings[0] in plain
    assert TokenType.SEMICOLON not in {token.token_type for token in tokens}
    steps = setup_steps(task, TARGET, SetupNames())
    ends = sqlglot.tokenize(as_sql(steps), read="snowflake")
    assert sum(token.token_type == TokenType.SEMICOLON for token in ends) == len(steps)


def test_a_planted_name_without_quotes_is_seen(monkeypatch):
    monkeypatch.setattr(snowflake, "_quote", lambda *names: ".".join(names))
    with pytest.raises((AssertionError, SqlglotError, ValueError)):
        assert_stay_names(['a"; DROP TABLE x; --'] * 5, "b", secure=False)


@given(HOSTILE)
def test_a_string_comes_back_as_it_was(value):
    (token,) = sqlglot.tokenize(text(value), read="snowflake")
    assert token.text == value


@given(HOSTILE, HOSTILE)
def test_a_mark_comes_back_from_a_comment(dataset, definition):
    mark = Mark(MirrorOrigin("p", "t", "m"), dataset, "table", definition)
    assert Mark.of(mark.text) == mark


def test_the_role_of_the_mirror_cannot_write_data():
    script = as_sql(setup_steps(mirror(), TARGET, SetupNames()))
    assert "ALLOW_WRITES = FALSE" in script
    rights = [line for line in script.splitlines() if line.startswith("GRANT")]
    assert not [
        line for line in rights if "INSERT" in line or "OWNERSHIP" in line or "ALL PRIV" in line
    ]
    assert (
        'GRANT SELECT ON FUTURE VIEWS IN SCHEMA "LAKE"."SHOP" TO ROLE "POLYNYA_READER";' in rights
    )


def test_terraform_has_no_template_in_a_name():
    target = {"snowflake": {**SNOWFLAKE, "database": 'a${file("x")}%{if}'}}
    task = mirror(target=target)
    script = as_terraform(task, setup_steps(task, TARGET, SetupNames()))
    assert "$${file(" in script
    assert "%%{if}" in script
