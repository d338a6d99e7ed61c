"""ZIP archives: which members hold the data, and their content, within limits.

Nothing is unpacked to a path: names in an archive choose members and are shown, no more. The table
of contents is measured before it is read, for it may name any number of members.
"""

from __future__ import annotations

import errno
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import SEEK_END
from typing import BinaryIO, Final

from polynya.formats.errors import UnreadableFileError
from polynya.model.names import shown
from polynya.model.patterns import any_text

#: How archives begin; the second is one without members.
START: Final = re.compile(rb"PK(?:\x03\x04|\x05\x06)")
_MOST_MEMBERS: Final = 10_000
#: Bytes of the table of contents of so many members with long names.
_MOST_TABLE_BYTES: Final = 4 * 1024 * 1024
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONGEST_COMMENT: Final = 65_535
_END_64: Final = b"PK\x06\x06"
_ELSEWHERE: Final = 0xFFFFFFFF
_LOCATOR_BYTES: Final = 20
_END_64_BYTES: Final = 56
_PIECE_BYTES: Final = 1024 * 1024
#: Others may ask for gigabytes of memory.
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})
_ENCRYPTED: Final = 0x1
_SHOWN: Final = 5
#: What macOS and programs for files leave in archives.
_HIDDEN: Final = re.compile(r"(?:^|/)(?:__MACOSX/|\.|_|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
#: What `zipfile` raises for a damaged archive: NotImplementedError for a version of ZIP that it
#: lacks, RuntimeError for a member with a password.
DAMAGED_ZIP: Final = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    struct.error,
)  # fmt: skip


@contextmanager
def _damaged(what: str) -> Iterator[None]:
    """Raise UnreadableFileError for damage: not for a store that cannot read now."""
    try:
        yield
    except DAMAGED_ZIP as error:
        raise UnreadableFileError(f"{what}: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # A place in the archive that cannot be.
        raise UnreadableFileError(f"{what}: a member begins outside of it") from None


def opened_archive(file: BinaryIO) -> zipfile.ZipFile:
    """An archive whose table of contents has a size that can be meant.

    Raises:
        UnreadableFileError: it is damaged, or has too many members.
    """
    size, counts = _table_of_contents(file)
    if size > _MOST_TABLE_BYTES:
        raise UnreadableFileError(
            f"a ZIP archive with a table of contents of {size:,} bytes, at most "
            f"{_MOST_TABLE_BYTES:,} are read: land its files in several archives"
        )
    with _damaged("broken ZIP archive"):
        archive = zipfile.ZipFile(file)
    if len(archive.infolist()) not in counts:
        raise UnreadableFileError("broken ZIP archive: its table of contents is not whole")
    return archive


def _table_of_contents(file: BinaryIO) -> tuple[int, set[int]]:
    """How many bytes the table of contents says that it has, at most, and how many members."""
    length = file.seek(0, SEEK_END)
    tail_bytes = min(length, _LONGEST_COMMENT + _END_BYTES + _LOCATOR_BYTES + _END_64_BYTES)
    file.seek(length - tail_bytes)
    tail = file.read(tail_bytes)
    file.seek(0)
    sizes, counts = [0], set[int]()
    for mark, fields in ((_END, (10, 2, 12, 4)), (_END_64, (32, 8, 40, 8))):
        for found in re.finditer(re.escape(mark), tail):
            record = tail[found.start() :]
            counts.add(int.from_bytes(record[fields[0] :][: fields[1]], "little"))
            size = int.from_bytes(record[fields[2] :][: fields[3]], "little")
            # All ones: the size stands in the larger one of both records.
            sizes.append(0 if size == _ELSEWHERE else size)
    return max(sizes), counts


def members_of(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files in it that people put there, by name. Raises UnreadableFileError: too many."""
    found = archive.infolist()
    if len(found) > _MOST_MEMBERS:
        raise UnreadableFileError(
            f"a ZIP archive of {len(found):,} files, at most {_MOST_MEMBERS:,} are read"
        )
    kept = [one for one in found if not one.is_dir() and not _HIDDEN.search(one.filename)]
    return sorted(kept, key=lambda one: one.filename)


WORKBOOK: Final = "an Excel workbook (.xlsx)"
#: What to do with a spreadsheet that is not read.
EXPORT: Final = "save each sheet as `CSV UTF-8` (Excel: File, Save As; LibreOffice: Save a Copy)"


def document_of(names: Sequence[str]) -> str | None:
    """What a program wrote that stores its documents as ZIP archives; None: an ordinary archive."""
    if any(name.startswith("xl/") for name in names):
        return WORKBOOK
    if "mimetype" in names and "content.xml" in names:
        return "an OpenDocument file, such as a spreadsheet (.ods)"
    if any(name.startswith("word/") for name in names):
        return "a Word document"
    return None


def suffix_of(name: str) -> str:
    """The ending of a name, in small letters: `.csv`."""
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return f".{suffix}".lower() if dot else ""


def chosen(members: Sequence[zipfile.ZipInfo], pattern: str | None) -> list[zipfile.ZipInfo]:
    """The members with the data: those that a pattern names, without one all of one kind.

    Raises:
        UnreadableFileError: there is none, or nothing tells which. The reason says what to set.
    """
    names = [one.filename for one in members]
    document = document_of(names)
    if document is not None:
        what = "land it with `format: excel`" if document == WORKBOOK else EXPORT
        raise UnreadableFileError(f"it is {document}: {what}")
    if pattern is not None:
        expression = any_text(pattern, "*")
        found = [one for one in members if expression.fullmatch(one.filename)]
        if not found:
            raise UnreadableFileError(
                f"no file in the ZIP archive is called like {shown(pattern)}, as `zip_member` "
                f"says; it has {_listed(names)}"
            )
        return found
    if not members:
        raise UnreadableFileError("a ZIP archive without files")
    suffixes = {suffix_of(name) for name in names}
    if len(suffixes) > 1:
        example = next(name for name in names if suffix_of(name))
        raise UnreadableFileError(
            f"a ZIP archive with files of several kinds: {_listed(names)}; set `zip_member`, as in "
            f'`zip_member: "*{suffix_of(example)}"`'
        )
    return list(members)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return (", ".join(map(shown, names[:_SHOWN])) or "no files") + more


def pieces_of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of a member, checked by its checksum. Raises UnreadableFileError."""
    if member.flag_bits & _ENCRYPTED:
        raise UnreadableFileError(
            f"{shown(member.filename)} in the ZIP archive is encrypted: land it without a password"
        )
    if member.compress_type not in _METHODS:
        raise UnreadableFileError(
            f"{shown(member.filename)} in the ZIP archive is compressed by method "
            f"{member.compress_type}: use Deflate"
        )
    with (
        _damaged(f"{shown(member.filename)} in the ZIP archive cannot be read"),
        archive.open(member) as content,
    ):
        while piece := content.read(_PIECE_BYTES):
            yield piece
