"""The files that settings are proposed for, in families of names, and what of them is looked at.

A family is looked at whole up to `SAMPLE_BYTES` of its content, decompressed. Of a longer text half
of that is its start, the rest is spread over the file; of many files some are taken, the first and
the last among them. Typed files (Parquet, ORC, Avro) are read up to `SAMPLE_RECORDS` records.
"""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files import glob_pattern, is_unfinished
from polynya.formats.opening import ContentLimit, codec_of, pieces_of, source_of
from polynya.formats.workbooks import opened_workbook
from polynya.formats.zip_members import (
    EXPORT,
    WORKBOOK,
    chosen,
    document_of,
    members_of,
    opened_archive,
    pieces_of_member,
    suffix_of,
)
from polynya.formats.zip_members import START as ZIP_START
from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.configuration import NO_SETTINGS_FROM_FILE
from polynya.model.errors import ConfigError
from polynya.model.names import S3Location, parse_location
from polynya.observe.events import counted
from polynya.proposal.settings import ProposedSetting
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.store.places import store_at

#: Bytes of the content of a family that are looked at.
SAMPLE_BYTES: Final = 16 * 1024 * 1024
#: Records of typed files that are looked at.
SAMPLE_RECORDS: Final = 300_000
#: Files of a family that are looked at.
SAMPLE_FILES: Final = 8
#: Places of a long file, besides its start.
_PLACES: Final = 16
_MOST_FILES: Final = 10_000
_HEAD_BYTES: Final = 8192
_WILD: Final = re.compile(r"[*?\[]")
_LINE_ENDS: Final = b"\n"
#: Bytes of a character in encodings of several, the zeros in that of a Latin letter.
_WIDE: Final[Mapping[str, tuple[int, bytes]]] = {
    "utf-16-le": (2, b"\n\0"),
    "utf-16-be": (2, b"\0\n"),
    "utf-32-le": (4, b"\n\0\0\0"),
    "utf-32-be": (4, b"\0\0\0\n"),
}


@dataclass(frozen=True, slots=True)
class FileFamily:
    """Files that one dataset reads.

    Attributes:
        name: of the dataset.
        glob: what names its files below its folder.
        files: paths in the store, in their order.
    """

    name: str
    glob: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Where files are.

    Attributes:
        store: holds them.
        families: what they are, each for one dataset.
        place: the folder of the store on S3; None for local files, which are copied.
        shown: how the files are called in messages, by path.
    """

    store: ObjectStore
    families: tuple[FileFamily, ...]
    place: S3Location | None
    shown: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SampleFile:
    """What is looked at of one file.

    Attributes:
        path: in the store.
        kind: `parquet`, `orc`, `avro`, `excel`, or `text`.
        size: bytes as they are stored.
        compression: the name of the archive, "" for none.
        content: of a text, in its encoding; empty for others. Of a ZIP archive one file in it,
        is_whole: the content is all of it.
            and of a workbook the rows of a sheet as lines of JSON.
        settings: of the landing, by which the content was found: `zip_member`, `sheet`.
    """

    path: str
    kind: str
    size: int
    compression: str = ""
    content: bytes = b""
    is_whole: bool = True
    settings: Mapping[str, ProposedSetting] = field(default_factory=dict)


def found_files(place: str) -> FoundFiles:
    """The files of a path, a folder, a glob or `s3://BUCKET/PREFIX`, which may be a glob.

    Raises:
        ConfigError: POLYNYA-CLI-005, nothing is there.
    """
    if place.startswith("s3://"):
        return _on_s3(place)
    path = Path(place).expanduser()
    if path.is_file():
        # The link's own name, and the folder of the file that it leads to.
        real = path.resolve()
        if is_unfinished(path.name):
            _refuse(place, "its name says that it is hidden or not complete", "rename the file")
        suffixes = "".join(Path(path.name).suffixes[-2:]) if _is_archive(path) else path.suffix
        stem = path.name.removesuffix(suffixes)
        name = _family_name(_VARYING.sub("*", stem), name_of(path.resolve().parent.name))
        family = FileFamily(name, f"*{suffixes}", (real.name,))
        return FoundFiles(LocalObjectStore(real.parent), (family,), None, {real.name: place})
    if path.is_dir():
        return _below(LocalObjectStore(path), "**", None, name_of(path.resolve().name), place)
    root, glob = _root_and_glob(place)
    if not glob or not Path(root or ".").is_dir():
        _refuse(place, "no such file", "check the path")
    folder = Path(root or ".")
    return _below(LocalObjectStore(folder), glob, None, name_of(folder.resolve().name), place)


def _is_archive(path: Path) -> bool:
    archives = {".gz", ".bz2", ".xz", ".zst", ".snappy"}
    return path.suffix.lower() in archives and len(path.suffixes) > 1


def _root_and_glob(place: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest; "" without a wildcard."""
    match = _WILD.search(place)
    if match is None:
        return place, ""
    root, slash, _ = place[: match.start()].rpartition("/")
    return root + (slash if not root else ""), place[len(root) + len(slash) :]


