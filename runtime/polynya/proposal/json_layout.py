"""Where the records of a JSON file are: one a line, or in a document over several lines.

The setting `record_path` names the place in a document: `$` is the document itself, an array of
records or one record, and `$.results` its field of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.proposal.settings import ProposedSetting

#: Fields in which services answer with records.
_ENVELOPES: Final = frozenset(
    {
        "results", "result", "data", "items", "records", "features", "rows", "value", "values",
        "entries", "hits", "elements", "list", "documents", "response", "content", "objects",
    }
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLANK: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()
#: Records of a document that is longer than what is looked at.
_MOST_BEGUN: Final = 100_000


class NotJsonError(ValueError):
    """The file is not JSON that can be read as records; the text says why, without its content."""


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """Where the records are.

    Attributes:
        record_path: its place in the document; None: each line is a record.
        records: those of the document, as far as it was looked at; empty for lines.
        others: fields of the document beside the records, which are not read.
    """

    record_path: ProposedSetting | None
    records: tuple[Mapping[str, Any], ...] = ()
    others: tuple[str, ...] = ()


def json_layout(text: str, *, is_whole: bool = True) -> JsonLayout:
    """Where the records of a file are, given its text or the start of it.

    Raises NotJsonError.
    """
    text = text.removeprefix("\ufeff").strip(_BLANK)
    first, _, more = text.partition("\n")
    line = _value(first)
    if isinstance(line, dict) and (more.strip(_BLANK) or not is_whole):
        return JsonLayout(None)
    if isinstance(line, dict):
        found = _envelope(line, known_only=True)
        return JsonLayout(None) if found is None else found
    document = _value(text) if is_whole else None
    if document is not None:
        return _of_document(document)
    several = _several(text, is_whole=is_whole)
    if several is not None:
        return several
    if is_whole:
        raise NotJsonError(_fault(text))
    return _begun(text)


def _value(text: str) -> Any:
    """The value of a text, None where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_document(document: Any) -> JsonLayout:
    if isinstance(document, list):
        _check(document)
        reason = f"the file is one array, of {len(document):,} records"
        return JsonLayout(ProposedSetting("$", reason), tuple(document))
    if not isinstance(document, dict):
        raise NotJsonError("it holds a single value, and no record")
    found = _envelope(document, known_only=False)
    if found is not None:
        return found
    reason = "the file is one record over several lines"
    return JsonLayout(ProposedSetting("$", reason), (document,))


def _check(array: list[Any]) -> None:
    if not array:
        raise NotJsonError("it is an empty array")
    if not all(isinstance(item, dict) for item in array):
        raise NotJsonError("its array holds other values than objects")


def _envelope(document: Mapping[str, Any], *, known_only: bool) -> JsonLayout | None:
    """The records inside a document: the longest array of objects, at most two fields deep."""
    arrays = dict(_arrays(document, "$", 2))
    wanted = {
        path: array
        for path, array in arrays.items()
        if path.rpartition(".")[2].lower() in _ENVELOPES
    }
    if not wanted and not known_only:
        wanted = {path: array for path, array in arrays.items() if len(array) > 1}
    if not wanted:
        return None
    path = max(wanted, key=lambda one: len(wanted[one]))
    field = path.removeprefix("$.").partition(".")[0]
    others = tuple(name for name in document if name != field)
    count = "1 other field is" if len(others) == 1 else f"{len(others):,} other fields are"
    beside = f"; {count} not read" if others else ""
    reason = f"the field holds an array of {len(wanted[path]):,} records{beside}"
    return JsonLayout(ProposedSetting(path, reason), tuple(wanted[path]), others)


def _arrays(document: Mapping[str, Any], path: str, deep: int) -> Iterator[tuple[str, list[Any]]]:
    for name, value in document.items():
        if not _WORD.fullmatch(name):
            continue
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield f"{path}.{name}", value
        elif isinstance(value, dict) and deep > 1:
            yield from _arrays(value, f"{path}.{name}", deep - 1)


def _begun(text: str) -> JsonLayout:
    """The layout of a document that is not whole, from the records at its start."""
    path, at = "$", 0
    others: list[str] = []
    try:
        if text.startswith("{"):
            path, at = _first_array(text, others)
        if not text.startswith("[", at):
            raise NotJsonError("it begins as no record, and as no array of records")
        records = tuple(_elements(text, at + 1))
    except json.JSONDecodeError as error:
        raise NotJsonError(f"not JSON at character {error.pos:,}: {error.msg}") from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    _check(list(records))
    reason = "the file is one array" if path == "$" else "the field holds an array of records"
    return JsonLayout(ProposedSetting(path, reason), records, tuple(others))


def _fault(text: str) -> str:
    try:
        json.loads(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        where = getattr(error, "pos", 0)
        return f"not JSON at character {where:,}: {getattr(error, 'msg', 'a number is too long')}"
    return "not JSON"


def _several(text: str, *, is_whole: bool) -> JsonLayout | None:
    """The layout of records over several lines each, one after the other; None: it is another."""
    found: list[Mapping[str, Any]] = []
    at = 0
    while at < len(text) and len(found) < _MOST_BEGUN:
        try:
            value, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            return None
        except ValueError:
            if is_whole:
                return None
            break
        if not isinstance(value, dict):
            return None
        found.append(value)
        at = _after_blanks(text, at)
    if not found or (is_whole and len(found) < 2):
        return None
    reason = "records over several lines each, one after the other"
    return JsonLayout(ProposedSetting("$", reason), tuple(found))


def _first_array(text: str, others: list[str]) -> tuple[str, int]:
    """The path and the place of the first field of a begun object that is an array of objects."""
    at = 1
    while True:
        at = _after_blanks(text, at)
        name, at = _DECODER.raw_decode(text, at)
        at = _after_blanks(text, at)
        if not isinstance(name, str) or not text.startswith(":", at):
            raise NotJsonError("it begins as no record, and as no array of records")
        at = _after_blanks(text, at + 1)
        if _WORD.fullmatch(name) and re.compile(r"\[\s*\{").match(text, at):
            return f"$.{name}", at
        others.append(name)
        _, at = _DECODER.raw_decode(text, at)
        at = _after_blanks(text, at)
        if not text.startswith(",", at):
            raise NotJsonError(_fault(text))
        at += 1


def _elements(text: str, at: int) -> Iterator[Any]:
    """The whole elements of an array that may be cut off."""
    for _ in range(_MOST_BEGUN):
        at = _after_blanks(text, at)
        if at >= len(text) or text.startswith("]", at):
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield value
        at = _after_blanks(text, at)
        if not text.startswith(",", at):
            return
        at += 1


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def sample_document(layout: JsonLayout) -> bytes:
    """A document in ASCII with the records of a begun one, at their place."""
    assert layout.record_path is not None
    path = str(layout.record_path.value)
    document: Any = list(layout.records)
    for name in reversed(path.split(".")[1:]):
        document = {name: document}
    return json.dumps(document).encode()
