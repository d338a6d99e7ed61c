"""JSON lines, and strict JSON of one record with exact numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NoReturn

from polynya.formats import limits
from polynya.formats.errors import RecordError
from polynya.formats.records.columnar import OpenedFile, RawRecord
from polynya.formats.records.sizes import check_values, check_width

MAX_DEPTH = 64
MAX_NUMBER_LENGTH = 400

# Possessive, and a string without an end swallows the rest: linear time on any input.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Any literal of at most this many characters without an exponent has few enough digits to survive a
# double.
_SAFE_LITERAL = 16


def parse_object(raw: bytes) -> dict[str, Any]:
    """One JSON object. Floats that a double cannot hold exactly (by shortest text) come as Decimal.

    Raises:
        RecordError: bad_utf8, bad_json, duplicate_key, bad_number, too_deep or not_an_object.
    """
    value = parse_value(raw)
    if not isinstance(value, dict):
        raise RecordError("not_an_object", f"a record is a JSON object, this is {_kind(value)}")
    return value


def parse_value(raw: bytes) -> Any:
    """Any JSON value. Raises RecordError as `parse_object`."""
    _check_depth(raw)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError("bad_utf8", f"not UTF-8: {error.reason} at byte {error.start}") from None
    text = text.strip(" \t\r\n")
    try:
        # Without JSONDecoder.decode and its two passes over white space: this is the hot loop.
        value, end = _scan(text, 0)
    except StopIteration as error:
        raise RecordError("bad_json", f"not JSON: no value at character {error.value}") from None
    except json.JSONDecodeError as error:
        fault = error.msg.removesuffix(" at")
        raise RecordError("bad_json", f"not JSON: {fault} at character {error.pos}") from None
    except RecursionError:
        raise RecordError("too_deep", f"nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        # Python refuses to convert integers of thousands of digits.
        raise RecordError("bad_number", str(error)) from None
    if end != len(text):
        raise RecordError("bad_json", f"not JSON: more text after the value at character {end}")
    if _SURROGATE.search(text):
        _check_surrogates(value)
    return value


def _check_depth(raw: bytes) -> None:
    # Counting is fast and rules out almost every record; only the rest is scanned.
    if raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _TOKEN.finditer(raw):
        token = match[0]
        if token in b"{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise RecordError("too_deep", f"nested deeper than {MAX_DEPTH}")
        elif token in b"}]":
            depth -= 1


def _check_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise RecordError("bad_utf8", "a lone surrogate is not a character") from None


def _float(literal: str) -> float | Decimal:
    if len(literal) > MAX_NUMBER_LENGTH:
        raise RecordError("bad_number", f"a number of {len(literal)} characters")
    number = float(literal)
    if len(literal) <= _SAFE_LITERAL and "e" not in literal and "E" not in literal:
        return number
    try:
        exact = Decimal(literal)
    except InvalidOperation:
        # An exponent beyond those that Decimal has.
        raise RecordError("bad_number", f"{literal[:40]} is out of range") from None
    if number - number == 0.0 and (Decimal(repr(number)) == exact or Decimal(number) == exact):
        return number
    if abs(exact.adjusted()) > MAX_NUMBER_LENGTH:
        raise RecordError("bad_number", f"{literal[:40]} is out of range")
    return exact


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = first_twice(name for name, _ in pairs)
        raise RecordError("duplicate_key", f"key {twice[:64]!r} appears twice in one object")
    return found


def first_twice(names: Iterable[str]) -> str:
    """The first name that was there before, empty when none was: in one pass, however many."""
    met: set[str] = set()
    for name in names:
        if name in met:
            return name
        met.add(name)
    return ""


def _constant(literal: str) -> NoReturn:
    raise RecordError("bad_number", f"{literal} is not JSON")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


def raw_lines(file: BinaryIO, begin: int = 0) -> Iterator[bytes]:
    """The lines of a file with their ends; it stands at byte `begin`.

    Iterating raises TooLargeError, before a line without an end fills the memory.
    """
    most = limits.RECORD_BYTES
    for line in iter(partial(file.readline, most + 1), b""):
        if len(line) > most:
            raise limits.refuse_record(begin)
        yield line
        begin += len(line)


def lines(file: BinaryIO, start: int = 0) -> Iterator[bytes]:
    """The lines that are records, from the `start`-th on, without their line ends.

    Iterating raises TooLargeError.
    """
    return islice(_all_lines(file), start, None)


def _all_lines(file: BinaryIO) -> Iterator[bytes]:
    first = True
    for line in raw_lines(file):
        raw = line.rstrip(b"\r\n")
        if first:
            first = False
            raw = raw.removeprefix(_BOM)
        if raw.strip(_BLANK):
            yield raw


def open_json(file: BinaryIO, start: int) -> OpenedFile:
    """Read a file of JSON lines."""
    return OpenedFile(_records(file, start))


def _records(file: BinaryIO, start: int) -> Iterator[RawRecord]:
    return map(parsed, lines(file, start))


def parsed(raw: bytes) -> RawRecord:
    """A line as a record, or with why it is none."""
    try:
        if len(raw) <= limits.FEW_BYTES:
            return raw, parse_object(raw)
        check_values(raw)
        record = parse_object(raw)
        check_width(record)
        return raw, record
    except RecordError as error:
        return raw, error
