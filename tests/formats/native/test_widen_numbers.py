"""A column of whole numbers that gets a fraction, under `widen_numbers`."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from polynya.formats.batch import DatasetBatch
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.fields import MONEY
from polynya.model.config.settings import DatasetSettings
from polynya.model.types import BIGINT, DOUBLE, DataType
from tests.formats.helpers import a_dataset, json_lines, read, reread, types

KNOWN = {"id": "bigint", "n": "bigint", "price": "bigint"}


def evolving(widen: object, **more: object) -> SchemaEvolution:
    return SchemaEvolution.model_validate({"widen_numbers": widen, **more})


def priced(*prices: object, widen: object = "decimal", **settings: object) -> DatasetBatch:
    """A batch of JSON records with a price each, for a column of whole numbers."""
    lines = [{"id": number, "n": number, "price": price} for number, price in enumerate(prices)]
    settings = {"schema_evolution": evolving(widen), **settings}
    return read(json_lines(*lines), a_dataset(**settings), types(**KNOWN))


@pytest.mark.parametrize(("widen", "kind"), [("decimal", MONEY), ("double", DOUBLE)])
def test_a_fraction_widens_the_column(widen: str, kind: DataType) -> None:
    batch = priced(10, 10.5, widen=widen)

    assert batch.schema["price"] == kind
    assert [float(one) for one in batch.rows.column("price").to_pylist()] == [10.0, 10.5]
    (change,) = batch.changes
    assert (change.kind, change.column, change.policy) == ("widen_type", "price", "apply")
    assert (change.old, change.new) == ("bigint", str(kind))


@pytest.mark.parametrize("widen", [None, "never"])
def test_without_it_the_record_is_refused(widen: object) -> None:
    batch = priced(10, 10.5, widen=widen)

    assert batch.schema["price"] == BIGINT
    (rejected,) = batch.rejected
    assert "widen_numbers: decimal" in rejected.error


def test_what_fits_stays_as_it_is() -> None:
    assert priced(10, 11, None, 12.0).schema["price"] == BIGINT
    assert not priced(10, 11).changes


def test_only_what_no_type_holds_is_refused() -> None:
    batch = priced(10.5, "much", 10**20)

    assert batch.schema["price"] == MONEY
    assert ["'much'" in one.error for one in batch.rejected] == [True]


def test_a_type_that_loses_other_values_is_not_taken() -> None:
    batch = priced(10.5, 2**53 + 1, widen="double")

    assert batch.schema["price"] == BIGINT
    assert len(batch.rejected) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"price": "bigint"}},
        {"sequence_by": ("n", "price")},
        {"timestamp": "price"},
        {"except_columns": ("price",)},
    ],
)
def test_columns_whose_type_is_not_for_the_numbers_to_say(settings: dict[str, object]) -> None:
    assert priced(10.5, **settings).schema["price"] == BIGINT


def test_the_policy_for_wider_types_decides() -> None:
    kept = priced(10.5, schema_evolution=evolving("decimal", widen_type="ignore"))
    assert kept.schema["price"] == BIGINT
    assert len(kept.rejected) == 1

    waiting = priced(10.5, schema_evolution=evolving("decimal", widen_type="suspend"))
    assert [one.policy for one in waiting.changes] == ["suspend"]


def test_texts_of_a_csv_file_widen_too() -> None:
    dataset = a_dataset("csv", schema_evolution=evolving("decimal"))

    batch = read(b"id,n,price\n1,1,10\n2,2,10.50\n", dataset, types(**KNOWN))

    assert batch.schema["price"] == MONEY
    assert not batch.rejected


def test_a_record_that_is_read_again_widens_the_column() -> None:
    dataset = a_dataset(schema_evolution=evolving("double"))

    batch = reread(b'{"id": 1, "n": 1, "price": 10.5}', dataset, types(**KNOWN))

    assert batch.schema["price"] == DOUBLE


def test_a_csv_fraction_for_whole_numbers_names_the_ways_out() -> None:
    batch = read(b"id,n,price\n1,1,10.50\n", a_dataset("csv"), types(**KNOWN))

    (rejected,) = batch.rejected
    assert "polynya quarantine replay" in rejected.error


def test_a_dataset_may_keep_whole_numbers_whole() -> None:
    own, of_all = evolving("never"), evolving("decimal(18,4)", drop_column="propagate")

    both = own.over(of_all)

    assert both.wide_numbers is None
    assert both.drop_column == "apply"
    assert str(SchemaEvolution().over(of_all).wide_numbers) == "decimal(18,4)"


@pytest.mark.parametrize("text", ["bigint", "always", "string", 7, True, ["decimal"]])
def test_what_numbers_cannot_widen_to(text: object) -> None:
    with pytest.raises(ValidationError):
        DatasetSettings.model_validate({"schema_evolution": {"widen_numbers": text}})
