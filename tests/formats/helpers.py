"""Short ways to read bytes as a dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from polynya.formats.base import KnownTable, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, Rejected
from polynya.formats.native.format import read_native, reread_native
from polynya.model.config.dataset import Landed, Relations, ResolvedDataset
from polynya.model.types import DataType, parse_type
from polynya.store.object_store import ObjectStore
from polynya.testing.fakes import MemoryObjectStore
from tests.settings import with_settings


def a_dataset(file_format: str = "json", **settings: Any) -> ResolvedDataset:
    """A dataset with short defaults: key `id`, sequence `n`."""
    columns = {name: parse_type(text) for name, text in settings.pop("columns", {}).items()}
    settings = {"keys": ("id",), "sequence_by": ("n",), **settings}
    relations = Relations(
        schema="s",
        view="u",
        history_view="u__history",
        changes_view="u__changes",
        internal_schema="s_internal",
        internal_table="u_internal",
    )
    landing = Landed(format=file_format, folder="u", glob="*")
    dataset = ResolvedDataset(task="t", name="u", relations=relations, landing=landing)
    return with_settings(dataset, columns=columns, **settings)


def types(**names: str) -> dict[str, DataType]:
    """Known types from their texts."""
    return {name: parse_type(text) for name, text in names.items()}


def json_lines(*records: Any) -> bytes:
    """Records as JSON lines; bytes stand for themselves."""
    return b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in records)


def request(
    store: ObjectStore,
    dataset: ResolvedDataset,
    parts: Sequence[FilePart],
    known: Mapping[str, DataType] | None = None,
    *,
    keys: tuple[str, ...] = (),
    limits: BatchLimits | None = None,
    load: bool = False,
) -> ReadRequest:
    """What to read of one table."""
    table = KnownTable(dataset, known or {}, keys)
    return ReadRequest(store, parts, {table.source: table}, limits or BatchLimits(), load=load)


def rereading(
    records: Sequence[Rejected],
    dataset: ResolvedDataset,
    known: Mapping[str, DataType] | None = None,
    *,
    keys: tuple[str, ...] = (),
    files: Mapping[str, bytes] | None = None,
) -> RereadRequest:
    """What to read again of one table."""
    table = KnownTable(dataset, known or {}, keys)
    return RereadRequest(MemoryObjectStore(files or {}), records, {table.source: table})


def reread(
    raw: bytes,
    dataset: ResolvedDataset,
    known: Mapping[str, DataType] | None = None,
    *,
    offset: int = 0,
) -> DatasetBatch:
    """Read one record of a native file again."""
    return reread_native(rereading([Rejected("f", offset, "", "", raw)], dataset, known))


def read(
    files: Mapping[str, bytes] | bytes,
    dataset: ResolvedDataset | None = None,
    known: Mapping[str, DataType] | None = None,
    *,
    limits: BatchLimits | None = None,
    starts: Mapping[str, int] | None = None,
    load: bool = False,
) -> DatasetBatch:
    """Read files from memory."""
    contents = {"f": files} if isinstance(files, bytes) else files
    store = MemoryObjectStore(contents)
    parts = [
        FilePart(path, len(data), (starts or {}).get(path, 0)) for path, data in contents.items()
    ]
    batch = read_native(
        request(store, dataset or a_dataset(), parts, known, limits=limits, load=load)
    )
    assert batch.rows_in == batch.rows.num_rows + len(batch.rejected) + batch.rows_filtered
    batch.rows.validate(full=True)
    return batch


def rules(batch: DatasetBatch) -> list[tuple[int, str]]:
    """(offset, rule) of the rejected records."""
    return [(one.offset, one.rule) for one in batch.rejected]


def column(batch: DatasetBatch, name: str) -> list[Any]:
    """The values of one column."""
    values: list[Any] = batch.rows[name].to_pylist()
    return values


def schema(batch: DatasetBatch) -> dict[str, str]:
    """Names and types as text."""
    return {name: str(kind) for name, kind in batch.schema.items()}
