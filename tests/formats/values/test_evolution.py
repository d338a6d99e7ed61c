"""Columns that appear, widen or change their type, under each policy, as landing sees them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.batch import DatasetBatch
from polynya.model.config.evolution import SchemaEvolution
from tests.formats.helpers import a_dataset, column, json_lines, read, rules, schema, types

KNOWN = types(id="bigint", n="bigint", size="bigint")


def parquet(**columns: Any) -> bytes:
    """A Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def evolved(content: Any, known: dict[str, Any] | None = None, **policies: Any) -> DatasetBatch:
    """Records read into a dataset that has columns already; dictionaries are JSON."""
    kind = "parquet" if isinstance(content, bytes) else "json"
    dataset = a_dataset(kind, schema_evolution=SchemaEvolution(**policies))
    data = content if isinstance(content, bytes) else json_lines(*content)
    return read(data, dataset, known or KNOWN)


def told(batch: DatasetBatch) -> list[tuple[str, str, str]]:
    """Kind, column and policy of each change."""
    return [(change.kind, change.column, change.policy) for change in batch.changes]


def test_the_first_batch_changes_nothing() -> None:
    batch = read(json_lines({"id": 1, "n": 1, "size": 1}), a_dataset())

    assert told(batch) == []


def test_a_new_column_is_added_or_left_out() -> None:
    records = [{"id": 1, "n": 1, "town": "Rome"}]

    taken, ignored = evolved(records), evolved(records, add_column="ignore")

    assert told(taken) == [("add_column", "town", "apply")]
    assert schema(taken)["town"] == "string"
    assert told(ignored) == [("add_column", "town", "ignore")]
    assert "town" not in schema(ignored)
    assert ignored.rows.num_rows == 1


def test_a_new_nested_field_is_added_or_left_out() -> None:
    known = types(id="bigint", n="bigint", home="struct<town:string>", tags="array<struct<a:int>>")
    records = [{"id": 1, "n": 1, "home": {"town": "Rome", "zip": 5}, "tags": [{"a": 1, "b": 2}]}]

    taken, ignored = evolved(records, known), evolved(records, known, add_column="ignore")

    assert told(taken) == [
        ("add_column", "home.zip", "apply"), ("add_column", "tags.element.b", "apply"),
    ]  # fmt: skip
    assert schema(ignored) == {name: str(kind) for name, kind in known.items()}
    assert column(ignored, "home") == [{"town": "Rome"}]
    assert column(ignored, "tags") == [[{"a": 1}]]


POLICIES = st.sampled_from(["apply", "ignore", "suspend", "stop"])
NESTED = types(id="bigint", n="bigint", home="struct<town:string,at:struct<x:int>>",
               tags="array<struct<a:int>>", codes="map<string,struct<a:int>>")  # fmt: skip
FIELDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.just(1), min_size=1)
RECORDS = st.fixed_dictionaries(
    {"id": st.just(1), "n": st.just(1)},
    optional={
        "home": st.fixed_dictionaries(
            {"town": st.just("Rome")}, optional={"zip": st.just(5), "at": FIELDS}
        ),
        "tags": st.lists(FIELDS, max_size=2),
        "codes": st.dictionaries(st.sampled_from(["k", "l"]), FIELDS, max_size=2),
        "size": st.just(1),
        "more": FIELDS,
    },
)


@given(st.lists(RECORDS, min_size=1, max_size=3), POLICIES, POLICIES)
def test_columns_and_fields_of_structs_follow_the_policy_of_their_place(
    records: list[dict[str, Any]], root: str, struct: str
) -> None:
    batch = evolved(records, NESTED, add_column={"root": root, "struct": struct})

    new = [change for change in batch.changes if change.kind == "add_column"]
    assert all(change.policy == (struct if "." in change.column else root) for change in new)
    # Both places were seen as if one word had said it, whatever the other one does.
    everything = evolved(records, NESTED).changes
    assert [change.column for change in new] == [
        change.column for change in everything if change.kind == "add_column"
    ]
    # What is ignored is left out of the types, and what is not is in them.
    taken, kept = schema(batch), {name: str(kind) for name, kind in NESTED.items()}
    whole = schema(evolved(records, NESTED))
    for name, kind in whole.items():
        if name not in NESTED:
            assert taken.get(name) == (None if root == "ignore" else kind)
        else:
            assert taken[name] == (kept[name] if struct == "ignore" else kind)
    assert rules(batch) == []
    if root == struct:
        one_word = evolved(records, NESTED, add_column=root)
        assert (batch.changes, batch.rows) == (one_word.changes, one_word.rows)


def test_a_new_struct_is_a_column_of_the_root_and_its_fields_come_with_it() -> None:
    records = [{"id": 1, "n": 1, "home": {"town": "Rome"}}]

    batch = evolved(records, add_column={"root": "propagate", "struct": "stop"})

    assert told(batch) == [("add_column", "home", "apply")]
    assert schema(batch)["home"] == "struct<town:string>"


def test_a_type_widens_or_keeps_out_what_does_not_fit() -> None:
    known = types(id="bigint", n="bigint", size="int")
    records = [{"id": 1, "n": 1, "size": 7}, {"id": 2, "n": 2, "size": 2**40}]

    taken, ignored = evolved(records, known), evolved(records, known, widen_type="ignore")

    assert told(taken) == [("widen_type", "size", "apply")]
    assert schema(taken)["size"] == "bigint"
    assert schema(ignored)["size"] == "int"
    assert column(ignored, "size") == [7]
    assert rules(ignored) == [(1, "type_mismatch")]


