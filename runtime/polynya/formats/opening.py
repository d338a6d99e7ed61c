"""Opening a landed file: compression, encoding and spooling, detected by its first bytes.

A compressed file is decompressed to its end before the first record is taken, so that a truncated
archive is found in time. Several members or frames in a row are one file, as `cat a.gz b.gz` makes
them, and so are the members of a ZIP archive. Snappy is read in both of its stream formats, the
framing format (https://github.com/google/snappy/blob/main/framing_format.txt) and Hadoop's blocks.

A damaged or undecodable file raises `UnreadableFileError`. A decoder also raises `OSError` for a
damaged archive, and so does a disk that does not answer. Errors of the store are therefore caught
below the decoder: they prove nothing about the content, and the file is read again later.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import lzma
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from io import SEEK_END, BufferedIOBase
from typing import Any, BinaryIO, Final, cast

import cramjam
import pyarrow as pa

from polynya.formats import limits
from polynya.formats.begun import CarefulStore
from polynya.formats.errors import UnreadableFileError
from polynya.formats.workbooks import opened_workbook
from polynya.formats.zip_members import EXPORT, chosen, members_of, opened_archive, pieces_of_member
from polynya.formats.zip_members import START as ZIP_START
from polynya.model.config.settings import Delivery, Encoding
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.object_store import OF_THE_FILE, ObjectStore, not_now

_BUFFER_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 24


@contextmanager
def source_of(store: ObjectStore, path: str) -> Iterator[BinaryIO]:
    """A seekable reader of a landed file as it is stored.

    Whatever a decoder makes of an error of the store, that error is raised.

    Raises:
        UnreadableFileError: there is no such file, or it is none that can be read.
        PolynyaError: what the store says. POLYNYA-STO-003 for any other error of the system, also
            one that is raised while the file is open, and when the memory does not suffice.
    """
    begun = store.begun if isinstance(store, CarefulStore) else None
    if begun is not None:
        begun.begin(path)
    with _opened(store, path) as found:
        watched = _Watched(found, path)
        try:
            yield cast("BinaryIO", io.BufferedReader(watched, _BUFFER_BYTES))
        except Exception as error:
            cause = watched.cause or _system_error(error)
            if begun is not None and isinstance(cause, MemoryError):
                begun.in_vain([path])
            if watched.failure is not None:
                raise watched.failure from error
            if cause is None:
                raise
            raise not_now(path, cause) from error


def _opened(store: ObjectStore, path: str) -> BinaryIO:
    try:
        return store.open(path)
    except (OSError, OperationError) as error:
        number = error.errno if isinstance(error, OSError) else errno.ENOENT
        if number is None or number in OF_THE_FILE:
            raise UnreadableFileError(f"cannot be opened: {error}") from error
        raise not_now(path, error) from error


class _Watched(io.RawIOBase):
    """A file that remembers why it could not be read."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.failure: PolynyaError | None = None
        self.cause: BaseException | None = None
        self._file, self._path = file, path
        self._into: Callable[[memoryview], int] = file.readinto  # type: ignore[attr-defined]

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Position in bytes."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer. What a read raises is kept, whatever becomes of it."""
        view = memoryview(buffer).cast("B")[:_PIECE_BYTES]
        try:
            return self._into(view)
        except PolynyaError as error:
            self.failure = error
            raise
        except (OSError, MemoryError) as error:
            self.cause, self.failure = error, not_now(self._path, error)
            raise self.failure from error


def _system_error(error: BaseException | None) -> BaseException | None:
    """What the machine lacked, where an error comes from that; errors of decoders have no number.

    Not what somebody else has handled before.
    """
    while error is not None and not isinstance(error, PolynyaError):
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            return error
        error = error.__cause__
    return None


#: How much of a file is read and converted at a time.
PIECE_BYTES: Final = 1024 * 1024
_MEMORY_BYTES: Final = 32 * 1024 * 1024


@contextmanager
def spooled(pieces: Iterable[bytes]) -> Iterator[BinaryIO]:
    """The pieces as one file, at its start. What making them raises is raised before the body."""
    with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
        for piece in pieces:
            spool.write(piece)
        spool.seek(0)
        yield cast("BinaryIO", spool)


IDENTIFIER: Final = b"\xff\x06\x00\x00sNaPpY"
#: Chunks of the framing format that are decompressed together: 4 MiB of content at most.
_GROUP_CHUNKS: Final = 64
#: Hadoop's default is 256 KiB; more than this is not a length but other bytes.
_MAX_BLOCK_BYTES = 64 * 1024 * 1024


