"""Mirrors in Redshift and Databricks: their statements, rounds, and what a kill leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot
from hypothesis import Phase, example, given, settings
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from polynya.mirror import databricks, redshift
from polynya.mirror.plan import Mark, MirrorOrigin, TargetObject, plan
from polynya.mirror.rounds import described
from polynya.mirror.setup import SetupNames, as_sql, as_terraform, setup_steps
from polynya.mirror.state import load_state
from polynya.mirror.targets import statements_of
from tests.mirror.faked import (
    DATABRICKS,
    ORIGIN,
    REDSHIFT,
    TARGET,
    Rounds,
    commit,
    mirror,
    shown,
    storage,
)
from tests.mirror.test_plan import HOSTILE
from tests.mirror.test_rounds import Killed
from tests.mirror.warehouses import WarehouseSchema, WarehouseSession

pytestmark = pytest.mark.usefixtures("translated_once")

SOURCE = storage("users", "orders")
USERS, ORDERS = shown(SOURCE, "users"), shown(SOURCE, "orders")
WIDER = shown(SOURCE, "users", name="string", age="int")
PLACES = {"redshift": REDSHIFT, "databricks": DATABRICKS}
FAMILIES = pytest.mark.parametrize("family", sorted(PLACES))


def task_in(family, source=SOURCE, /, place=(), **more):
    """A mirror of the current views in one of the two."""
    kinds = {"views": {"kinds": ["current"]}} | more
    return mirror(source, target={family: {**PLACES[family], **dict(place)}}, **kinds)


def rounds_in(folder, family, **more):
    """Its rounds, with a schema in memory."""
    schema = WarehouseSchema(family)
    return schema, Rounds(folder, task_in(family, **more), lambda: WarehouseSession(schema))


def words(schema):
    """The beginnings of the statements that were carried out."""
    return [" ".join(sql.split()[:2]) for sql in schema.statements]


def test_redshift_marks_a_view_before_it_gets_its_name():
    (made,) = plan(task_in("redshift"), ORIGIN, [USERS], []).statements
    create, comment, rename = made.texts
    own = f'"shop"."polynya_{ORIGIN.digest}_'
    assert create.startswith(f"CREATE VIEW {own}")
    assert '"shop_internal"."users_internal"' in create
    assert create.endswith(" WITH NO SCHEMA BINDING")
    assert comment.startswith(f"COMMENT ON VIEW {own}")
    assert rename.startswith(f"ALTER TABLE {own}")
    assert rename.endswith(' RENAME TO "users"')
    assert made.sql == f"{create};\n{comment};\n{rename}"


def test_databricks_refreshes_the_foreign_table_before_its_views_change():
    refresh, made = plan(task_in("databricks"), ORIGIN, [USERS], []).statements
    assert refresh.sql == "REFRESH FOREIGN TABLE `glue`.`shop_internal`.`users_internal`"
    assert made.sql.startswith("CREATE VIEW `main`.`shop`.`users` COMMENT 'polynya mirror {")
    assert "`glue`.`shop_internal`.`users_internal`" in made.sql


@FAMILIES
def test_each_statement_of_all_views_is_parsed_in_its_dialect(family):
    kinds = ["current", "history", "changes", "current_stored", "history_stored"]
    made = plan(task_in(family, views={"kinds": kinds}), ORIGIN, [USERS], [])
    created = [one for one in made.statements if one.action == "create"]
    assert len(created) == 5
    for one in created:
        for text in one.texts:
            (tree,) = sqlglot.parse(text, read=family)
            assert isinstance(tree, exp.Create | exp.Comment | exp.Alter)


@FAMILIES
def test_a_round_makes_the_views_and_later_ones_follow_the_columns(tmp_path, family):
    schema, rounds = rounds_in(tmp_path, family)
    rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
    assert set(schema.views) == {"users", "orders"}
    done = len(schema.statements)
    rounds.later(minutes=5)
    rounds.step((WIDER, commit(2)), (ORDERS, commit(1)))
    changed = words(schema)[done:]
    assert (
        changed
        == {
            "redshift": ["CREATE VIEW", "COMMENT ON", "DROP VIEW", "ALTER TABLE"],
            "databricks": ["REFRESH FOREIGN", "ALTER VIEW", "COMMENT ON"],
        }[family]
    )
    assert "age" in schema.views["users"][0]
    done = len(schema.statements)
    rounds.again()
    rounds.later(hours=2)
    rounds.step((WIDER, commit(2)), (ORDERS, commit(1)))
    assert schema.statements[done:] == []


def test_the_same_columns_are_replaced_in_place_in_redshift():
    task = task_in("redshift")
    (made,) = plan(task, ORIGIN, [USERS], []).statements
    mark = Mark.of(made.texts[1].split(" IS '", 1)[1].removesuffix("'"))
    there = [TargetObject("users", "VIEW", replace(mark, definition="older").text)]
    (again,) = plan(task, ORIGIN, [USERS], there).statements
    assert [text.split('"')[0] for text in again.texts] == [
        "CREATE OR REPLACE VIEW ", "COMMENT ON VIEW ",
    ]  # fmt: skip
    frozen = task_in("redshift", schema_evolution="freeze")
    assert plan(frozen, ORIGIN, [WIDER], there).statements == ()


def test_redshift_is_not_refreshed_and_never_behind(tmp_path):
    schema, rounds = rounds_in(tmp_path, "redshift")
    rounds.step((USERS, commit(1)))
    done = len(schema.statements)
    rounds.later(minutes=30)
    rounds.step((USERS, commit(2)))
    assert len(schema.statements) == done
    state = load_state(rounds.store, "sales_snowflake")
    (row,) = described(state, {"shop.users": commit(2)}, rounds.clock.now(), finds_commits=True)
    assert (row.behind_seconds, row.failures, row.snapshot_there) == (0, 0, None)


def test_databricks_is_refreshed_after_each_apply_or_left_alone(tmp_path):
    schema, rounds = rounds_in(tmp_path, "databricks")
    rounds.step((USERS, commit(1)))
    rounds.later(minutes=2)
    rounds.step((USERS, commit(2, rounds.clock.now(), applied=1)))
    assert words(schema).count("REFRESH FOREIGN") == 1
    rounds.step((USERS, commit(3, rounds.clock.now())))
    assert words(schema).count("REFRESH FOREIGN") == 2
    assert load_state(rounds.store, "sales_snowflake").tables["shop.users"].snapshot == 3

    schema, rounds = rounds_in(tmp_path / "b", "databricks", refresh={"automatic": True})
    rounds.step((USERS, commit(1)))
    rounds.later(minutes=2)
    rounds.step((USERS, commit(2, rounds.clock.now())))
    assert words(schema).count("REFRESH FOREIGN") == 1, "only before the view was made"


@FAMILIES
def test_a_kill_at_any_statement_is_repaired_by_the_next_round(tmp_path, family):
    assert_kills_are_repaired(tmp_path, family)


def assert_kills_are_repaired(folder, family):
    first, second = ((USERS, commit(1)), (ORDERS, commit(1))), ((WIDER, commit(2)),)
    whole, rounds = rounds_in(folder / "whole", family)
    rounds.step(*first)
    rounds.later(minutes=5)
    rounds.step(*second)
    count = len(whole.statements)
    assert count == {"redshift": 11, "databricks": 8}[family]
    for last in range(count):
        schema, one = rounds_in(folder / str(last), family)

        def dies(sql, schema=schema, last=last):
            if not sql.startswith("SELECT") and len(schema.statements) == last:
                raise Killed

        schema.before = dies
        for sources in (first, second):
            try:
                one.step(*sources)
            except Killed:
                schema.before = lambda _: None
                one.again()
                one.step(*sources)
            one.later(minutes=5)
        assert schema.views == whole.views, last


def test_a_planted_view_without_a_name_of_its_own_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(redshift, "_unfinished", lambda thing: f"new_{thing.name}")
    with pytest.raises(AssertionError):
        assert_kills_are_repaired(tmp_path, "redshift")


def test_what_a_kill_left_of_a_dataset_that_is_gone_is_dropped(tmp_path):
    schema, rounds = rounds_in(tmp_path, "redshift")
    left = f"polynya_{ORIGIN.digest}_0123456789abcdef"
    other = f"polynya_{MirrorOrigin('shop', 'dev', 'sales_snowflake').digest}_0123456789abcdef"
    schema.views = {left: ["SELECT 1", ""], other: ["SELECT 1", ""]}
    rounds.step((USERS, commit(1)))
    assert set(schema.views) == {"users", other}


@FAMILIES
def test_what_others_made_is_left_alone(tmp_path, family):
    schema, rounds = rounds_in(tmp_path, family)
    schema.views["users"] = ["SELECT 1", "of finance"]
    # A copy of a view's comment on a table does not make the table the mirror's.
    copied = Mark(ORIGIN, "shop.gone", "current", "x").text
    schema.tables["budget"] = copied
    result = rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
    assert result.error.code == "POLYNYA-MIR-004"
    assert schema.views["users"] == ["SELECT 1", "of finance"]
    assert "orders" in schema.views
    assert schema.tables == {"budget": copied}


@FAMILIES
def test_names_that_fold_together_are_refused(family):
    source = storage("users", "Users")
    both = [shown(source, "users"), shown(source, "Users")]
    assert set(plan(task_in(family, source), ORIGIN, both, []).refused) == {
        "shop.users", "shop.Users",
    }  # fmt: skip
    folding = shown(SOURCE, "users", name="string", NAME="string")
    made = plan(task_in(family), ORIGIN, [folding], [])
    assert made.refused["shop.users"].code == "POLYNYA-MIR-005"


def test_redshift_leaves_nested_columns_out_and_refuses_them_in_format_3():
    nested = shown(SOURCE, "users", name="string", tags="array<string>")
    made = plan(task_in("redshift"), ORIGIN, [nested], [])
    assert "tags" in made.notes[0]
    third = shown(SOURCE, "users", format_version=3, name="string", tags="array<string>")
    refused = plan(task_in("redshift"), ORIGIN, [third], []).refused["shop.users"]
    assert refused.code == "POLYNYA-MIR-006"
    assert "tags" in refused.message
    assert plan(task_in("databricks"), ORIGIN, [third], []).notes


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("u" * 128, {}),
        # Its table in Glue is longer than the view.
        ("u" * 120, {}),
        ("users", {"\u00fc" * 64: "string"}),
    ],
)
def test_redshift_would_cut_a_name_so_its_dataset_is_refused(name, columns):
    source = storage(name, "orders")
    made = plan(task_in("redshift", source), ORIGIN, [shown(source, name, **columns), ORDERS], [])
    (refused,) = made.refused.values()
    assert refused.code == "POLYNYA-MIR-006"
    assert "127 bytes" in refused.message
    assert [one.name for one in made.statements] == ["orders"]
    kept = plan(task_in("databricks", source), ORIGIN, [shown(source, name, **columns)], [])
    assert kept.refused == {}


def test_redshift_keeps_a_name_of_its_longest_length():
    source = storage("u" * 118)
    made = plan(task_in("redshift", source), ORIGIN, [shown(source, "u" * 118)], [])
    assert made.refused == {}


@settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(name=HOSTILE, column=HOSTILE)
@example(name='a"; DROP TABLE x; --', column='b"')
@example(name="a`; DROP TABLE x; --\\", column="b`\\'")
def test_hostile_names_stay_names(name, column):
    for family in PLACES:
        assert_stay_names(family, name.lower(), column)


def assert_stay_names(family, name, column):
    source = storage("users")
    keys = {"redshift": ("schema", "external_schema"), "databricks": ("schema", "foreign_catalog")}
    task = task_in(family, source, place=dict.fromkeys(keys[family], name))
    made = plan(task, ORIGIN, [shown(source, "users", **{column: "string"})], [])
    for text in made.statements[-1].texts:
        (tree,) = sqlglot.parse(text, read=family)
        assert tree.this.db == name
    view = sqlglot.parse_one(made.statements[-1].texts[0], read=family)
    assert column in {found.name for found in view.find_all(exp.Column)}
    assert name in {one for found in view.find_all(exp.Table) for one in (found.db, found.catalog)}
    steps = setup_steps(task, TARGET, SetupNames(user=name, role_arn=name, credential=name))
    ends = sqlglot.tokenize(as_sql(steps), read=family)
    assert sum(token.token_type == TokenType.SEMICOLON for token in ends) == len(steps)


@pytest.mark.parametrize("module", [redshift, databricks])
def test_a_planted_name_without_quotes_is_seen(monkeypatch, module):
    monkeypatch.setattr(module, "_quote", lambda *names: ".".join(names))
    family = module.__name__.rpartition(".")[2]
    with pytest.raises((AssertionError, SqlglotError, ValueError, AttributeError)):
        assert_stay_names(family, 'a`"; drop table x; --', "b")


def test_setup_gives_each_role_what_it_needs_and_no_more():
    redshift_sql = as_sql(setup_steps(task_in("redshift"), TARGET, SetupNames()))
    assert "FROM DATA CATALOG DATABASE 'shop_internal' IAM_ROLE default;" in redshift_sql
    assert 'CREATE SCHEMA IF NOT EXISTS "shop" AUTHORIZATION "IAMR:ROLE";' in redshift_sql
    databricks_sql = as_sql(setup_steps(task_in("databricks"), TARGET, SetupNames(account="1")))
    assert "TYPE glue OPTIONS (aws_region 'eu-central-1', aws_account_id '1'" in databricks_sql
    assert "GRANT SELECT ON SCHEMA `glue`.`shop_internal` TO `APPLICATION_ID`;" in databricks_sql
    for script in (redshift_sql, databricks_sql):
        grants = [line for line in script.splitlines() if line.startswith("GRANT")]
        assert not [
            line for line in grants if "INSERT" in line or "MODIFY" in line or "ALL " in line
        ]


def test_setup_of_redshift_finds_the_glue_catalog_of_another_account():
    elsewhere = replace(TARGET, catalog_id="210987654321")
    first, *_ = setup_steps(task_in("redshift"), elsewhere, SetupNames())
    assert first.sql.endswith(" IAM_ROLE default CATALOG_ID '210987654321'")


def test_terraform_for_redshift_names_the_workgroup():
    task = task_in("redshift", place={"database": "${x}"})
    script = as_terraform(task, setup_steps(task, TARGET, SetupNames()))
    assert 'resource "aws_redshiftdata_statement" "mirror_0"' in script
    assert 'workgroup_name = "lake"' in script
    assert "$${x}" in script


@FAMILIES
def test_a_plan_needs_no_connection(family):
    assert statements_of(task_in(family)).kinds == {"VIEW"}
    assert plan(task_in(family), ORIGIN, [USERS, ORDERS], []).statements
