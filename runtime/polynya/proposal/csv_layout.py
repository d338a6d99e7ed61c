"""The layout of a CSV file out of its first bytes: dialect, lines before the header, names.

DuckDB's sniffer proposes a dialect. Each candidate is then tried with the reader of a run, and the
one that reads most lines as records of one width wins; on a tie the sniffer's does.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import duckdb

from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.records.csv import CsvDialect, fields, placed_pieces
from polynya.formats.values.names import MAX_COLUMNS, column_problem, reserved_problem
from polynya.model.config.settings import DEFAULT_DELIMITER, DEFAULT_QUOTE
from polynya.model.names import folded
from polynya.observe.events import counted
from polynya.proposal.settings import ProposedSetting

#: Bytes of a file by which dialect and header are decided.
HEAD_BYTES: Final = 256 * 1024
_DELIMITERS: Final = (",", ";", "\t", "|")
_BOM: Final = b"\xef\xbb\xbf"
#: Lines before a header that are taken for a title.
_MOST_TITLE_LINES: Final = 100
_EXCEL: Final = re.compile(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", re.IGNORECASE)
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "1",
}
_DELIMITER_NAMES: Final = {"\t": "tabs", ";": "semicolons", "|": "pipes", " ": "spaces"}


@dataclass(frozen=True, slots=True)
class SniffedDialect:
    """What DuckDB says of a file; "" for nothing."""

    delimiter: str
    quote: str
    escape: str
    has_header: bool


def sniffed(head: bytes) -> SniffedDialect | None:
    """What DuckDB's sniffer says of the start of a file in UTF-8; None where it does not know.

    The database is empty and may open one file only, which holds the bytes.
    """
    with tempfile.TemporaryDirectory(prefix="polynya-init-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, "head.csv")
        file.write_bytes(head)
        try:
            with closing(duckdb.connect(":memory:", config=_SETTINGS)) as connection:
                connection.execute("SET allowed_paths = $1", [[str(file)]])
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
                row = connection.execute(
                    'SELECT Delimiter, Quote, "Escape", HasHeader FROM sniff_csv($1)', [str(file)]
                ).fetchone()
        except duckdb.Error:
            return None
    if row is None:
        return None
    delimiter, quote, escape = ("" if text == "(empty)" else text for text in row[:3])
    return SniffedDialect(delimiter, quote, escape, bool(row[3]))


@dataclass(frozen=True, slots=True)
class SniffedLayout:
    """How the files are laid out.

    Attributes:
        dialect: how fields are written.
        skip_lines: lines before the header line, or before the first record.
        has_header: whether the line after these names the columns.
        names: the columns in order, where a header line does not name them as the table can.
        width: fields of a record.
        settings: all of that as settings of the landing, by name.
    """

    dialect: CsvDialect
    skip_lines: int
    has_header: bool
    names: tuple[str, ...] | None
    width: int
    settings: dict[str, ProposedSetting]


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of the head: where it begins, its bytes, and its fields; None: it has none."""

    begin: int
    piece: bytes
    fields: list[str | None] | None

    @property
    def texts(self) -> list[str]:
        """The fields as names."""
        return [text or "" for text in self.fields or ()]


def layout_of(content: bytes) -> SniffedLayout:
    """The layout of a file, given its content in UTF-8 or the start of it."""
    head = _cut(content)
    excel = _EXCEL.match(head)
    skip = 1 if excel else 0
    body = head[excel.end() :] if excel else head
    leading, later = _comments(body)
    told = sniffed(_without_comments(body) if leading else body)
    given = None if excel is None else excel[1].decode("utf-8", "replace")
    dialect, width = _best(body, _candidates(body, told, given), "#" if leading else "")
    records = _records(head, dialect, skip)
    first = _first_record(records, width)
    if first:
        skip = _lines(head, records[first].begin)
    rows = [record for record in records[first:] if len(record.fields or ()) == width]
    made = _Header(head, records[:first], rows, width, has_comments=bool(leading)).decided(told)
    if made.skip is not None:
        skip = made.skip
    if made.is_comment and not later:
        # The only comments are lines at the start, and `skip_lines` leaves records alone.
        dialect = replace(dialect, comment="")
    settings = _settings(
        dialect, skip, made, comments=leading + later, has_title=first > 0 and made.skip is None
    )
    return SniffedLayout(dialect, skip, made.names is None, made.names, width, settings)