def framed(source: BinaryIO) -> Iterator[bytes]:
    """The content of a stream in Snappy's framing format; checksums are verified.

    Raises:
        EOFError: truncated.
        cramjam.DecompressionError: damaged.
    """
    # A chunk has 64 KiB of content at most, so a group of them stays small.
    group, chunks = bytearray(IDENTIFIER), 0
    while head := source.read(4):
        body = _exactly(source, int.from_bytes(head[1:], "little"))
        group += head + body
        chunks += 1
        if chunks == _GROUP_CHUNKS:
            yield bytes(cramjam.snappy.decompress(group))
            group, chunks = bytearray(IDENTIFIER), 0
    yield bytes(cramjam.snappy.decompress(group))


def hadoop_blocks(source: BinaryIO) -> Iterator[bytes]:
    """The content of Hadoop's `SnappyCodec`: blocks of chunks, each with its length before it.

    Raises:
        EOFError: truncated.
        ValueError: lengths that contradict each other.
        cramjam.DecompressionError: damaged.
    """
    while head := source.read(4):
        left = _length(head)
        while left:
            chunk = _exactly(source, _length(source.read(4)))
            size = cramjam.snappy.decompress_raw_len(chunk)
            if not 0 < size <= left:
                raise ValueError(f"a chunk of {size} bytes where {left} are left in its block")
            yield bytes(cramjam.snappy.decompress_raw(chunk))
            left -= size


def _length(field: bytes) -> int:
    if len(field) < 4:
        raise EOFError("it ends within a length")
    size = int.from_bytes(field, "big")
    if size > _MAX_BLOCK_BYTES:
        raise ValueError(f"a block of {size} bytes")
    return size


def _exactly(source: BinaryIO, size: int) -> bytes:
    body = source.read(size)
    if len(body) < size:
        raise EOFError(f"it ends {size - len(body)} bytes before the end of a chunk")
    return body


#: Memory of the decoder of xz. Its strongest preset needs 65 MB; a header may ask for 4 GB.
_XZ_MEMORY_BYTES = 256 * 1024 * 1024


def _xz(source: BinaryIO) -> Iterator[bytes]:
    decoder: lzma.LZMADecompressor | None = None
    while piece := source.read(PIECE_BYTES):
        while piece:
            if decoder is None:
                # Zeros may fill the space between two streams.
                piece = piece.lstrip(b"\0")
                if not piece:
                    break
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)
            yield decoder.decompress(piece, PIECE_BYTES)
            while not (decoder.eof or decoder.needs_input):
                yield decoder.decompress(b"", PIECE_BYTES)
            piece = decoder.unused_data if decoder.eof else b""
            decoder = None if decoder.eof else decoder
    if decoder is not None:
        raise EOFError("it ends before the end of its stream")