def _on_s3(place: str) -> FoundFiles:
    root, glob = _root_and_glob(place)
    location = parse_location(root, Path(), "--from")
    assert isinstance(location, S3Location)
    store = store_at(location, AwsAccess())
    if not glob and location.prefix and not next(iter(store.list()), None):
        # Not a folder: one object.
        folder, _, glob = location.prefix.rpartition("/")
        location = S3Location(location.bucket, folder)
        store = store_at(location, AwsAccess())
    if not location.prefix:
        fix = "name a folder of the bucket, as in `s3://acme-landing/orders/`"
        _refuse(place, "a task reads a folder, not the root of a bucket", fix)
    name = name_of(location.prefix.rpartition("/")[2])
    return _below(store, glob or "**", location, name, place)


def _below(
    store: ObjectStore, glob: str, location: S3Location | None, name: str, place: str
) -> FoundFiles:
    """The files of a store that a glob names, in families."""
    pattern = glob_pattern(glob)
    paths: list[str] = []
    for info in store.list():
        if info.size and not is_unfinished(info.path) and pattern.fullmatch(info.path):
            paths.append(info.path)
        if len(paths) > _MOST_FILES:
            fix = "name fewer with a glob, as in `data/orders_*.csv`"
            _refuse(place, f"it has more than {_MOST_FILES:,} files", fix)
    if not paths:
        _refuse(place, "no file with content is there", "check the path or the glob")
    families = families_of(paths, name)
    if location is None:
        families = tuple(map(_in_own_folder, families))
    else:
        _check_apart(families, place)
    return FoundFiles(store, families, location, {path: f"{place}: {path}" for path in paths})


def _in_own_folder(family: FileFamily) -> FileFamily:
    """A family whose files have a landing folder to themselves: any name of its kind is one."""
    if "*" in family.glob or "/" in family.glob:
        return family
    _, dot, suffix = family.glob.partition(".")
    return replace(family, glob=f"*{dot}{suffix}")


def _check_apart(families: Sequence[FileFamily], place: str) -> None:
    """Refuse families of one folder of which one reads files of another. Raises ConfigError."""
    for family in families:
        pattern = glob_pattern(family.glob)
        for other in families:
            if other is not family and any(map(pattern.fullmatch, other.files)):
                fix = "name the files of one kind with a glob, as in `s3://acme/shop/orders_2*.csv`"
                reason = f"`{family.glob}` names files of `{other.glob}`, too"
                _refuse(place, reason, fix)


_UUID: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
#: What differs between the names of files of one kind: numbers, dates, times, identifiers.
_VARYING: Final = re.compile(rf"{_UUID}|(?<![A-Za-z])[0-9a-f]{{12,}}(?![A-Za-z])|\d+(?:T(?=\d))?")


def families_of(paths: Iterable[str], name: str) -> tuple[FileFamily, ...]:
    """Files by what their names have in common; `name` is that of files without a word."""
    by_glob: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        stem, dot, suffix = (
            path.rpartition(".") if "." in path.rpartition("/")[2] else (path, "", "")
        )
        glob = re.sub(r"\*(?:[-_.:T ]?\*)+", "*", _VARYING.sub("*", stem))
        by_glob[f"{glob}{dot}{suffix}"].append(path)
    found: list[FileFamily] = []
    taken: set[str] = set()
    for glob, files in by_glob.items():
        own = unique = _family_name(glob, name)
        number = 1
        while unique.lower() in taken:
            number += 1
            unique = f"{own}_{number}"
        taken.add(unique.lower())
        found.append(FileFamily(unique, glob, tuple(files)))
    return tuple(found)