def _cut(content: bytes) -> bytes:
    """The start of a file, whole lines."""
    if len(content) <= HEAD_BYTES:
        return content
    head = content[:HEAD_BYTES]
    return head[: head.rfind(b"\n") + 1] or head


def _comments(body: bytes) -> tuple[int, int]:
    """How many lines begin with `#` at the start of a file, and how many later.

    Without any at the start, or where most lines are like this, they are records.
    """
    lines = [line for line in body.removeprefix(_BOM).splitlines() if line.strip()]
    leading = next((n for n, line in enumerate(lines) if not line.startswith(b"#")), len(lines))
    later = sum(line.startswith(b"#") for line in lines[leading:])
    if not leading or leading == len(lines) or 2 * later > len(lines) - leading:
        return 0, 0
    return leading, later


def _without_comments(body: bytes) -> bytes:
    lines = body.removeprefix(_BOM).splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"#"))


def _candidates(body: bytes, told: SniffedDialect | None, given: str | None) -> list[CsvDialect]:
    """Dialects to try, the most likely first."""
    delimiters = [given] if given else list(_DELIMITERS)
    if told is not None and not given and _can_delimit(told.delimiter):
        delimiters = list(dict.fromkeys([told.delimiter, *delimiters]))
    quotes = [(DEFAULT_QUOTE, "")]
    if b'\\"' in body:
        quotes.append((DEFAULT_QUOTE, "\\"))
    if told is not None and told.quote == "'" and b'"' not in body:
        quotes.insert(0, ("'", ""))
    elif b'"' in body:
        quotes.append(("", ""))
    found = [CsvDialect(delimiter=d, null_value=None, quote=q, escape=e, bare_quotes=True)
             for d in delimiters for q, e in quotes]  # fmt: skip
    if not given and b" " in body:
        found.append(replace(found[0], delimiter=" "))
    return found


def _can_delimit(text: str) -> bool:
    return len(text) == 1 and text not in " \r\n\0\"'" and not text.isalnum()


def _best(body: bytes, candidates: Sequence[CsvDialect], comment: str) -> tuple[CsvDialect, int]:
    """The dialect that reads most lines as records of one width, and that width."""
    best = candidates[0]
    best_share, best_width = -1.0, 1
    for candidate in candidates:
        dialect = replace(candidate, comment=comment)
        share, width = _score(body, dialect)
        if dialect.delimiter == " " and not _has_values(body, dialect, width):
            # Words of a sentence.
            continue
        if width == 1:
            # A file of one column reads well with whatever it does not contain.
            share = min(share, 0.5)
        wider = width > 1 and best_width == 1 and share > best_share - 0.005
        if share > best_share + 0.005 or wider:
            best, best_share, best_width = dialect, share, width
    return best, best_width


def _score(body: bytes, dialect: CsvDialect) -> tuple[float, int]:
    """The share of lines that are records of the most frequent width, and that width."""
    lines: Counter[int] = Counter()
    total = 0
    for record in _records(body, dialect, 0):
        size = record.piece.count(b"\n") + 1
        total += size
        if record.fields is not None:
            lines[len(record.fields)] += size
    if not lines:
        return 0.0, 1
    width, most = max(lines.items(), key=lambda item: (item[1], item[0]))
    return most / total, width


def _has_values(body: bytes, dialect: CsvDialect, width: int) -> bool:
    """Whether a column holds only values such as numbers, beside a header line."""
    rows = [record.texts for record in _records(body, dialect, 0) if len(record.texts) == width]
    columns = zip(*rows[1:], strict=True)
    return width > 1 and any(column and all(map(_is_value, column)) for column in columns)


def _records(head: bytes, dialect: CsvDialect, skip: int) -> list[_Record]:
    found = []
    try:
        for begin, piece in placed_pieces(io.BytesIO(head), dialect, skip=skip):
            found.append(_Record(begin, piece, _fields(piece, dialect)))
    except TooLargeError:
        pass
    return found


def _fields(piece: bytes, dialect: CsvDialect) -> list[str | None] | None:
    try:
        return fields(piece, dialect)
    except RecordError:
        return None


