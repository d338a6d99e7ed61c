"""Rules become the mapping of a dataset: what each changes, in which order, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import ConfigError
from polynya.model.types import BIGINT, DOUBLE, STRING, DataType, parse_type
from polynya.transform.rules import columns_named, resolve, with_rules

HASH = {"hash": {"key": {"env": "KEY"}}}
TO_A = {"when": {"column": "email"}, "rename": "a"}
A_TO_B = {"when": {"column": "a"}, "rename": "b"}
REDACTED = {"when": {"column": "e*"}, "mask": "redact"}
HASHED = {"when": {"column": "*l"}, "mask": HASH}
DOMAIN = {"add": {"domain": "split_part(email, '@', 2)"}}
COLUMNS: dict[str, DataType] = {
    "id": BIGINT, "email": STRING, "name": STRING, "score": DOUBLE,
    "user": parse_type("struct<city: string, mail: string>"),
}  # fmt: skip


def dataset(*rules: dict[str, Any], **own: Any) -> ResolvedDataset:
    """A dataset of JSON files; the rules stand in lines 1, 2 … of its file."""
    settings = {"name": "users", "mode": "append_only", **own}
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1", "kind": "storage", "name": "shop", "schema": "crm",
            "landing": {"path": "in", "format": "json"}, "datasets": [settings], "rules": rules,
        }
    )  # fmt: skip
    placed = (rule.at(f"shop.yml:{line}:5") for line, rule in enumerate(task.rules, start=1))
    task = task.model_copy(update={"rules": tuple(placed)})
    return resolved(task, task.datasets[0])


def columns(*rules: dict[str, Any], **own: Any) -> dict[str, str]:
    """The columns that rules list, with their expressions."""
    mapping = with_rules(dataset(*rules, **own), COLUMNS).mapping
    return {column.name: column.expression for column in mapping.columns}


def test_names_are_changed_in_the_order_of_the_rules() -> None:
    assert columns(
        {"when": {"column": "e*"}, "rename": "mail"},
        {"when": {"except": "id"}, "prefix": "c_"},
        {"when": {"column": "c_n%"}, "case": "upper"},
        {"when": {"type": "double"}, "suffix": "_pct"},
    ) == {
        "c_mail": "`email`", "C_NAME": "`name`", "c_score_pct": "`score`", "c_user": "`user`",
    }  # fmt: skip


def test_a_rule_takes_only_what_fits_all_its_patterns() -> None:
    assert columns({"when": {"schema": "hr"}, "prefix": "x_"}) == {}
    assert columns({"when": {"dataset": ["orders", "pay*"]}, "prefix": "x_"}) == {}
    assert columns({"when": {"dataset": "us*", "type": "big*"}, "prefix": "x_"}) == {"x_id": "`id`"}


def test_columns_are_added_where_the_source_has_what_they_read() -> None:
    rules = {"add": {"initial": "left(name, 1)", "age": "year(born)"}}
    found = resolve(dataset(rules), COLUMNS)
    assert [column.name for column in found.dataset.mapping.columns] == ["initial"]
    assert found.effects[1].why == "not added so far: the source has no `born`"
    later = resolve(dataset(rules), {**COLUMNS, "born": STRING})
    assert [column.name for column in later.dataset.mapping.columns] == ["initial", "age"]


def test_types_and_filters_join_those_of_the_dataset() -> None:
    found = with_rules(
        dataset(
            {"when": {"column": "id"}, "type": "string"},
            {"filter": "score > 0"},
            {"filter": "name <> 'x'"},
            where="id > 1",
        ),
        COLUMNS,
    )
    assert found.mapping.where == "(id > 1) AND (score > 0) AND (name <> 'x')"
    assert found.events.columns["id"] == STRING


def test_a_dropped_column_is_gone_also_when_the_list_renames_it() -> None:
    found = with_rules(
        dataset(
            {"when": {"column": ["mail", "user_city"]}, "drop": True},
            columns=[{"name": "mail", "expression": "email"}],
            nested="expand",
        ),
        COLUMNS,
    )
    assert found.mapping.columns == ()
    assert found.mapping.left_out == {("email",), ("user", "city")}


def test_effects_say_which_rule_did_what_and_why() -> None:
    found = resolve(
        dataset(
            {"when": {"column": "email"}, "mask": HASH}, {"when": {"column": "x"}, "drop": True}
        ),
        COLUMNS,
    )
    told = [(one.place, one.does, one.column, one.why) for one in found.effects]
    assert told == [
        ("shop.yml:1:5", "mask: hash", "email", "`email` string fits `when`"),
        ("shop.yml:2:5", "drop", None, "no column fits so far"),
    ]


@pytest.mark.parametrize(
    ("rules", "code", "says"),
    [
        (
            [TO_A, A_TO_B],
            "POLYNYA-CFG-075",
            "shop.yml:1:5 says `rename: a`, and shop.yml:2:5 says `rename: b`",
        ),
        (
            [REDACTED, HASHED],
            "POLYNYA-CFG-075",
            "shop.yml:1:5 says `mask: redact`, and shop.yml:2:5 says `mask: hash`",
        ),
        (
            [{"when": {"column": "email"}, "rename": "NAME"}],
            "POLYNYA-CFG-075",
            "two columns get the name, from shop.yml:1:5 and from the dataset itself",
        ),
        ([{"add": {"id": "score"}}], "POLYNYA-CFG-075", "two columns get the name"),
        ([{"when": {"column": "score"}, "mask": HASH}], "POLYNYA-CFG-076", "does not take double"),
        (
            [{"when": {"column": "id"}, "mask": {"truncate": 2}}],
            "POLYNYA-CFG-076",
            "`truncate` does not take bigint",
        ),
        (
            [DOMAIN, HASHED],
            "POLYNYA-CFG-077",
            "column `domain` reads `email`, which shop.yml:2:5 masks",
        ),
    ],
)  # fmt: skip
def test_what_rules_may_not_do_is_said_with_the_places(
    rules: list[dict[str, Any]], code: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(dataset(*rules), COLUMNS)
    assert caught.value.code == code
    assert says in caught.value.message


def test_a_struct_that_holds_a_masked_field_is_refused() -> None:
    mail = {"name": "mail", "expression": "user.mail"}
    rule = {"when": {"column": "mail"}, "mask": "redact"}
    with pytest.raises(ConfigError, match=r"column `user` reads `user\.mail`"):
        resolve(dataset(rule, columns=[mail]), COLUMNS)
    expanded = resolve(dataset(rule, columns=[mail], nested="expand"), COLUMNS)
    assert list(expanded.masks) == ["mail"]


def test_a_key_is_hashed_or_not_masked() -> None:
    rule = {"when": {"column": "id"}, "mask": "redact"}
    keyed = {"mode": "merge", "keys": ["id"], "sequence_by": ["score"]}
    with pytest.raises(ConfigError, match="it is a key"):
        resolve(dataset(rule, **keyed), COLUMNS)
    assert resolve(dataset({**rule, "mask": HASH}, **keyed), COLUMNS).masks
    order = {"when": {"column": "score"}, "mask": "redact"}
    with pytest.raises(ConfigError, match="the order or the time of events"):
        resolve(dataset(order, **keyed), COLUMNS)


@pytest.mark.parametrize(
    ("rule", "key", "read"),
    [
        ({"prefix": "c_"}, "c_id", ("id",)),
        ({"when": {"column": "id"}, "rename": "user_id"}, "user_id", ("id",)),
        # Whether the source has `id` or `ID` is not known before a record.
        ({"case": "lower"}, "id", ()),
    ],
)
def test_a_reader_knows_its_keys_before_any_record(
    rule: dict[str, Any], key: str, read: tuple[str, ...]
) -> None:
    keyed = dataset(rule, mode="merge", keys=[key], sequence_by=["at"])
    assert of_source(with_rules(keyed, {})).events.keys == read
    assert of_source(with_rules(keyed, COLUMNS)).events.keys == ("id",)


def test_conflicts_are_found_before_any_record_where_rules_name_the_column() -> None:
    twice = dataset(
        {"when": {"column": "email"}, "mask": "redact"}, {"when": {"column": "e%"}, "mask": HASH}
    )
    with pytest.raises(ConfigError, match=r"shop\.yml:1:5 says"):
        resolve(twice, columns_named(twice))