def _family_name(glob: str, name: str) -> str:
    """The last part of a path that has a word of its own, else the name of the folder."""
    *folders, file = glob.split("/")
    stem = file.split(".", maxsplit=1)[0]
    for part in (stem, *reversed(folders)):
        word = part.partition("=")[0].replace("*", "").strip("-_. ")
        if re.search(r"[^\W\d]", word) and word.lower() not in {"part", "data", "file", "export"}:
            return name_of(word)
    return name


def name_of(text: str) -> str:
    """A name of a project, task or dataset: other characters become `_`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "project"
    return (f"_{name}" if name[0].isdigit() else name)[:128]


def sampled(found: FoundFiles, family: FileFamily) -> list[SampleFile]:
    """What is looked at of a family.

    Raises:
        ConfigError: POLYNYA-CLI-005, a file cannot be read, or holds no records that a task reads.
    """
    chosen = _spread_files(family.files)
    each = SAMPLE_BYTES // len(chosen)
    return [_sample(found, path, each) for path in chosen]


def _spread_files(files: Sequence[str]) -> list[str]:
    if len(files) <= SAMPLE_FILES:
        return list(files)
    last = len(files) - 1
    return [files[round(number * last / (SAMPLE_FILES - 1))] for number in range(SAMPLE_FILES)]


def _sample(found: FoundFiles, path: str, most: int) -> SampleFile:
    shown = found.shown[path]
    try:
        with source_of(found.store, path) as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            return _looked_at(file, path, shown, size, most)
    except UnreadableFileError as error:
        _refuse(shown, str(error), "check the file, and send it again")
    except OSError as error:
        _refuse(shown, error.strerror or str(error), "check the file and its rights")


def _looked_at(file: BinaryIO, path: str, shown: str, size: int, most: int) -> SampleFile:
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    codec = codec_of(head, path)
    if ZIP_START.match(head):
        return _in_archive(file, path, shown, size, most)
    if codec is None:
        refuse_foreign(head, shown)
        kind = _KINDS.get(head[:4], _KINDS.get(head[:3], "text"))
        if kind != "text":
            return SampleFile(path, kind, size)
        content, is_whole = _spread(file, size, most)
        return SampleFile(path, kind, size, content=content, is_whole=is_whole)
    content, is_whole = _begun(pieces_of(file, codec), most)
    refuse_foreign(content[:_HEAD_BYTES], shown)
    kind = _KINDS.get(content[:4], _KINDS.get(content[:3], "text"))
    if kind == "text" and not is_whole:
        content = _whole_lines(content)
    text = content if kind == "text" else b""
    return SampleFile(path, kind, size, codec.name, text, is_whole=is_whole or kind != "text")


#: Endings of files with data, for archives with others beside them.
_DATA_SUFFIXES: Final = frozenset(
    {".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".geojson", ".parquet", ".avro", ".orc"}
)


def _in_archive(file: BinaryIO, path: str, shown: str, size: int, most: int) -> SampleFile:
    """What is looked at of a ZIP archive: its first file with data. Raises UnreadableFileError."""
    with opened_archive(file) as archive:
        members = members_of(archive)
        document = document_of([one.filename for one in members])
        if document == WORKBOOK:
            return _of_workbook(file, path, shown, size, most)
        if document is not None:
            _refuse(shown, f"it is {document}", EXPORT)
        setting = _zip_member(members)
        first = chosen(members, None if setting is None else str(setting.value))[0]
        content, is_whole = _begun(pieces_of_member(archive, first), most)
    refuse_foreign(content[:_HEAD_BYTES], f"{shown}: {first.filename}")
    kind = _KINDS.get(content[:4], _KINDS.get(content[:3], "text"))
    text = b"" if kind != "text" else content if is_whole else _whole_lines(content)
    whole = is_whole or kind != "text"
    settings = {} if setting is None else {"zip_member": setting}
    return SampleFile(path, kind, size, "ZIP", text, is_whole=whole, settings=settings)


#: Rows of each sheet that are compared.
_MOST_ROWS: Final = 1_000
_MOST_TITLE_ROWS: Final = 100


def _of_workbook(file: BinaryIO, path: str, shown: str, size: int, most: int) -> SampleFile:
    """What is looked at of a workbook: the sheet with most rows. Raises UnreadableFileError."""
    file.seek(0)
    book = opened_workbook(file, ContentLimit("a workbook", size).checked)
    counts = {sheet: sum(1 for _ in islice(book.rows(sheet), _MOST_ROWS)) for sheet in book.sheets}
    if not any(counts.values()):
        _refuse(shown, "it holds no records", "give a file with records")
    sheet = max(counts, key=lambda one: counts[one])
    settings: dict[str, ProposedSetting] = {}
    if len(counts) > 1:
        others = counted(len(counts) - 1, "other visible sheet")
        settings["sheet"] = ProposedSetting(sheet, f"has most rows; {others}: not read")
    rows = list(islice(book.rows(sheet), _MOST_TITLE_ROWS))
    widest = max(len(cells) for _, cells in rows)
    names = next(number for number, cells in rows if _may_name(cells, widest))
    skip = max((number for number, _ in rows if number < names), default=0)
    if skip:
        settings["skip_lines"] = ProposedSetting(skip, "rows before the names, with a title")
    content, _ = _begun(book.lines(sheet, skip), most)
    return SampleFile(path, "excel", size, content=_whole_lines(content), settings=settings)


def _may_name(cells: Mapping[int, str], widest: int) -> bool:
    """Whether a row has about as many cells as the widest, or one less, all texts: row names."""
    texts = all(value.startswith('"') for value in cells.values())
    return 5 * len(cells) >= 4 * widest or (texts and widest > 2 and len(cells) == widest - 1)


def _zip_member(members: Sequence[zipfile.ZipInfo]) -> ProposedSetting | None:
    """Which files of an archive hold the data; None where all are of one kind."""
    suffixes = {suffix_of(one.filename) for one in members}
    sizes = {
        suffix: sum(one.file_size for one in members if suffix_of(one.filename) == suffix)
        for suffix in suffixes & _DATA_SUFFIXES
    }
    if len(suffixes) < 2 or not sizes:
        return None
    wanted = max(sizes, key=lambda suffix: sizes[suffix])
    others = sum(suffix_of(one.filename) != wanted for one in members)
    suffix = next(one.filename for one in members if suffix_of(one.filename) == wanted)
    reason = f"{counted(others, 'other file')} in the archive: not read"
    return ProposedSetting(f"*{suffix[-len(wanted) :]}", reason)


_KINDS: Final = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}


def _begun(pieces: Iterator[bytes], most: int) -> tuple[bytes, bool]:
    """The start of a content, and whether it is all."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > most:
            return b"".join(held)[:most], False
    return b"".join(held), True