def _first_record(records: Sequence[_Record], width: int) -> int:
    """The index of the first record of the width that is not a title; 0 where that is too far."""
    if width == 1:
        return 0
    for index, record in enumerate(records[:_MOST_TITLE_LINES]):
        if len(record.fields or ()) == width and not _is_title(records, index, width):
            return index
    return 0


def _is_title(records: Sequence[_Record], index: int, width: int) -> bool:
    """Whether all fields but the first are empty, and one of the next records is full.

    Programs for tables write titles so.
    """
    if width < 3 or any(records[index].texts[1:]):
        return False
    after = records[index + 1 : index + 10]
    return any(len(record.texts) == width and all(record.texts) for record in after)


def _lines(head: bytes, end: int) -> int:
    return head.count(b"\n", 0, end)


@dataclass(frozen=True, slots=True)
class _Names:
    """What names the columns.

    Attributes:
        names: in order, where no header line names them as the table can.
        reason: why.
        skip: lines before the first record, where the header line is one of them.
        is_comment: the names stand in a comment.
    """

    names: tuple[str, ...] | None
    reason: str
    skip: int | None = None
    is_comment: bool = False


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before the records, and the first of these."""

    head: bytes
    before: Sequence[_Record]
    rows: Sequence[_Record]
    width: int
    has_comments: bool

    def decided(self, told: SniffedDialect | None) -> _Names:
        """Whether the first of the rows names the columns, and how they are called otherwise."""
        if not self.rows:
            return _Names(None, "")
        is_header, reason = _is_header([row.texts for row in self.rows], told)
        if is_header:
            texts = self.rows[0].texts
            problem = _problem_of(texts)
            if problem is None:
                return _Names(None, reason)
            first = self.rows[0]
            return _Names(
                _repaired(texts, [row.texts for row in self.rows[1:]]),
                problem,
                skip=_lines(self.head, first.begin + len(first.piece)) + 1,
            )
        return self._short_header() or self._in_comment() or self._numbered(reason)

    def _short_header(self) -> _Names | None:
        """A header line with a name less than records have fields: R writes row names so."""
        texts = self.before[-1].texts if self.before else []
        if len(texts) != self.width - 1 or not all(texts) or any(map(_is_value, texts)):
            return None
        names = _repaired(["", *texts], [row.texts for row in self.rows])
        reason = "the header line has a name less than a record has fields"
        return _Names(names, reason, skip=_lines(self.head, self.rows[0].begin))

    def _in_comment(self) -> _Names | None:
        if not self.has_comments:
            return None
        before = self.head[: self.rows[0].begin].splitlines()
        last = next((line for line in reversed(before) if line.startswith(b"#")), b"")
        for delimiter in _DELIMITERS:
            text = last.lstrip(b"#").decode("utf-8", "replace")
            texts = [name.strip() for name in text.split(delimiter)]
            if self.width > 1 and len(texts) == self.width and all(texts):
                names = _repaired(texts, [])
                skip = _lines(self.head, self.rows[0].begin)
                reason = "the last comment line names the columns"
                return _Names(names, reason, skip=skip, is_comment=True)
        return None

    def _numbered(self, reason: str) -> _Names:
        names = tuple(f"column_{number}" for number in range(1, self.width + 1))
        return _Names(names, f"{reason}; name the columns")


def _is_header(rows: Sequence[Sequence[str]], told: SniffedDialect | None) -> tuple[bool, str]:
    """Whether the first row names the columns, and why."""
    first, rest = rows[0], rows[1:]
    if _are_years(first):
        return True, "texts and years in a row, above numbers"
    if _is_above_row_names(first, rest):
        return True, "names above values, and none above the names of rows"
    if any(map(_is_value, first)):
        return False, "the first line holds values"
    if not any(first):
        return False, "the first line is empty"
    columns = [[row[n] for row in rest if row[n]] for n in range(len(first))]
    typed = [column and all(map(_is_value, column)) for column in columns]
    if any(found and name for found, name in zip(typed, first, strict=True)):
        return True, "names above values"
    if any(name and name in column for name, column in zip(first, columns, strict=True)):
        return False, "the first line has a value that its column has again"
    named = [name for name in first if name]
    if len(set(named)) == len(named) and all(map(_NAME.fullmatch, named)):
        return True, "its fields look like names, though no column tells them from values: check"
    header = told is None or told.has_header
    return header, "no column tells names from values: check"


_NAME: Final = re.compile(r"[^\W\d][^\r\n@]{0,63}")
_VALUE: Final = re.compile(
    r"\s*[+-]?[\d.,' \u00a0\u202f]*\d[\d.,]*\s*%?\s*|[+-]?\d+(\.\d*)?[eE][+-]?\d+"
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d)?|true|false"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[^@\s]+@[^@\s]+\.\w+",
    re.IGNORECASE,
)


def _is_value(text: str) -> bool:
    """Whether a field is a number, a date, a time or another value, and hardly a name."""
    return bool(text) and len(text) <= 200 and _VALUE.fullmatch(text) is not None


def _are_years(first: Sequence[str]) -> bool:
    """Whether years follow names, as in a table with a column for each."""
    years = [text for text in first if re.fullmatch(r"(1[6-9]|20|21)\d\d", text)]
    others = [text for text in first if text and text not in years]
    rising = all(a < b for a, b in pairwise(years)) or all(a > b for a, b in pairwise(years))
    return len(years) > 1 and rising and bool(others) and not any(map(_is_value, others))


def _is_above_row_names(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether only the first column has no name, as R and pandas write names of rows.

    The other names may be numbers.
    """
    names = first[1:]
    distinct = len(set(names)) == len(names) > 0
    return not first[0] and all(names) and distinct and bool(rest) and all(row[0] for row in rest)