_DAMAGE = (
    EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, pa.ArrowException,
    cramjam.DecompressionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Codec:
    """One kind of compression: its name, how it begins, and what its content is, in pieces."""

    name: str
    start: re.Pattern[bytes]
    pieces: Callable[[BinaryIO], Iterator[bytes]]


def codec_of(head: bytes, path: str) -> Codec | None:
    """The compression of a file, by its first bytes; Hadoop's blocks also need the name."""
    for codec in _CODECS:
        if codec.start.match(head):
            return codec
    is_hadoop = path.lower().endswith(".snappy") and head.startswith(b"\0")
    return _HADOOP_SNAPPY if is_hadoop else None


def is_packed(head: bytes, path: str) -> bool:
    """Whether a file is compressed as a whole, by its first bytes: no part can be read alone."""
    return codec_of(head, path) is not None or ZIP_START.match(head) is not None


def decompressed(source: BinaryIO, codec: Codec) -> AbstractContextManager[BinaryIO]:
    """The content, seekable, at its start.

    Raises:
        UnreadableFileError: on entering, when it is truncated or damaged, or expands to more than
            a file of its size may.
    """
    return spooled(_limited(source, codec))


def _limited(source: BinaryIO, codec: Codec) -> Iterator[bytes]:
    size = source.seek(0, SEEK_END)
    source.seek(0)
    yield from ContentLimit(f"a {codec.name} archive", size).checked(pieces_of(source, codec))


class ContentLimit:
    """How much an archive of `size` bytes may expand to, in all of its parts."""

    def __init__(self, kind: str, size: int) -> None:
        self._kind, self._size, self._found = kind, size, 0

    def checked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a part. Raises TooLargeError."""
        most = limits.content_bytes(self._size)
        for piece in pieces:
            self._found += len(piece)
            if self._found > most:
                raise limits.refuse_content(self._kind, self._size)
            yield piece


def pieces_of(source: BinaryIO, codec: Codec) -> Iterator[bytes]:
    """The content in pieces, of which none is large. Raises UnreadableFileError."""
    try:
        yield from codec.pieces(source)
    except _DAMAGE as error:
        raise UnreadableFileError(f"broken {codec.name} archive: {error}") from error


def _gzip(source: BinaryIO) -> Iterator[bytes]:
    with gzip.open(source, "rb") as archive:
        yield from _decompressed(archive)


def _arrow(name: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    def pieces(source: BinaryIO) -> Iterator[bytes]:
        with pa.CompressedInputStream(pa.PythonFile(source, mode="r"), name) as archive:
            yield from _decompressed(archive)

    return pieces


def _decompressed(archive: BufferedIOBase | pa.NativeFile) -> Iterator[bytes]:
    while piece := archive.read(PIECE_BYTES):
        yield piece


_CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), _gzip),
    # A skippable frame may come first, parallel compressors write one.
    Codec("Zstandard", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _arrow("zstd")),
    # `BZh` alone could begin a text: a block or the end of the archive follows.
    Codec("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _arrow("bz2")),
    Codec("xz", re.compile(rb"\xfd7zXZ\x00"), _xz),
    Codec("Snappy", re.compile(re.escape(IDENTIFIER)), framed),
)
_HADOOP_SNAPPY = Codec("Hadoop Snappy", re.compile(b"\0"), hadoop_blocks)


#: Encodings that begin with a byte order mark, which says which of two they are.
_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def transcoded(source: BinaryIO, encoding: Encoding) -> AbstractContextManager[BinaryIO]:
    """The content in UTF-8, seekable, at its start.

    A byte without a meaning in `windows-1252` spoils its record only: it becomes bytes that are no
    UTF-8 either.

    Raises:
        UnreadableFileError: on entering, when it is in another encoding than the settings say, or
            is cut off.
    """
    return spooled(_recoded(source, encoding))


def _recoded(source: BinaryIO, encoding: Encoding) -> Iterator[bytes]:
    start = source.read(len(codecs.BOM_UTF32_LE))
    source.seek(0)
    if start.startswith(codecs.BOM_UTF8):
        raise UnreadableFileError(f"not {encoding}: it begins with the byte order mark of UTF-8")
    if encoding in _MARKS and not start.startswith(_MARKS[encoding]):
        raise UnreadableFileError(f"not {encoding}: it does not begin with a byte order mark")
    errors = "strict" if encoding.startswith("utf-") else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        while piece := source.read(PIECE_BYTES):
            yield decoder.decode(piece).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError as error:
        raise UnreadableFileError(f"not {encoding}: {error}") from error


_SNIFF_BYTES = 8192
#: A file in whose first bytes every so many is none of a text is no text.
_ODD_SHARE = 10

#: First bytes of what people put into landing folders by mistake.
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a Parquet file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", f"an old Office file, such as an Excel workbook (.xls): {EXPORT}"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (codecs.BOM_UTF32_LE, "a UTF-32 text; set `encoding: utf-32`"),
    (codecs.BOM_UTF32_BE, "a UTF-32 text; set `encoding: utf-32`"),
    (codecs.BOM_UTF16_LE, "a UTF-16 text; set `encoding: utf-16`"),
    (codecs.BOM_UTF16_BE, "a UTF-16 text; set `encoding: utf-16`"),
)
_MAGIC = {"parquet": b"PAR1", "orc": b"ORC", "avro": b"Obj\x01"}


@contextmanager
def landed_file(
    store: ObjectStore,
    path: str,
    file_format: str,
    *,
    delivery: Delivery | None = None,
    or_one_of: Sequence[str] = (),
) -> Iterator[BinaryIO]:
    """A seekable reader of the file's content, decompressed, text in UTF-8, at its start.

    Args:
        store: where the file is.
        path: its path in the store.
        file_format: `parquet`, `orc`, `avro`, or the name of a text format.
        delivery: how the files are written; None: text in UTF-8, one file in an archive.
        or_one_of: `avro`, `parquet`: may stand in place of the text.

    Raises:
        UnreadableFileError: it cannot be opened, is truncated or of another format, or too large.
        DependencyError: POLYNYA-STO-003, the store or the machine cannot read it now.
    """
    encoding = None if delivery is None else delivery.encoding
    with ExitStack() as open_files:
        content = open_files.enter_context(source_of(store, path))
        head = _head(content)
        codec = codec_of(head, path)
        if file_format == "excel":
            yield open_files.enter_context(spooled(_sheet(content, delivery or Delivery())))
            return
        if ZIP_START.match(head):
            members = _unzipped(content, file_format, delivery)
            content = open_files.enter_context(spooled(members))
            _refuse_packed(_head(content), "ZIP")
        elif codec is not None:
            content = open_files.enter_context(decompressed(content, codec))
            _refuse_packed(_head(content), codec.name)
        if encoding is not None and encoding != "utf-8" and not ZIP_START.match(head):
            content = open_files.enter_context(transcoded(content, encoding))
        head = _head(content)
        if not any(head.startswith(_MAGIC[codec]) for codec in or_one_of):
            _check_content(head, file_format)
        yield content


def _refuse_packed(head: bytes, outer: str) -> None:
    inner = codec_of(head, "")
    name = "ZIP" if ZIP_START.match(head) else None if inner is None else inner.name
    if name is not None:
        raise UnreadableFileError(f"a {name} archive inside a {outer} archive")


def _sheet(file: BinaryIO, delivery: Delivery) -> Iterator[bytes]:
    """The rows of a sheet of a workbook as lines of JSON."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    book = opened_workbook(file, ContentLimit("a workbook", size).checked)
    yield from book.lines(delivery.sheet, delivery.skip_lines or 0)


def _unzipped(file: BinaryIO, file_format: str, delivery: Delivery | None) -> Iterator[bytes]:
    """The members with the data as one content, text in UTF-8."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    with opened_archive(file) as archive:
        members = chosen(members_of(archive), None if delivery is None else delivery.zip_member)
        if len(members) > 1 and (delivery is None or file_format in _MAGIC):
            raise UnreadableFileError(
                f"a ZIP archive of {len(members):,} files, of which one is read in this format: "
                "land them in archives of their own"
            )
        limit = ContentLimit("a ZIP archive", size)
        contents = (limit.checked(pieces_of_member(archive, member)) for member in members)
        yield from _one_after_another(contents, file_format, delivery)


def _one_after_another(
    contents: Iterable[Iterable[bytes]], file_format: str, delivery: Delivery | None
) -> Iterator[bytes]:
    """Members as one content: each ends with a line end, and one header line stands for all."""
    names: bytes | None = None
    last = b"\n"
    for number, pieces in enumerate(contents):
        with ExitStack() as open_files:
            content = open_files.enter_context(spooled(pieces))
            if delivery is not None and delivery.encoding not in {None, "utf-8"}:
                content = open_files.enter_context(transcoded(content, delivery.encoding))
            if number:
                if not last.endswith(b"\n"):
                    yield b"\n"
                if _head(content).startswith(codecs.BOM_UTF8):
                    content.seek(len(codecs.BOM_UTF8))
            if file_format == "csv" and delivery is not None:
                before, line = _to_names(content, delivery)
                if number and line != names:
                    raise UnreadableFileError(
                        "a ZIP archive of files whose header lines differ: land them in archives "
                        "of their own"
                    )
                names = line
                if not number:
                    yield before
            while piece := content.read(PIECE_BYTES):
                last = piece
                yield piece


#: No header line is so long.
_HEADER_BYTES = 1 << 20


def _to_names(content: BinaryIO, delivery: Delivery) -> tuple[bytes, bytes]:
    """What stands before the records of CSV, and the header line in it; b"" without one."""
    comment = (delivery.comment or "").encode()
    lines = [content.readline(_HEADER_BYTES) for _ in range(delivery.skip_lines or 0)]
    if not delivery.has_header:
        return b"".join(lines), b""
    while line := content.readline(_HEADER_BYTES):
        lines.append(line)
        plain = line.removeprefix(codecs.BOM_UTF8).strip()
        if plain and not (comment and plain.startswith(comment)):
            if delivery.quote_character and line.count(delivery.quote_character.encode()) % 2:
                raise UnreadableFileError("a ZIP archive of files with a header of several lines")
            return b"".join(lines), plain
    return b"".join(lines), b""


def _head(file: BinaryIO) -> bytes:
    head = file.read(_SNIFF_BYTES)
    file.seek(0)
    return head


def _check_content(head: bytes, file_format: str) -> None:
    magic = _MAGIC.get(file_format)
    if magic is not None:
        if not head.startswith(magic):
            raise UnreadableFileError(f"not {file_format}: it starts with {head[:8]!r}")
        return
    kind = next((name for start, name in _FOREIGN if head.startswith(start)), None)
    if kind is not None:
        raise UnreadableFileError(f"not {file_format}: it is {kind}")
    if b"\0" in head and _ODD_SHARE * _odd(head) > len(head):
        raise UnreadableFileError(f"not {file_format}: it has many NUL bytes, so it is not text")


def _odd(head: bytes) -> int:
    """How many NUL bytes and bytes that are not UTF-8 it has: a value may hold a few."""
    return head.count(b"\0") + head.decode("utf-8", "replace").count("\ufffd")
