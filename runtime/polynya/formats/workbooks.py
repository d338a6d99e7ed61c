"""Excel workbooks (.xlsx, .xlsm): the rows of a sheet as lines of JSON.

A workbook is a ZIP archive with parts of XML (ECMA-376). The parts are read as streams; only the
texts that cells share are held. A document type is refused, so there are no entities.

A cell with an error is its text, such as `#DIV/0!`: a column of numbers rejects that row.
"""

from __future__ import annotations

import json
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, BinaryIO, Final, TypeAlias
from xml.parsers import expat

from polynya.formats.errors import UnreadableFileError
from polynya.formats.zip_members import START, document_of, opened_archive, pieces_of_member
from polynya.model.names import shown

#: What Excel itself allows.
_MOST_COLUMNS: Final = 16_384
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_PLACE: Final = re.compile(r"([A-Z]{1,3})\d{1,7}", re.ASCII)
_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
#: Text, colours and the like in a format of numbers.
_NOT_A_FORMAT: Final = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)
#: The formats of dates and times that have numbers of their own.
_BUILT_IN: Final[Mapping[int, str]] = {
    **dict.fromkeys((14, 15, 16, 17), "date"),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), "time"),
    22: "moment",
    46: "duration",
}
_DAY_MS: Final = 86_400_000
#: The number of a row, and values as JSON by column.
Row: TypeAlias = tuple[int, dict[int, str]]


@dataclass(slots=True)
class Workbook:
    """An opened workbook.

    Attributes:
        archive: its parts.
        sheets: the part of each visible sheet, by name, in their order.
        strings: texts that cells share, as JSON.
        styles: what the numbers of a style are, by its place: `date` and so on, "" for numbers.
        is_1904: days are counted from 1 January 1904.
        checked: applies the limit of the file to the content of a part.
    """

    archive: zipfile.ZipFile
    checked: Callable[[Iterable[bytes]], Iterator[bytes]]
    sheets: dict[str, str] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    is_1904: bool = False

    def rows(self, sheet: str) -> Iterator[Row]:
        """Rows with a value: their number from 1, and values as JSON by column from 0."""
        reader = _Rows(self)
        for _ in self._parsed(self.sheets[sheet], reader):
            yield from reader.found
            reader.found.clear()

    def lines(self, sheet: str | None, skip: int) -> Iterator[bytes]:
        """A line of JSON for each row below the names, which stand in the first row after `skip`.

        A column to the left of all names is called by its letter, `column_A`.

        Raises:
            UnreadableFileError: which sheet is not said, names occur twice, or a value stands in
                another column without a name.
        """
        rows = ((number, cells) for number, cells in self.rows(self.chosen(sheet)) if number > skip)
        first = next(rows, None)
        if first is None:
            return
        names = _names(*first)
        leftmost = min(names)
        for number, cells in rows:
            for column in sorted(cells.keys() - names.keys()):
                own = json.dumps(f"column_{_letters(column)}")
                if column < leftmost and own not in names.values():
                    # Where pandas and R write the number or the name of a row.
                    names[column] = own
                    continue
                raise UnreadableFileError(
                    f"row {number:,} has a value in column {_letters(column)}, which has no name "
                    f"in row {first[0]:,}: name it, or set `skip_lines` to the rows above the names"
                )
            pairs = (f"{name}:{cells.get(column, 'null')}" for column, name in names.items())
            yield f"{{{','.join(pairs)}}}\n".encode()

    def chosen(self, sheet: str | None) -> str:
        """The sheet with the data. Raises UnreadableFileError: it is not there, or not said."""
        listed = ", ".join(map(shown, list(self.sheets)[:10]))
        if sheet is not None:
            if sheet not in self.sheets:
                raise UnreadableFileError(
                    f"the workbook has no visible sheet {shown(sheet)}, as `sheet` says; "
                    f"it has {listed}"
                )
            return sheet
        if len(self.sheets) != 1:
            raise UnreadableFileError(
                f"the workbook has {len(self.sheets)} visible sheets: set `sheet` to one of them, "
                f"{listed}"
            )
        return next(iter(self.sheets))

    def read_parts(self) -> None:
        """Read which sheets there are, shared texts and styles. Raises UnreadableFileError."""
        names = set(self.archive.namelist())
        main = next((name for name in sorted(names) if _MAIN.fullmatch(name)), None)
        if document_of(list(names)) is None or main is None:
            raise UnreadableFileError("not excel: it is another ZIP archive")
        folder, _, file = main.rpartition("/")
        links = _Links(folder)
        self._read(f"{folder}/_rels/{file}.rels", links)
        book = _Book()
        self._read(main, book)
        self.is_1904 = book.is_1904
        self.sheets = {
            name: links.parts[link]
            for name, link in book.sheets.items()
            if links.kinds.get(link) == "worksheet"
        }
        for link, kind in links.kinds.items():
            if kind == "sharedStrings":
                strings = _Strings()
                self._read(links.parts[link], strings)
                self.strings = strings.found
            elif kind == "styles":
                styles = _Styles()
                self._read(links.parts[link], styles)
                self.styles = styles.kinds

    def _read(self, part: str, reader: _Reader) -> None:
        for _ in self._parsed(part, reader):
            pass

    def _parsed(self, part: str, reader: _Reader) -> Iterator[None]:
        """Parse a part piece by piece. Raises UnreadableFileError."""
        try:
            member = self.archive.getinfo(part)
        except KeyError:
            raise UnreadableFileError(f"broken workbook: it has no part {shown(part)}") from None
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, given: reader.start(
            name.rpartition(" ")[2], {key.rpartition(" ")[2]: value for key, value in given.items()}
        )
        parser.EndElementHandler = lambda name: reader.end(name.rpartition(" ")[2])
        parser.CharacterDataHandler = reader.text
        parser.StartDoctypeDeclHandler = _refuse_document_type
        try:
            for piece in self.checked(pieces_of_member(self.archive, member)):
                parser.Parse(piece, False)  # noqa: FBT003 - expat takes it so
                yield
            parser.Parse(b"", True)  # noqa: FBT003 - likewise
            yield
        except (expat.ExpatError, LookupError, ValueError, ArithmeticError) as error:
            raise UnreadableFileError(f"broken workbook: {shown(part)}: {error}") from error


