"""One module for each native file format: bytes to records, nothing about datasets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, TypeAlias

from polynya.formats.records.avro import open_avro
from polynya.formats.records.columnar import OpenedFile, open_orc, open_parquet
from polynya.formats.records.csv import (
    CsvLayout,
    open_csv,
    refuse_other_delimiter,
    text_builder,
)
from polynya.formats.records.json import open_json, parsed
from polynya.formats.records.json_documents import open_documents, refuse_document
from polynya.formats.values.columns import Builder, build
from polynya.formats.values.exact import USUAL, NumberSpelling
from polynya.model.config.dataset import ResolvedDataset

#: (content, first record) → records
Opener: TypeAlias = Callable[[BinaryIO, int], OpenedFile]

_OPENERS: dict[str, Opener] = {
    "json": open_json,
    # A sheet is opened as lines of JSON.
    "excel": open_json,
    "parquet": open_parquet,
    "orc": open_orc,
    "avro": open_avro,
}
_TEXT_FORMATS = frozenset({"json", "csv"})


def opener_of(file_format: str) -> Opener:
    """How to read a file of a format that has no settings."""
    return _OPENERS[file_format]


def file_opener(dataset: ResolvedDataset) -> Opener:
    """How to read the files of a native dataset."""
    match dataset.landing.format:
        case "csv":
            return partial(_open_table, layout=CsvLayout.of(dataset))
        case "json":
            keys = dataset.landing.delivery.record_keys
            return _open_lines if keys is None else partial(open_documents, path=keys)
        case other:
            return opener_of(other)


def _open_table(file: BinaryIO, start: int, layout: CsvLayout) -> OpenedFile:
    if not start:
        refuse_other_delimiter(file, layout)
    return open_csv(file, start, layout)


def _open_lines(file: BinaryIO, start: int) -> OpenedFile:
    if not start:
        refuse_document(file)
    return open_json(file, start)


def text_format(dataset: ResolvedDataset) -> str:
    """The format of the raw bytes of a record: text stays as it is, all others are JSON."""
    return dataset.landing.format if dataset.landing.format in _TEXT_FORMATS else "json"


def record_opener(dataset: ResolvedDataset) -> Opener:
    """How to read a record of a native dataset from its raw bytes, which are CSV or JSON."""
    if dataset.landing.format != "csv":
        return _open_record
    return partial(open_csv, layout=CsvLayout.of(dataset).of_one_record())


def _open_record(file: BinaryIO, start: int) -> OpenedFile:
    """One record of JSON, which has several lines where it is out of a document."""
    del start
    return OpenedFile(iter([parsed(file.read())]))


def builder_of(file_format: str, spelling: NumberSpelling = USUAL) -> Builder:
    """How to type the columns of this native format, whose texts spell numbers like this."""
    builder = text_builder if file_format == "csv" else build
    return builder if spelling.is_usual else partial(builder, spelling=spelling)