def _spread(file: BinaryIO, size: int, most: int) -> tuple[bytes, bool]:
    """The content of a text, or its start and lines of places all over it.

    Only the start where lines may be parts of records, or characters have two bytes.
    """
    if size <= most:
        return file.read(), True
    head = _whole_lines(file.read(most // 2))
    first = head.lstrip()[:1]
    if wide_encoding(head) or first == b"[" or _joins_lines(head):
        file.seek(0)
        return _whole_lines(file.read(most)), False
    parts = [head]
    each = most // 2 // _PLACES
    for number in range(1, _PLACES + 1):
        file.seek(len(head) + (size - len(head) - each) * number // _PLACES)
        piece = file.read(each)
        begin = piece.find(_LINE_ENDS) + 1
        parts.append(_whole_lines(piece[begin:]) if begin else b"")
    return b"".join(parts), False


def _joins_lines(head: bytes) -> bool:
    """Whether a line has an odd number of quotes: a field may go on in the next line."""
    return any(line.count(b'"') % 2 or line.count(b"'") % 2 for line in head.split(_LINE_ENDS))


def wide_encoding(content: bytes) -> str | None:
    """The encoding of a text in UTF-16 or UTF-32, with its order; None: it is in another one.

    By the byte order mark, or by the zeros in the characters of an ordinary text.
    """
    for mark, name in _ORDER_MARKS:
        if content.startswith(mark):
            return name
    head = content[:_HEAD_BYTES]
    zeros = tuple(head[place::4].count(0) * 4 > 3 * len(head) // 4 for place in range(4))
    return _ZEROS.get(zeros) if len(head) >= 8 else None


#: At which of four bytes nearly all are zero.
_ZEROS: Final[Mapping[tuple[bool, ...], str]] = {
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
}
#: The longer ones first: that of UTF-16 is the beginning of one of UTF-32.
_ORDER_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip


def _whole_lines(content: bytes) -> bytes:
    """The content up to its last line end."""
    wide = wide_encoding(content)
    if wide is None:
        return content[: content.rfind(_LINE_ENDS) + 1] or content
    width, end = _WIDE[wide]
    at = content.rfind(end)
    while at > 0 and at % width:
        at = content.rfind(end, 0, at + len(end) - 1)
    return content[: at + width] if at > 0 else content[: len(content) // width * width]


#: How files begin that hold no records that a task reads, what they are, and what to do.
_FOREIGN: Final[tuple[tuple[bytes, str, str], ...]] = (
    (b"\xd0\xcf\x11\xe0", "an old Office file, such as an Excel workbook (.xls)", EXPORT),
    (b"%PDF", "a PDF document", "ask for the data as CSV, JSON or Parquet"),
    (b"\x89PNG", "a PNG image", "give the file with the data"),
    (b"\xff\xd8\xff", "a JPEG image", "give the file with the data"),
    (b"GIF8", "a GIF image", "give the file with the data"),
    (b"RIFF", "an image, a sound or a film", "give the file with the data"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "unpack it: `7z x FILE`"),
    (b"Rar!", "a RAR archive", "unpack it"),
    (b"\x7fELF", "a program", "give the file with the data"),
    (b"SQLite format 3", "an SQLite database",
     "export its tables: `sqlite3 -csv -header FILE 'SELECT * FROM …'`"),
    (b"ARROW1", "an Arrow (Feather) file", "write it as Parquet"),
    (b"\x89HDF", "an HDF5 file", "write its tables as Parquet or CSV"),
    (b"<stata_dta>", "a Stata file", "write it as CSV or Parquet"),
    (b"$FL2", "an SPSS file", "write it as CSV or Parquet"),
    (b"RDX", "R data", "write it with `write.csv` or as Parquet"),
    (b"<!DOCTYPE html", "a web page",
     "it may be the answer of a server that wanted a login: download the data itself"),
    (b"<html", "a web page",
     "it may be the answer of a server that wanted a login: download the data itself"),
    (b"<", "an XML document", "convert it to JSON lines or CSV"),
)  # fmt: skip
_CONTROLS: Final = frozenset(range(32)) - frozenset(b"\t\n\f\r")
_TAR_MARK: Final = slice(257, 262)


def refuse_foreign(head: bytes, shown: str) -> None:
    """Refuse a file that no task reads, by its first bytes. Raises ConfigError."""
    if head[_TAR_MARK] == b"ustar":
        fix = "unpack it into a folder, then give the folder: `tar -xf FILE -C FOLDER`"
        _refuse(shown, "it is a tar archive of several files", fix)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for begin, what, fix in _FOREIGN:
        if start[: len(begin)].lower() == begin.lower():
            _refuse(shown, f"it is {what}", fix)
    is_known = head[:4] in _KINDS or head[:3] in _KINDS or wide_encoding(head) is not None
    odd = sum(byte in _CONTROLS for byte in head)
    if b"\0" in head and not is_known and 20 * odd > len(head):
        _refuse(shown, "it is not text, and of no known format", "give CSV, JSON or Parquet")


def _refuse(shown: str, reason: str, fix: str) -> NoReturn:
    raise no_settings(shown, reason, fix)


def no_settings(shown: str, reason: str, fix: str) -> ConfigError:
    """The error of a file that nothing can be proposed for."""
    return NO_SETTINGS_FROM_FILE(where=shown, reason=reason, fix=fix)


@dataclass(frozen=True, slots=True)
class SampleStore:
    """The sample as files that a run could read, and which they are.

    Attributes:
        store: holds them.
        parts: (path, size) of each.
    """

    store: ObjectStore
    parts: tuple[tuple[str, int], ...]
    is_whole: bool


def sample_store(found: FoundFiles, files: Sequence[SampleFile], folder: Path) -> SampleStore:
    """Typed files and whole texts where they are, parts of others in a folder of ours."""
    if all(file.is_whole for file in files):
        parts = tuple((file.path, file.size) for file in files)
        return SampleStore(found.store, parts, is_whole=True)
    parts = ()
    for number, file in enumerate(files):
        name = f"{number:02d}"
        (folder / name).write_bytes(file.content)
        parts = (*parts, (name, len(file.content)))
    return SampleStore(LocalObjectStore(folder), parts, is_whole=False)