def test_text_does_not_become_a_number_because_widening_is_ignored() -> None:
    known = types(id="bigint", n="bigint", size="int")
    records = [{"id": 1, "n": 1, "size": "7"}, {"id": 2, "n": 2, "size": 2**40}]

    assert rules(evolved(records, known, widen_type="ignore")) == [
        (0, "type_mismatch"), (1, "type_mismatch"),
    ]  # fmt: skip


def test_a_bad_value_of_a_source_without_types_is_a_bad_record() -> None:
    records = [{"id": 1, "n": 1, "size": "large"}, {"id": 2, "n": 2, "size": 8}]

    batch = evolved(records)

    assert told(batch) == []
    assert rules(batch) == [(0, "type_mismatch")]


@pytest.mark.parametrize("policy", ["suspend", "stop"])
def test_a_source_without_types_can_be_held_to_them(policy: str) -> None:
    batch = evolved([{"id": 1, "n": 1, "size": "large"}], incompatible_type=policy)

    assert told(batch) == [("incompatible_type", "size", policy)]
    assert str(batch.changes[0]) == "column size was bigint and now is string"


def test_values_of_another_type_get_a_column_of_their_own() -> None:
    records = [
        {"id": 1, "n": 1, "size": "large"},
        {"id": 2, "n": 2, "size": 8},
        {"id": 3, "n": 3, "size": [1]},
        {"id": 4, "n": 4, "size": None},
        {"id": 5, "n": 5, "size": {"a": 1}},
    ]

    batch = evolved(records, incompatible_type="apply")

    assert told(batch) == [("incompatible_type", "size", "apply")]
    assert rules(batch) == []
    assert column(batch, "size") == [None, 8, None, None, None]
    assert column(batch, "size_string") == ["large", None, None, None, None]
    assert column(batch, "size_array") == [None, None, [1], None, None]
    assert column(batch, "size_struct") == [None, None, None, None, {"a": 1}]


@pytest.mark.parametrize("value", [[[]], [["x"]], [[None]]])
def test_a_list_that_does_not_fit_is_in_its_own_column_alone(value: list[Any]) -> None:
    known = types(id="bigint", n="bigint", a="array<string>")

    batch = evolved([{"id": 1, "n": 1, "a": value}, {"id": 2, "n": 2, "a": ["s"]}], known,
                    incompatible_type="apply")  # fmt: skip

    assert rules(batch) == []
    assert column(batch, "a") == [None, ["s"]]
    assert column(batch, "a_array") == [value, None]


def test_a_variant_goes_on_in_later_batches() -> None:
    known = {**KNOWN, **types(size_string="string")}

    batch = evolved(
        [{"id": 1, "n": 1, "size": "huge"}, {"id": 2, "n": 2, "size": 9}],
        known,
        incompatible_type="apply",
    )

    assert column(batch, "size") == [None, 9]
    assert column(batch, "size_string") == ["huge", None]


def test_a_declared_type_that_does_not_fit_waits_for_a_decision() -> None:
    batch = evolved(parquet(id=[1], n=[1], size=["7"]))

    assert told(batch) == [("incompatible_type", "size", "suspend")]


def test_later_values_of_a_declared_type_stand_in_both_columns_where_they_fit() -> None:
    content = parquet(id=[1, 2, 3], n=[1, 2, 3], size=["7", "large", None])

    batch = evolved(content, incompatible_type="apply")

    assert schema(batch)["size"] == "bigint"
    assert column(batch, "size") == [7, None, None]
    assert column(batch, "size_string") == ["7", "large", None]
    assert rules(batch) == []


def test_a_type_that_changes_between_two_files_of_a_batch_is_seen() -> None:
    dataset = a_dataset("parquet", schema_evolution=SchemaEvolution(incompatible_type="apply"))
    files = {
        "1": parquet(id=[1], n=[1], size=pa.array([5])),
        "2": parquet(id=[2], n=[2], size=["large"]),
        "3": parquet(id=[3], n=[3], size=pa.array([6])),
    }

    batch = read(files, dataset, KNOWN)

    assert told(batch) == [("incompatible_type", "size", "apply")]
    assert column(batch, "size") == [5, None, 6]
    assert column(batch, "size_string") == [None, "large", None]


def test_a_key_keeps_its_type() -> None:
    batch = evolved(parquet(id=["a"], n=[1], size=[1]), incompatible_type="apply")

    assert told(batch) == [("incompatible_type", "id", "suspend")]


def test_a_variant_never_takes_the_place_of_a_column_of_the_source() -> None:
    content = parquet(id=[1], n=[1], size=["large"], size_string=["own"])

    batch = evolved(content, incompatible_type="apply")

    assert ("incompatible_type", "size", "suspend") in told(batch)


def test_a_type_of_the_configuration_never_changes() -> None:
    dataset = a_dataset(
        columns={"size": "bigint"}, schema_evolution=SchemaEvolution(incompatible_type="apply")
    )

    batch = read(json_lines({"id": 1, "n": 1, "size": "large"}), dataset, KNOWN)

    assert rules(batch) == [(0, "bad_value")]
    assert told(batch) == []


def test_columns_of_the_newest_file_are_what_the_source_declares() -> None:
    batch = evolved(parquet(id=[1], n=[1]))

    assert batch.declared == ("id", "n")
    assert evolved([{"id": 1, "n": 1}]).declared is None
