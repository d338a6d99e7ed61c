"""A store that does not answer for the moment is not a damaged file: that would count as done."""

from __future__ import annotations

import errno
import gzip
import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from polynya.formats.opening import landed_file
from polynya.formats.records.avro import open_avro
from polynya.formats.records.columnar import open_orc, open_parquet
from polynya.model.errors import DependencyError
from polynya.store.aws.s3 import Block, BlockReader
from polynya.testing.fakes import MemoryObjectStore

VALUES = [os.urandom(30).hex() for _ in range(3000)]


def written(write: Callable[[BinaryIO], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as archive:
        archive.write(text)
    return sink.getvalue().to_pybytes()


TABLE = pa.table({"a": VALUES})
AVRO = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
TEXT = "".join(f'{{"a": "{value}"}}\n' for value in VALUES).encode()
FILES: dict[str, tuple[bytes, Any]] = {
    "parquet": (written(lambda file: parquet.write_table(TABLE, file)), open_parquet),
    "orc": (written(lambda file: orc.write_table(TABLE, file)), open_orc),
    "avro": (
        written(lambda file: fastavro.writer(file, AVRO, TABLE.to_pylist())),
        open_avro,
    ),
    "json.gz": (gzip.compress(TEXT), None),
    "json.zst": (zstd(TEXT), None),
}


class Interrupted(MemoryObjectStore):
    """Answers some requests for blocks, then no more."""

    def __init__(self, answers: int, objects: dict[str, bytes]) -> None:
        super().__init__(objects)
        self.answers = answers

    def open(self, path: str) -> BinaryIO:
        data = self.get(path)

        def fetch(start: int, end: int, tag: str | None) -> Block:
            if self.answers == 0:
                raise DependencyError("POLYNYA-AWS-003", "no answer")
            self.answers -= 1
            return Block(data[start:end], len(data), "v1")

        # Smaller than the piece that the reader of landed files looks at first.
        return cast("BinaryIO", io.BufferedReader(BlockReader(fetch, 16_384), 4096))


@pytest.mark.parametrize("answers", [1, 2, 4])
@pytest.mark.parametrize("name", FILES)
def test_an_answer_that_fails_to_come_is_raised_as_it_is(name: str, answers: int) -> None:
    content, opener = FILES[name]
    assert len(content) > 5 * 16_384
    store = Interrupted(answers, {f"a.{name}": content})

    def read_all() -> None:
        with landed_file(store, f"a.{name}", name.split(".", maxsplit=1)[0]) as file:
            if opener is not None:
                list(opener(file, 0).records)

    with pytest.raises(DependencyError, match="no answer"):
        read_all()


class Broken(MemoryObjectStore):
    """Reads some blocks, then raises."""

    def __init__(self, error: BaseException, answers: int, objects: dict[str, bytes]) -> None:
        super().__init__(objects)
        self.error, self.answers = error, answers

    def open(self, path: str) -> BinaryIO:
        data = self.get(path)

        def fetch(start: int, end: int, tag: str | None) -> Block:
            if self.answers == 0:
                raise self.error
            self.answers -= 1
            return Block(data[start:end], len(data), "v1")

        return cast("BinaryIO", io.BufferedReader(BlockReader(fetch, 16_384), 4096))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(errno.ECONNRESET, "reset"),
        TimeoutError("no answer"),
        OSError(errno.EREMOTEIO, "remote"),
        OSError("without a number"),
        MemoryError(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("answers", [1, 4])
@pytest.mark.parametrize("name", FILES)
def test_an_error_of_the_system_says_nothing_of_a_file(
    name: str, answers: int, error: BaseException
) -> None:
    content, opener = FILES[name]
    store = Broken(error, answers, {f"a.{name}": content})

    def read_all() -> None:
        with landed_file(store, f"a.{name}", name.split(".", maxsplit=1)[0]) as file:
            if opener is not None:
                list(opener(file, 0).records)

    with pytest.raises(DependencyError) as caught:
        read_all()

    assert caught.value.code == "POLYNYA-STO-003"


@pytest.mark.parametrize("code", ["EACCES", "EIO", "ESTALE", "ETIMEDOUT", "ENODEV", "ECONNRESET"])
def test_nor_does_one_of_opening_it(code: str) -> None:
    class Closed(MemoryObjectStore):
        def open(self, path: str) -> BinaryIO:
            raise OSError(getattr(errno, code), "now", path)

    with pytest.raises(DependencyError), landed_file(Closed(), "a.json", "json"):
        pass


def test_memory_that_a_decoder_lacks_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> Any:
        raise pa.ArrowMemoryError("malloc of size 5 failed")

    monkeypatch.setattr("polynya.formats.records.columnar.exact_batches", no_memory)
    content, opener = FILES["parquet"]
    store = MemoryObjectStore({"a.parquet": content})

    def read_all() -> None:
        with landed_file(store, "a.parquet", "parquet") as file:
            list(opener(file, 0).records)

    with pytest.raises(DependencyError):
        read_all()


def test_a_full_disk_is_no_damage_of_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, piece: Any) -> int:
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile", lambda **_: Full())
    store = MemoryObjectStore({"a.json.gz": FILES["json.gz"][0]})

    with pytest.raises(DependencyError, match="no space"), landed_file(store, "a.json.gz", "json"):
        pass
