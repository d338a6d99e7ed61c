"""A quarantined row of a DMS file can be read again from its raw bytes and its origin alone."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats.batch import DatasetBatch, Rejected
from polynya.formats.dms import reread_dms
from polynya.model.config.dataset import ResolvedDataset
from tests.formats.dms.files import FIRST, LOAD, a_table, lines, read, table
from tests.formats.helpers import column, rereading, rules, types


def again(batch: DatasetBatch, dataset: ResolvedDataset, **known: str) -> DatasetBatch:
    """Every record of a batch, rows and rejected ones, read anew."""
    rows = [
        Rejected(row["__file"], row["__offset"], "", "", row["__raw"])
        for row in batch.rows.to_pylist()
    ]
    return reread_dms(rereading([*rows, *batch.rejected], dataset, types(**known)))


@pytest.mark.parametrize(
    ("files", "settings", "delivery"),
    [
        ({LOAD: lines("id,x", "1,a"), FIRST: lines("Op,id,x", 'U,1,"a\nb"', "D,2,")}, {}, {}),
        (
            {LOAD: lines("1|a"), FIRST: lines("U|1|~", "D|2|")},
            {"columns": {"id": "int", "x": "string"}},
            {"header": False, "delimiter": "|", "unsent_value": "~"},
        ),
        ({"s/t/20260101-120000123.parquet": table(Op=["U"], id=[1], x=[b"\0\xff"])}, {}, {}),
    ],
)
def test_rows_come_out_as_they_did(
    files: dict[str, bytes], settings: dict[str, Any], delivery: dict[str, Any]
) -> None:
    dataset = a_table(settings, **delivery)
    first = read(files, dataset)

    second = again(first, dataset, **{name: str(kind) for name, kind in first.schema.items()})

    assert second.rows.to_pylist() == first.rows.to_pylist()
    assert dict(second.files) == {}


def test_a_row_that_the_settings_refused_fits_after_they_changed() -> None:
    refused = read({FIRST: lines("Op,id,x", "U,1,12")}, a_table({"columns": {"x": "date"}}))
    assert rules(refused) == [(0, "bad_value")]

    batch = again(refused, a_table({"columns": {"x": "int"}}))

    assert (column(batch, "x"), column(batch, "__op")) == ([12], ["U"])


def test_a_row_that_is_still_bad_is_refused_again() -> None:
    refused = read({FIRST: lines("Op,id,x", "X,1,12", "U,1")})

    assert rules(again(refused, a_table())) == [(0, "unknown_op"), (1, "bad_csv")]


def test_a_row_whose_header_lacks_a_new_key_is_refused_as_a_record() -> None:
    refused = read({FIRST: lines("Op,id,x", "X,1,12")})

    assert rules(again(refused, a_table({"keys": ("other",)}))) == [(0, "bad_csv")]
