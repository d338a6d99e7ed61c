"""One module for each native file format: bytes to records, nothing about datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, TypeAlias

from polynya.landing.columns import Builder, build
from polynya.landing.formats.avro import open_avro
from polynya.landing.formats.base import OpenedFile
from polynya.landing.formats.columnar import open_orc, open_parquet
from polynya.landing.formats.delimited import open_csv, text_builder
from polynya.landing.formats.json_lines import open_json

#: (content, first record) → records
Opener: TypeAlias = Callable[[BinaryIO, int], OpenedFile]

_OPENERS: dict[str, Opener] = {
    "json": open_json,
    "csv": open_csv,
    "parquet": open_parquet,
    "orc": open_orc,
    "avro": open_avro,
}


def opener_of(file_format: str) -> Opener:
    """How to read a file of this native format."""
    return _OPENERS[file_format]


def builder_of(file_format: str) -> Builder:
    """How to type the columns of this native format."""
    return text_builder if file_format == "csv" else build
