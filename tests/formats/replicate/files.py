"""Short ways to write and read what Replicate lands for one table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.replicate.format import read_replicate
from polynya.formats.replicate.tables import metadata_path
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Delivery
from polynya.model.types import DataType
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.helpers import a_dataset, request

LOAD = "u/s.t/LOAD00001.csv"
FIRST = "u/s.t__ct/20260101-1200001230.csv"
SECOND = "u/s.t__ct/20260101-1205000000.csv"

#: name, type, precision, scale, position in the key
Spec = tuple[str, str, int, int, int]
HEADER: tuple[Spec, ...] = (
    ("header__change_seq", "STRING", 0, 0, 0),
    ("header__change_oper", "STRING", 0, 0, 0),
    ("header__change_mask", "BYTES", 0, 0, 0),
    ("header__timestamp", "DATETIME", 0, 0, 0),
)
#: Bits 4, 5, 6 of a change mask, behind the header.
TABLE: tuple[Spec, ...] = (
    ("id", "INT4", 0, 0, 1),
    ("name", "STRING", 0, 0, 0),
    ("city", "STRING", 0, 0, 0),
)


def seq(number: int) -> str:
    """A change sequence."""
    return f"2026010112000000{number:019d}"


def dfm(specs: tuple[Spec, ...], **info: Any) -> bytes:
    """A `.dfm` file; keyword arguments are members of `fileInfo`, `options` those of the format."""
    options = info.pop("options", {"fieldDelimiter": ",", "nullValue": "", "quoteChar": '"'})
    columns = [
        {
            "ordinal": index,
            "name": name,
            "type": kind,
            "length": 0,
            "precision": precision,
            "scale": scale,
            "primaryKeyPos": key,
        }
        for index, (name, kind, precision, scale, key) in enumerate(specs, 1)
    ]
    document = {
        "dfmVersion": "1.1",
        "taskInfo": {"name": "t", "operation": "dataProduced"},
        "fileInfo": info,
        "formatInfo": {"format": "delimited", "options": options},
        "dataInfo": {"sourceSchema": "s", "sourceTable": "t", "columns": columns},
    }
    return json.dumps(document).encode()


def landed(path: str, *rows: str, specs: tuple[Spec, ...] = TABLE, **info: Any) -> dict[str, bytes]:
    """A CSV file with its header line, and its `.dfm` file."""
    names = specs if "__ct" not in path else (*HEADER, *specs)
    lines = [",".join(spec[0] for spec in names), *rows]
    content = "".join(f"{line}\n" for line in lines).encode()
    return {path: content, metadata_path(path): dfm(names, recordCount=len(rows), **info)}


def change(number: int, operation: str, *values: str, mask: str = "", at: str = "") -> str:
    """A row of changes."""
    return ",".join([seq(number), operation, mask, at, *values])


def a_table(settings: dict[str, Any] | None = None, **delivery: Any) -> ResolvedDataset:
    """A table whose keys come from the data; keyword arguments are settings of `landing`."""
    own = {"keys": (), "sequence_by": (), **(settings or {})}
    return a_dataset("replicate", delivery=Delivery(**delivery), **own)


def read(
    files: Mapping[str, bytes],
    dataset: ResolvedDataset | None = None,
    known: Mapping[str, DataType] | None = None,
    *,
    keys: tuple[str, ...] = (),
    limits: BatchLimits | None = None,
    starts: Mapping[str, int] | None = None,
) -> DatasetBatch:
    """Read data files from memory."""
    parts = [
        FilePart(path, len(data), (starts or {}).get(path, 0))
        for path, data in files.items()
        if not path.endswith(".dfm")
    ]
    store = MemoryObjectStore(files)
    batch = read_replicate(
        request(store, dataset or a_table(), parts, known, keys=keys, limits=limits)
    )
    batch.rows.validate(full=True)
    return batch
