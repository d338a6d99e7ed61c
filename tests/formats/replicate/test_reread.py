"""A quarantined record of a Replicate file can be read again, with or without its `.dfm` file."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.batch import DatasetBatch, Rejected
from polynya.formats.replicate.format import reread_replicate
from polynya.model.config.dataset import ResolvedDataset
from tests.formats.helpers import column, rereading, rules, types
from tests.formats.replicate.files import (
    FIRST,
    HEADER,
    LOAD,
    SECOND,
    TABLE,
    a_table,
    change,
    dfm,
    landed,
    read,
    seq,
)

KNOWN = {"id": "int", "name": "string", "city": "string", "data": "binary", "ok": "boolean"}
SPECS = (*TABLE, ("data", "BYTES", 0, 0, 0), ("ok", "BOOLEAN", 0, 0, 0))


def again(
    batch: DatasetBatch, files: Mapping[str, bytes], dataset: ResolvedDataset | None = None
) -> DatasetBatch:
    """Every row and every rejected record of a batch, read anew."""
    rows = [
        Rejected(row["__file"], row["__offset"], "", "", row["__raw"])
        for row in batch.rows.to_pylist()
    ]
    records = sorted([*rows, *batch.rejected], key=lambda one: (one.file, one.offset))
    return reread_replicate(
        rereading(records, dataset or a_table(), types(**KNOWN), keys=("id",), files=files)
    )


@pytest.mark.parametrize("kept", [True, False])
def test_rows_come_out_as_they_did(kept: bool) -> None:
    row = change(2, "U", "1", '"A""nn\n"', "", "00ff", "1", mask="20")
    files = {
        **landed(LOAD, "1,Ann,Ulm,,0", specs=SPECS),
        **landed(FIRST, row, change(3, "D", "1", "", "", "", ""), specs=SPECS),
    }
    first = read(files, keys=("id",))

    second = again(first, files if kept else {})

    assert second.rows.select(first.rows.schema.names).to_pylist() == first.rows.to_pylist()
    assert second.rows.num_rows == 3
    assert dict(second.files) == {}


def test_a_refused_update_still_knows_the_key_that_it_left() -> None:
    rows = (change(1, "B", "1", "Ann", ""), change(1, "U", "two", "Ann", "", mask="10"))
    first = read(landed(FIRST, *rows))
    assert (column(first, "__op"), rules(first)) == (["D"], [(1, "bad_value")])
    (refused,) = first.rejected
    repaired = Rejected(refused.file, 1, "", "", refused.raw.replace(b"two", b"2"))

    batch = reread_replicate(rereading([repaired], a_table(), types(**KNOWN), keys=("id",)))

    assert (column(batch, "__op"), column(batch, "id")) == (["I"], [2])
    assert column(batch, "__old") == [{"id": 1}]
    assert column(batch, "__unsent") == [["city"]]
    assert (batch.rows_in, batch.rows_filtered) == (1, 0)


def test_a_lonely_before_image_finds_an_update_that_is_read_again_with_it() -> None:
    lonely = read(landed(FIRST, change(1, "B", "1", "", "")))
    bad = read(landed(SECOND, change(1, "U", "two", "", "")))
    (update,) = bad.rejected
    repaired = Rejected(SECOND, 0, "", "", update.raw.replace(b"two", b"2"))

    alone = again(lonely, {})
    both = reread_replicate(
        rereading([*lonely.rejected, repaired], a_table(), types(**KNOWN), keys=("id",))
    )

    assert rules(alone) == [(0, "no_after")]
    assert column(both, "__op") == ["D", "I"]


def test_a_parquet_record_keeps_its_mask_and_its_bytes() -> None:
    names = [spec[0] for spec in (*HEADER, *SPECS)]
    values = [seq(1), "U", b"\x20", None, 1, "Anna", None, b"\0\xff", True]
    out = io.BytesIO()
    parquet.write_table(pa.table({n: [v] for n, v in zip(names, values, strict=True)}), out)
    files = {
        FIRST.replace(".csv", ".parquet"): out.getvalue(),
        FIRST.replace(".csv", ".dfm"): dfm((*HEADER, *SPECS)),
    }
    first = read(files)

    second = again(first, {})

    assert second.rows.select(first.rows.schema.names).to_pylist() == first.rows.to_pylist()
    assert column(second, "__unsent") == [["city"]]


def test_a_record_that_is_still_bad_is_refused_again() -> None:
    rows = (change(1, "X", "1", "", ""), change(2, "U", "1"), change(3, "U", "x", "", ""))
    files = landed(FIRST, *rows)

    assert rules(again(read(files), files)) == [
        (0, "unknown_op"),
        (1, "bad_csv"),
        (2, "bad_value"),
    ]


def test_a_repaired_dfm_file_or_declared_type_lets_a_record_in() -> None:
    specs = (*TABLE[:1], ("n", "INT4", 0, 0, 0))
    files = landed(FIRST, change(1, "U", "1", "x"), specs=specs)
    refused = read(files)
    text = (*HEADER, *TABLE[:1], ("n", "STRING", 0, 0, 0))

    repaired = again(refused, {FIRST.replace(".csv", ".dfm"): dfm(text)})
    declared = again(refused, files, a_table({"columns": {"n": "string"}}))

    assert column(repaired, "n") == column(declared, "n") == ["x"]
