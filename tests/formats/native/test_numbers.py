"""The type that numbers settle a column as, and the ways out of one that is too narrow."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from polynya.formats.batch import DatasetBatch
from polynya.model.config.fields import MONEY
from polynya.model.config.settings import DatasetSettings
from polynya.model.types import BIGINT, DOUBLE, Decimal
from tests.formats.helpers import a_dataset, json_lines, read, types


def priced(*prices: object, **settings: object) -> DatasetBatch:
    """A batch of JSON records with a price each."""
    lines = [{"id": number, "n": number, "price": price} for number, price in enumerate(prices)]
    known = settings.pop("known", None)
    return read(json_lines(*lines), a_dataset(**settings), known)


def test_whole_numbers_may_settle_a_column_that_has_room_for_money() -> None:
    batch = priced(10, 20, numbers=Decimal(18, 4))

    assert batch.schema["price"] == Decimal(18, 4)
    assert [str(one) for one in batch.rows.column("price").to_pylist()] == ["10.0000", "20.0000"]
    # A key is the number that it is.
    assert batch.schema["id"] == batch.schema["n"] == BIGINT


@pytest.mark.parametrize("prices", [(10,), (10.5,), (None, 10), (10, 10.25)])
def test_every_column_of_numbers_has_the_type_of_the_settings(prices: tuple[object, ...]) -> None:
    assert priced(*prices, numbers=DOUBLE).schema["price"] == DOUBLE
    assert priced(*prices, numbers=MONEY).schema["price"] == MONEY


@pytest.mark.parametrize("price", ["10.50", True, [1], {"eur": 1}])
def test_what_is_no_number_is_as_before(price: object) -> None:
    assert priced(price, numbers=MONEY).schema == priced(price).schema


def test_texts_of_a_csv_file_that_are_all_numbers_are_numbers() -> None:
    dataset = a_dataset("csv", numbers=MONEY)

    batch = read(b"id,n,price,name,zip\n1,1,10.50,Ann,0041\n2,2,7,Ben,8000\n", dataset)

    assert batch.schema["price"] == MONEY
    assert str(batch.rows.column("price")[0].as_py()).startswith("10.50")
    assert [str(batch.schema[name]) for name in ("name", "zip")] == ["string", "string"]


def test_a_column_that_is_there_keeps_its_type() -> None:
    batch = priced(11, numbers=MONEY, known=types(id="bigint", n="bigint", price="bigint"))

    assert batch.schema["price"] == BIGINT


def test_a_fraction_for_whole_numbers_is_told_with_the_ways_out() -> None:
    batch = priced(10.5, known=types(id="bigint", n="bigint", price="bigint"))

    (rejected,) = batch.rejected
    assert rejected.rule == "type_mismatch"
    assert rejected.error.startswith("column price: 10.5 does not fit bigint: the first numbers")
    assert "incompatible_type: propagate" in rejected.error
    assert "price_double" in rejected.error


def test_a_declared_type_that_takes_a_rewrite_is_told() -> None:
    known = types(id="bigint", n="bigint", price="bigint")

    batch = priced(10.5, known=known, columns={"price": "double"})

    (rejected,) = batch.rejected
    assert "the declared double takes writing the column again: `polynya migrate`" in rejected.error
    assert "polynya quarantine replay" in rejected.error


@pytest.mark.parametrize(
    ("text", "kind"),
    [("decimal", MONEY), ("decimal(18,4)", Decimal(18, 4)), ("double", DOUBLE)],
)
def test_what_numbers_can_be(text: str, kind: object) -> None:
    assert DatasetSettings.model_validate({"numbers": text}).numbers == kind


@pytest.mark.parametrize("text", ["bigint", "string", "money", "array<double>", 7])
def test_what_numbers_cannot_be(text: object) -> None:
    with pytest.raises(ValidationError):
        DatasetSettings.model_validate({"numbers": text})