def _problem_of(names: Sequence[str]) -> str | None:
    """Why a header line cannot name the columns of a table, or None."""
    if len(names) > MAX_COLUMNS:
        return None
    if not all(name.strip() for name in names):
        return "a column has no name in the header line"
    if len({folded(name) for name in names}) < len(names):
        return "two columns have the same name in the header line"
    if any(name != name.strip() for name in names):
        return "spaces around names in the header line"
    if any(column_problem(name) or reserved_problem(name) for name in names):
        return "a table cannot have a column with a name of the header line"
    return None


def _repaired(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names that a table can have: the same ones as far as possible."""
    found: list[str] = []
    taken: set[str] = set()
    for number, name in enumerate(names):
        clean = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:200]
        if not clean:
            values = [row[number] for row in rows[:1000]]
            clean = "row_number" if _are_row_numbers(values) else f"column_{number + 1}"
        if column_problem(clean) or reserved_problem(clean):
            clean = f"column_{clean.lstrip('_')}"
        unique, copy = clean, 1
        while folded(unique) in taken:
            copy += 1
            unique = f"{clean}_{copy}"
        taken.add(folded(unique))
        found.append(unique)
    return tuple(found)


def _are_row_numbers(values: Sequence[str]) -> bool:
    start = values[0] if values else ""
    if start not in {"0", "1"}:
        return False
    return list(values) == [str(number + int(start)) for number in range(len(values))]


def _settings(
    dialect: CsvDialect, skip: int, made: _Names, *, comments: int, has_title: bool
) -> dict[str, ProposedSetting]:
    found: dict[str, ProposedSetting] = {}
    if dialect.delimiter != DEFAULT_DELIMITER:
        what = _DELIMITER_NAMES.get(dialect.delimiter, "this character")
        found["delimiter"] = ProposedSetting(dialect.delimiter, f"{what} between the fields")
    if dialect.quote != DEFAULT_QUOTE:
        reason = "around fields" if dialect.quote else "quotes are text: some are not closed"
        found["quote"] = ProposedSetting(dialect.quote, reason)
    if dialect.escape:
        found["escape"] = ProposedSetting(dialect.escape, "before quotes inside of fields")
    if dialect.comment:
        found["comment"] = ProposedSetting(dialect.comment, f"begins {counted(comments, 'line')}")
    if skip:
        what = "before the names" if made.names is None else "before the records"
        title = ", with a title" if has_title else ""
        found["skip_lines"] = ProposedSetting(skip, f"lines {what}{title}")
    if made.names is not None:
        found["header"] = ProposedSetting(value=False, reason=made.reason)
    elif made.reason:
        found["header"] = ProposedSetting(value=True, reason=made.reason)
    return found
