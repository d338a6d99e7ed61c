"""Whatever lands for `dms` and `replicate`: nothing is raised, everything is accounted for."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.batch import WHOLE_FILE, BatchLimits, DatasetBatch, Rejected
from polynya.formats.dms import reread_dms
from polynya.formats.replicate.format import reread_replicate
from polynya.formats.replicate.tables import metadata_path
from tests.formats.dms import files as dms
from tests.formats.helpers import rereading
from tests.formats.replicate import files as replicate

_LETTERS = st.sampled_from('IUDB12x~é"\0\ud800')
_TEXTS = st.sampled_from(
    ["", '""', "Op", "id", "ff", "a,b", '"a,b"', '"a\nb"', "2026-01-01 10:00:00"]
)
_CELLS = _LETTERS | _TEXTS | st.just(replicate.seq(7))
_ROWS = st.lists(st.lists(_CELLS, min_size=1, max_size=8).map(",".join), max_size=8)


def _bytes(rows: list[str]) -> bytes:
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def _lines_of(batch: DatasetBatch) -> list[Rejected]:
    return [one for one in batch.rejected if one.offset != WHOLE_FILE]


@given(_ROWS, st.booleans(), st.booleans(), st.sampled_from([dms.LOAD, dms.FIRST]), st.binary())
def test_dms(rows: list[str], header: bool, ordered: bool, path: str, noise: bytes) -> None:
    start = ["Op,id,ts"] if header and len(rows) % 2 else []
    delivery = {"timestamp_column": "ts"} if ordered else {}
    table = dms.a_table(
        {"columns": {"id": "int", "name": "string"}}, header=header, unsent_value="~", **delivery
    )

    batch = dms.read({path: _bytes([*start, *rows]), dms.SECOND: noise}, table)
    again = reread_dms(rereading(_lines_of(batch), table, batch.schema))

    assert set(batch.files) == {path, dms.SECOND}
    assert again.rows_in == len(_lines_of(batch))
    assert None not in batch.rows["__ci"].to_pylist()


@given(_ROWS, st.sampled_from([replicate.LOAD, replicate.FIRST]), st.integers(1, 9))
def test_replicate(rows: list[str], path: str, most: int) -> None:
    limits = BatchLimits(max_rows=most)
    specs = replicate.TABLE if "__ct" not in path else (*replicate.HEADER, *replicate.TABLE)
    content = _bytes([",".join(spec[0] for spec in specs), *rows])
    files = {path: content, metadata_path(path): replicate.dfm(specs)}

    done, complete = 0, False
    while not complete:
        batch = replicate.read(files, limits=limits, starts={path: done})
        progress = batch.files[path]
        assert batch.rows_in == progress.records - done or batch.rejected[-1].offset == WHOLE_FILE
        again = reread_replicate(
            rereading(_lines_of(batch), replicate.a_table(), batch.schema, keys=("id",))
        )
        assert again.rows_in == len(_lines_of(batch))
        done, complete = progress.records, progress.complete


_SECTIONS = st.sampled_from(["fileInfo", "dataInfo", "formatInfo", "options", "columns"])
_MEMBERS = st.sampled_from(["name", "extension", "type", "ordinal", "primaryKeyPos", "recordCount"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_SECTIONS | _MEMBERS, inner, max_size=5)
    ),
    max_leaves=20,
)


@given(_JSON, st.lists(st.dictionaries(_MEMBERS, _JSON)))
def test_metadata(document: Any, columns: list[Any]) -> None:
    odd = {**(document if isinstance(document, dict) else {}), "dataInfo": {"columns": columns}}
    for metadata in (document, odd):
        files = {replicate.LOAD: b"a\n1\n", metadata_path(replicate.LOAD): _dump(metadata)}

        batch = replicate.read(files)

        assert batch.files[replicate.LOAD].complete


def _dump(document: Any) -> bytes:
    return json.dumps(document).encode()


_HEADERS = st.sampled_from([name for name, *_ in replicate.HEADER])
_COLUMNS = st.sampled_from(["id", "name", "city", "", "secret", "hdr__x"])


@given(st.lists(st.dictionaries(_HEADERS | _COLUMNS, _CELLS | _JSON, max_size=7), max_size=5))
def test_json_lines_of_replicate(records: list[dict[str, Any]]) -> None:
    path = replicate.FIRST.replace(".csv", ".json")
    metadata = replicate.dfm((*replicate.HEADER, *replicate.TABLE))
    lines = b"\n".join(_dump(record) for record in records)

    batch = replicate.read({path: lines, metadata_path(path): metadata})

    assert batch.rows_in == len(records)


@given(st.sampled_from([["U"], "U", 1, None, b"U", {"a": "U"}]), st.booleans())
def test_operations_of_dms_that_are_no_text(operation: Any, load: bool) -> None:
    name = "LOAD1" if load else "20260101-120000123"

    batch = dms.read({f"s/t/{name}.parquet": dms.table(Op=[operation, operation], id=[1, 2])})

    assert batch.rows_in == 2
