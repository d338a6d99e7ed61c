"""Records inside JSON documents, found in a stream of bytes without holding a document.

A file holds one document, or several in sequence. `record_path` says where the records of each are:
`$` for the document itself, `$.data.items` for a value inside its objects. An array there has many
records, an object is one. Only the record that is being read is in memory, and what a document has
besides its records is skipped.

The raw bytes of a record are the JSON text of its element. They go through the parser of JSON
lines, so a bad element is rejected alone and by the same rules. What follows damage in the text
between elements cannot be trusted: the file is unreadable from there on.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, Final

from polynya.formats import limits
from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.columnar import OpenedFile
from polynya.formats.records.json import MAX_DEPTH, parsed
from polynya.model.config.settings import RECORD_KEY
from polynya.model.names import shown

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = " \t\r\n"
_PIECE_BYTES: Final = 1024 * 1024

_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
# Possessive: linear time on any input. A string without an end stops the match before it.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TO_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])?', re.DOTALL)
_WORD: Final = re.compile(rb'[^ \t\r\n,:"\[\]{}]++')
_RECORDS: Final = re.compile(rb"\[[ \t\r\n]*+\{")
_CLOSING: Final = {b"[": ord("]"), b"{": ord("}")}
#: Keys that a message names.
_SHOWN_KEYS: Final = 12


def open_documents(file: BinaryIO, start: int, path: Sequence[str]) -> OpenedFile:
    """Read a file of JSON documents from its record `start` on; `path` has the keys to go down.

    Iterating raises UnreadableFileError: damaged, cut off, without the path; TooLargeError.
    """
    return OpenedFile(map(parsed, islice(_raw_records(file, path), start, None)))


#: Stands for a value that a document does not have.
MISSING: Final = object()
#: Most bytes of a value beside the records, such as a cursor.
_VALUE_BYTES: Final = 64 * 1024


def records_of_page(page: bytes, path: Sequence[str]) -> list[bytes]:
    """The records of one document in memory, as their text; `path` has the keys to go down.

    Raises UnreadableFileError: damaged, cut off, without the path, or followed by more text.
    """
    text = _JsonStream(io.BytesIO(page))
    found = list(_records_below(text, path, 0))
    if text.next():
        raise UnreadableFileError("more text follows the document")
    return found


def value_of_page(page: bytes, path: Sequence[str]) -> Any:
    """The value at a path of a document in memory, `MISSING` where there is none.

    Raises UnreadableFileError: damaged, or an object, an array or a very long text is there.
    """
    text = _JsonStream(io.BytesIO(page))
    for wanted in path:
        if text.next() != b"{" or not _goes_to(text, wanted):
            return MISSING
    first = text.next()
    raw = b"" if first in _CLOSING else text.value()
    if not raw or len(raw) > _VALUE_BYTES:
        raise UnreadableFileError(f"`{_spelled(path)}` is {_kind(first)}, not a short value")
    try:
        return json.loads(raw)
    except ValueError as error:
        raise UnreadableFileError(f"`{_spelled(path)}` is not JSON: {error}") from error


def _goes_to(text: _JsonStream, wanted: str) -> bool:
    """Whether the object that comes next has a key, whose value then comes next."""
    for key in _members(text):
        if key == wanted:
            return True
        text.skip()
    return False


def _raw_records(file: BinaryIO, path: Sequence[str]) -> Iterator[bytes]:
    text = _JsonStream(file)
    while text.next():
        yield from _records_below(text, path, 0)


def _records_below(text: _JsonStream, path: Sequence[str], depth: int) -> Iterator[bytes]:
    """The records of the value that comes next, `depth` keys down the path."""
    first = text.next()
    if depth < len(path):
        yield from _records_of_key(text, path, depth)
    elif first == b"[":
        yield from _elements(text)
    elif first == b"{":
        yield text.value()
    else:
        word = text.value()
        # A service that found nothing writes null for a list of nothing.
        if not depth or word != b"null":
            raise UnreadableFileError(
                f"`{_spelled(path)}` is {_kind(first)}, not an array of records or one record"
            )


def _records_of_key(text: _JsonStream, path: Sequence[str], depth: int) -> Iterator[bytes]:
    here, wanted = _spelled(path[:depth]), path[depth]
    first = text.next()
    if first != b"{":
        if first != b"[":
            text.value()
        raise UnreadableFileError(
            f"`{here}` is {_kind(first)}, not an object with the key {shown(wanted)}"
            + (f"; `record_path: {here}` reads its elements" if first == b"[" else "")
        )
    keys: list[str] = []
    found = False
    for key in _members(text):
        if key != wanted:
            if len(keys) <= _SHOWN_KEYS:
                keys.append(key)
            text.skip()
        elif found:
            raise UnreadableFileError(f"`{here}` has the key {shown(wanted)} twice")
        else:
            found = True
            yield from _records_below(text, path, depth + 1)
    if not found:
        named = ", ".join(map(shown, keys[:_SHOWN_KEYS])) + (
            " and more" if len(keys) > _SHOWN_KEYS else ""
        )
        raise UnreadableFileError(
            f"`{here}` has no key {shown(wanted)}, as `record_path` says; "
            + (f"its keys are {named}" if keys else "it is empty")
        )


def _members(text: _JsonStream) -> Iterator[str]:
    """The keys of the object that comes next. The caller takes the value of each."""
    text.take(b"{")
    if text.next() == b"}":
        text.take(b"}")
        return
    while True:
        key = text.key()
        text.take(b":")
        text.next()
        yield key
        if text.take(b",}") == b"}":
            return


def _elements(text: _JsonStream) -> Iterator[bytes]:
    """The elements of the array that comes next."""
    text.take(b"[")
    if text.next() == b"]":
        text.take(b"]")
        return
    while True:
        text.next()
        yield text.value()
        if text.take(b",]") == b"]":
            return


#: How much of a file is looked at before it counts as one document: the first bytes, which mostly
#: suffice, and a part that only a document would fill so consistently.
_FIRST_BYTES: Final = 8192
_HEAD_BYTES: Final = 1024 * 1024
#: A value that the end of the head cuts is found wrong at most so many characters before it.
_CUT_CHARACTERS: Final = 12


def refuse_document(file: BinaryIO) -> None:
    """Refuse a file that holds documents where one object per line is expected; it is at its start.

    A file with a broken first line is not refused: its other lines are records.

    Raises UnreadableFileError, which names the setting that reads the file.
    """
    head = file.read(_FIRST_BYTES)
    text = head.removeprefix(_BOM).lstrip(_BLANK.encode())
    line, end, rest = text.partition(b"\n")
    if not rest.strip() and _has_several(line):
        raise UnreadableFileError(
            "objects that follow each other on one line, not one object per line; "
            "`record_path: $` under `landing` reads each as a record"
        )
    may_be = text.startswith(b"[") or (text.startswith(b"{") and bool(end) and not _is_json(line))
    if may_be:
        head += file.read(_HEAD_BYTES)
    file.seek(0)
    if may_be and (what := _document(head)) is not None:
        raise UnreadableFileError(f"{what}, not one object per line; {_way_to_read(head)}")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _has_several(line: bytes) -> bool:
    """Whether one object follows another, as Firehose writes records without a delimiter."""
    if not line.startswith(b"{") or line.count(b"{") == 1 or _is_json(line):
        return False
    text = line.decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip(_BLANK).startswith("{")


def _document(head: bytes) -> str | None:
    """What a file begins with that is a document, None when its lines may be records."""
    text = head.removeprefix(_BOM).decode("utf-8", "replace").lstrip(_BLANK)
    is_array = text.startswith("[")
    holds_records = text[1:].lstrip(_BLANK)[:1] in ({"{", "]"} if is_array else {'"'})
    if not holds_records:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated") or error.pos + _CUT_CHARACTERS >= len(text)
        is_long = len(head) > _HEAD_BYTES
        # A short object that is cut off may as well be two broken lines.
        is_document = is_cut and (is_array or is_long)
    except (ValueError, RecursionError):
        return None
    else:
        several = "\n" in text[:end]
        is_document = several or (is_array and text[end:].lstrip(_BLANK)[:1] in {"", "["})
    if not is_document:
        return None
    return "a JSON array" if is_array else "a JSON object over several lines"


def _way_to_read(head: bytes) -> str:
    if head.removeprefix(_BOM).lstrip(_BLANK.encode()).startswith(b"["):
        return "`record_path: $` under `landing` reads its elements"
    key = _key_of_records(head)
    inner = "a path such as `$.KEY` the records inside it"
    if key is not None:
        inner = f"`record_path: $.{key}` the records at that key"
    return f"`record_path: $` under `landing` reads it as one record, {inner}"


def _key_of_records(head: bytes) -> str | None:
    """The first key of an object with an array of objects that a path can name."""
    text = _JsonStream(io.BytesIO(head))
    try:
        text.next()
        for key in _members(text):
            if text.holds_records and re.fullmatch(RECORD_KEY, key):
                return key
            text.skip()
    except UnreadableFileError:
        # The head ends inside it.
        pass
    return None


class _JsonStream:
    """The bytes of a file, of which only those that are not taken yet are held."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._held = file.read(_PIECE_BYTES)
        self._at = len(_BOM) if self._held.startswith(_BOM) else 0
        self._before = 0

    def next(self) -> bytes:
        """The next byte that is not white space, which then comes next; b"" at the end."""
        while True:
            space = _SPACE.match(self._held, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._held):
                return self._held[self._at : self._at + 1]
            if not self._grow():
                return b""

    @property
    def holds_records(self) -> bool:
        """Whether what comes next is an array that begins with an object, as far as it is held."""
        return _RECORDS.match(self._held, self._at) is not None

    def take(self, wanted: bytes) -> bytes:
        """Take the next byte, which must be one of these."""
        found = self.next()
        if not found or found not in wanted:
            raise self._broken(" or ".join(f"`{chr(one)}`" for one in wanted))
        self._at += 1
        return found

    def key(self) -> str:
        """Take a string."""
        if self.next() != b'"':
            raise self._broken("a key")
        raw = self.value()
        try:
            return str(json.loads(raw))
        except ValueError as error:
            raise UnreadableFileError(f"not JSON: a key before byte {self._place}: {error}") from (
                error
            )

    def value(self) -> bytes:
        """Take the value that comes next, as its text. Raises TooLargeError."""
        end = self._end_of_value(kept=True)
        if end - self._at > limits.RECORD_BYTES:
            raise limits.refuse_record(self._place)
        raw = self._held[self._at : end]
        self._at = end
        return raw

    def skip(self) -> None:
        """Take the value that comes next, of any size. Only its brackets are looked at."""
        self._at = self._end_of_value(kept=False)

    def _end_of_value(self, *, kept: bool) -> int:
        first = self._held[self._at : self._at + 1]
        if first in _CLOSING:
            return self._end_of_brackets(kept=kept)
        return self._end_of_string() if first == b'"' else self._end_of_word()

    def _end_of_string(self) -> int:
        while (match := _STRING.match(self._held, self._at)) is None:
            if not self._grow():
                raise self._cut_off()
        return match.end()

    def _end_of_word(self) -> int:
        """Where a number, true, false or null ends, or what stands in place of one."""
        while (match := _WORD.match(self._held, self._at)) is not None:
            # At the end of what is held it may go on.
            if match.end() < len(self._held) or not self._grow():
                return match.end()
        raise self._broken("a value")

    def _end_of_brackets(self, *, kept: bool) -> int:
        """Where the object or array ends that comes next; what is not kept is dropped."""
        closing = bytearray()
        seen = 0
        while True:
            match = _TO_BRACKET.match(self._held, self._at + seen)
            assert match is not None
            bracket, end = match[1], match.end()
            if bracket is None:
                # Nothing more that is held, or a string that goes on.
                seen = end - self._at
                if not kept:
                    self._at, seen = end, 0
                if not self._grow():
                    raise self._cut_off()
                continue
            if bracket in _CLOSING:
                closing.append(_CLOSING[bracket])
                if not kept and len(closing) > MAX_DEPTH:
                    raise UnreadableFileError(f"nested deeper than {MAX_DEPTH}")
            elif closing.pop() != bracket[0]:
                self._at = end - 1
                raise self._broken("the other closing bracket")
            if not closing:
                return end
            seen = end - self._at
            if not kept:
                self._at, seen = end, 0

    def _grow(self) -> bool:
        """Read more; False at the end of the file. Raises TooLargeError."""
        rest = self._held[self._at :]
        if len(rest) > limits.RECORD_BYTES:
            raise limits.refuse_record(self._place)
        # Twice as much each time: a large record is looked at a few times only.
        read = self._file.read(max(_PIECE_BYTES, len(rest)))
        self._before += self._at
        self._held, self._at = rest + read, 0
        return bool(read)

    @property
    def _place(self) -> int:
        return self._before + self._at

    def _broken(self, wanted: str) -> UnreadableFileError:
        found = self._held[self._at : self._at + 1]
        if not found:
            return self._cut_off()
        return UnreadableFileError(
            f"not JSON: {shown(found.decode('ascii', 'replace'))} at byte {self._place:,} "
            f"where {wanted} is expected"
        )

    def _cut_off(self) -> UnreadableFileError:
        size = self._before + len(self._held)
        return UnreadableFileError(
            f"cut off: the file ends at byte {size:,} inside a document; land it again whole"
        )


def _spelled(path: Sequence[str]) -> str:
    return ".".join(["$", *path])


def _kind(first: bytes) -> str:
    kinds = {b"[": "an array", b"{": "an object", b'"': "a string", b"n": "null",
             b"t": "a boolean", b"f": "a boolean"}  # fmt: skip
    return kinds.get(first, "a number")