_MAIN: Final = re.compile(r"xl/workbook\d*\.xml")


def _refuse_document_type(*_: object) -> None:
    raise ValueError("it has a document type")


def opened_workbook(
    file: BinaryIO, checked: Callable[[Iterable[bytes]], Iterator[bytes]]
) -> Workbook:
    """A workbook with its sheets; `checked` limits what its parts may expand to.

    Raises:
        UnreadableFileError: it is none, or is damaged.
    """
    head = file.read(8)
    file.seek(0)
    if not START.match(head):
        old = head.startswith(b"\xd0\xcf\x11\xe0")
        what = "an old Office file: save it as .xlsx" if old else f"it starts with {head!r}"
        raise UnreadableFileError(f"not excel: {what}")
    found = Workbook(opened_archive(file), checked)
    found.read_parts()
    return found


class _Reader:
    """What is done with the elements of a part."""

    def start(self, name: str, given: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """It ends."""

    def text(self, text: str) -> None:
        """Text in it."""


class _Links(_Reader):
    """The parts that a part names, and what they are, by their links."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.parts: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    def start(self, name: str, given: Mapping[str, str]) -> None:
        if name == "Relationship" and given.get("TargetMode") != "External":
            target = posixpath.join(f"/{self._folder}", given.get("Target", ""))
            self.parts[given.get("Id", "")] = posixpath.normpath(target).lstrip("/")
            self.kinds[given.get("Id", "")] = given.get("Type", "").rpartition("/")[2]


class _Book(_Reader):
    """The visible sheets, each with its link, and from when days are counted."""

    def __init__(self) -> None:
        self.sheets: dict[str, str] = {}
        self.is_1904 = False

    def start(self, name: str, given: Mapping[str, str]) -> None:
        if name == "sheet" and given.get("state", "visible") == "visible":
            self.sheets[given.get("name", "")] = given.get("id", "")
        elif name == "workbookPr":
            self.is_1904 = given.get("date1904", "0") in {"1", "true"}


class _Strings(_Reader):
    """Texts, without the readings of their characters."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._parts: list[str] = []
        self._is_text = self._is_reading = False

    def start(self, name: str, given: Mapping[str, str]) -> None:
        del given
        if name == "rPh":
            self._is_reading = True
        self._is_text = name == "t" and not self._is_reading

    def end(self, name: str) -> None:
        self._is_text = False
        if name == "rPh":
            self._is_reading = False
        elif name == "si":
            self.found.append(_as_json("".join(self._parts)))
            self._parts.clear()

    def text(self, text: str) -> None:
        if self._is_text:
            self._parts.append(text)


def _as_json(text: str) -> str:
    """A text as JSON; what XML cannot hold is escaped in it. An empty one is NULL."""
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return json.dumps(plain) if plain else "null"


class _Styles(_Reader):
    """What the numbers of each style are."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self._formats: dict[int, str] = dict(_BUILT_IN)
        self._is_of_cells = False

    def start(self, name: str, given: Mapping[str, str]) -> None:
        if name == "numFmt":
            self._formats[int(given["numFmtId"])] = _kind_of(given.get("formatCode", ""))
        elif name == "cellXfs":
            self._is_of_cells = True
        elif name == "xf" and self._is_of_cells:
            self.kinds.append(self._formats.get(int(given.get("numFmtId", "0")), ""))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._is_of_cells = False


def _kind_of(code: str) -> str:
    """Whether a format writes a date, a time, both, or a duration; "" for a number."""
    plain = _NOT_A_FORMAT.sub("", code.partition(";")[0]).lower()
    if re.search(r"\[[hms]+\]", plain):
        return "duration"
    has_time = re.search("[hs]", plain) is not None
    has_date = re.search("[yd]", plain) is not None or ("m" in plain and not has_time)
    if "general" in plain:
        return ""
    return "moment" if has_date and has_time else "date" if has_date else "time" if has_time else ""


class _Rows(_Reader):
    """Rows with their values as JSON."""

    def __init__(self, book: Workbook) -> None:
        self._book = book
        self.found: list[Row] = []
        self._number = 0
        self._cells: dict[int, str] = {}
        self._column = -1
        self._kind, self._style = "n", 0
        self._parts: list[str] = []
        self._is_value = self._is_reading = False

    def start(self, name: str, given: Mapping[str, str]) -> None:
        if name == "row":
            self._number = int(given.get("r", self._number + 1))
            self._cells, self._column = {}, -1
        elif name == "c":
            place = _PLACE.fullmatch(given.get("r", ""))
            self._column = self._column + 1 if place is None else _index(place[1])
            if self._column >= _MOST_COLUMNS:
                raise ValueError("more columns than a sheet has")
            self._kind, self._style = given.get("t", "n"), int(given.get("s", "0"))
            self._parts = []
        elif name == "rPh":
            self._is_reading = True
        self._is_value = name in {"v", "t"} and not self._is_reading

    def end(self, name: str) -> None:
        self._is_value = False
        if name == "rPh":
            self._is_reading = False
        elif name == "c":
            value = self._value("".join(self._parts))
            if value != "null":
                self._cells[self._column] = value
        elif name == "row" and self._cells:
            self.found.append((self._number, self._cells))

    def text(self, text: str) -> None:
        if self._is_value:
            self._parts.append(text)

    def _value(self, text: str) -> str:
        if self._kind == "s":
            return self._book.strings[int(text)] if text else "null"
        if self._kind == "b":
            return "true" if text == "1" else "false"
        if self._kind != "n":
            return _as_json(text)
        if not text:
            return "null"
        kinds = self._book.styles
        kind = kinds[self._style] if self._style < len(kinds) else ""
        made = _moment(text, kind, is_1904=self._book.is_1904) if kind else None
        if made is not None:
            return made
        return text if _NUMBER.fullmatch(text) else repr(float(text))


def _index(letters: str) -> int:
    found = 0
    for letter in letters:
        found = 26 * found + ord(letter) - 64
    return found - 1


def _letters(column: int) -> str:
    text, column = "", column + 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def _moment(text: str, kind: str, *, is_1904: bool) -> str | None:
    """A date or time as JSON, in ISO 8601; None for a number that is none: it stays a number."""
    number = float(text)
    millis = round(number * _DAY_MS)
    if kind == "duration" or (kind == "time" and 0 <= number < 1):
        return f'"{_clock(millis)}"' if millis >= 0 else None
    days, rest = divmod(millis, _DAY_MS)
    # Day 60 is 29 February 1900, which was none: days before it are counted from a day later.
    if not 0 <= days < 2_958_466 or (not is_1904 and days == 60):
        return None
    start = date(1904, 1, 1) if is_1904 else date(1899, 12, 30 if days > 60 else 31)
    try:
        day = start + timedelta(days=days)
    except OverflowError:
        return None
    if kind == "date" and not rest:
        return f'"{day.isoformat()}"'
    moment = datetime.combine(day, datetime.min.time()) + timedelta(milliseconds=rest)
    return f'"{moment.isoformat()}"'


def _clock(millis: int) -> str:
    """Hours, minutes and seconds; hours may be more than a day has."""
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:03d}" if rest else text


def _names(number: int, cells: Mapping[int, str]) -> dict[int, str]:
    """The names of columns, as JSON, out of the cells of a row. Raises UnreadableFileError."""
    names: dict[int, str] = {}
    for column, value in sorted(cells.items()):
        found: Any = json.loads(value)
        name = json.dumps(found if isinstance(found, str) else value)
        if name in names.values():
            raise UnreadableFileError(
                f"row {number:,} names two columns {shown(json.loads(name))}: rename one of them"
            )
        names[column] = name
    return names
