"""Decisions about schema changes, from facts alone."""

from __future__ import annotations

import pytest

from polynya.formats.values.evolve import variants_of, with_variants
from polynya.model.config.evolution import (
    SchemaChange,
    SchemaEvolution,
    blocking,
    policy_in_words,
    schema_changes,
)
from polynya.model.types import parse_type


def types(**names: str) -> dict:
    return {name: parse_type(text) for name, text in names.items()}


def changes(before: str, declared: str, known: dict, now: dict, **policies: str) -> list:
    found = schema_changes(
        before.split(),
        declared.split(),
        known=known,
        now=now,
        keys=["id"],
        policies=SchemaEvolution(**policies),
        changes=[SchemaChange("add_column", name, "apply") for name in now if name not in known],
    )
    return [(change.kind, change.column, change.policy) for change in found]


KNOWN = types(id="bigint", name="string", size="bigint")


def test_a_column_that_went_is_kept_by_default() -> None:
    assert changes("id name size", "id name", KNOWN, KNOWN) == [("drop_column", "size", "ignore")]
    assert changes("id name size", "id name size", KNOWN, KNOWN) == []


def test_a_key_that_went_is_never_ignored() -> None:
    assert changes("id name", "name", KNOWN, KNOWN, drop_column="apply") == [
        ("drop_column", "id", "suspend")
    ]


def test_one_that_went_and_one_of_its_type_that_came_may_be_the_same() -> None:
    now = {**KNOWN, **types(label="string")}

    assert changes("id name size", "id label size", KNOWN, now) == [
        ("rename_column", "label", "suspend")
    ]
    assert changes("id name size", "id label size", KNOWN, now, rename_column="ignore") == [
        ("add_column", "label", "apply"), ("drop_column", "name", "ignore"),
    ]  # fmt: skip


def test_another_type_or_more_than_one_is_no_rename() -> None:
    now = {**KNOWN, **types(label="double")}
    two = {**KNOWN, **types(label="string", more="string")}

    assert [kind for kind, *_ in changes("id name size", "id label size", KNOWN, now)] == [
        "add_column", "drop_column",
    ]  # fmt: skip
    found = changes("id name size", "id label more size", KNOWN, two)
    assert [kind for kind, *_ in found] == ["add_column", "add_column", "drop_column"]


def test_a_column_that_went_before_is_no_part_of_a_rename() -> None:
    now = {**KNOWN, **types(label="string")}

    assert changes("id size", "id size label", KNOWN, now) == [("add_column", "label", "apply")]


def test_stop_wins_over_suspend() -> None:
    found = [SchemaChange("add_column", name, policy) for name, policy in
             (("a", "apply"), ("b", "suspend"), ("c", "stop"), ("d", "stop"))]  # fmt: skip

    assert blocking(found) == found[2]
    assert blocking(found[:2]) == found[1]
    assert blocking(found[:1]) is None


def test_policies_of_a_dataset_win_one_by_one_and_what_was_accepted_wins_over_both() -> None:
    defaults = SchemaEvolution(add_column="stop", drop_column="apply")

    policies = SchemaEvolution(add_column="ignore").over(defaults)

    assert [policies.policy(kind) for kind in ("add_column", "drop_column", "widen_type")] == [
        "ignore", "apply", "apply",
    ]  # fmt: skip
    assert policies.accepting({"rename_column": "apply"}).policy("rename_column") == "apply"
    assert policies.accepting({"asked": "apply"}) == policies


def test_a_variant_was_not_sent_when_its_column_was_not() -> None:
    known = types(size="bigint", size_string="string", size_double="string", own_string="string")

    variants = variants_of(known)

    assert variants == {"size": ["size_string"]}
    assert with_variants(["size"], variants, sent=()) == ["size", "size_string"]
    assert with_variants(["size"], variants, sent=("size_string",)) == ["size"]


@pytest.mark.parametrize(
    ("written", "means"),
    [("propagate", "apply"), ("apply", "apply"), ("ignore", "ignore"), ("stop", "stop")],
)
def test_a_policy_may_be_written_with_its_new_or_its_former_name(written, means):
    policies = SchemaEvolution.model_validate({"add_column": written})

    assert policies.policy("add_column") == means
    assert SchemaEvolution.model_validate(policies.model_dump()) == policies
    assert policy_in_words(means) == {"apply": "propagate"}.get(means, means)


def placed(**places: str) -> SchemaEvolution:
    return SchemaEvolution.model_validate({"add_column": places})


def of_columns(policies: SchemaEvolution) -> tuple[str, str]:
    """What is done with a new column, and with a new field of a struct."""
    return policies.policy("add_column"), policies.policy("add_column", nested=True)


def test_new_columns_and_new_fields_of_structs_may_have_policies_of_their_own() -> None:
    assert of_columns(placed(root="ignore", struct="propagate")) == ("ignore", "apply")
    assert of_columns(placed(struct="stop")) == ("apply", "stop")
    assert of_columns(SchemaEvolution(add_column="suspend")) == ("suspend", "suspend")
    assert of_columns(SchemaEvolution()) == ("apply", "apply")


def test_a_dataset_inherits_the_place_that_it_does_not_name() -> None:
    own, word = placed(struct="stop"), SchemaEvolution(add_column="ignore")

    assert of_columns(own.over(word)) == ("ignore", "stop")
    assert of_columns(own.over(placed(root="suspend", struct="ignore"))) == ("suspend", "stop")
    assert of_columns(word.over(own)) == ("ignore", "ignore")
    assert of_columns(SchemaEvolution().over(own)) == ("apply", "stop")


def test_what_was_accepted_takes_the_place_of_what_suspended_alone() -> None:
    accepted = {"add_column": "apply"}

    assert of_columns(placed(root="ignore", struct="suspend").accepting(accepted)) == (
        "ignore", "apply",
    )  # fmt: skip
    assert of_columns(SchemaEvolution(add_column="suspend").accepting(accepted)) == (
        "apply", "apply",
    )  # fmt: skip


def test_policies_by_place_are_remembered_as_they_were_written() -> None:
    policies = placed(root="propagate")

    assert policies.model_dump(exclude_none=True) == {"add_column": {"root": "apply"}}
    assert SchemaEvolution.model_validate(policies.model_dump()) == policies
