"""JSON: a message is one object, an array of objects, or one object a line."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, Item, OneByOne, too_many
from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_object, parse_value
from polynya.formats.records.sizes import check_values

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class JsonDecoder(OneByOne):
    """Strict JSON, as in landed files of JSON lines."""

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
        text = message.removeprefix(_BOM)
        check_values(text)
        if text.lstrip(_BLANK)[:1] == b"[":
            return _array(text)
        try:
            return Decoded((parse_object(text),))
        except RecordError:
            lines = _lines(text)
            if not lines:
                raise
        return Decoded([_parsed(line) for line in lines], part=lines.__getitem__)


def _array(text: bytes) -> Decoded:
    values = parse_value(text)
    if len(values) > limits.MESSAGE_RECORDS:
        raise too_many()
    items: list[Item] = [
        value if isinstance(value, dict) else RecordError("not_an_object", "it is no JSON object")
        for value in values
    ]
    return Decoded(items, part=lambda index: written(values[index]).encode())


def _lines(text: bytes) -> list[bytes]:
    """The lines of a text with an object a line; none where it is a document of its own.

    Each looks like an object, or the first one is one: a document would end with it.
    """
    if text.count(b"\n") > 2 * limits.MESSAGE_RECORDS:
        raise too_many()
    lines = [line.strip(_BLANK) for line in text.split(b"\n")]
    lines = [line for line in lines if line]
    if len(lines) > limits.MESSAGE_RECORDS:
        raise too_many()
    if len(lines) < 2:
        return []
    plain = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    return lines if plain or _is_object(lines[0]) else []


def _is_object(line: bytes) -> bool:
    found = _parsed(line)
    return not isinstance(found, RecordError) or found.rule not in {"bad_json", "not_an_object"}


def _parsed(line: bytes) -> Item:
    try:
        return parse_object(line)
    except RecordError as error:
        return error


def written(value: Any) -> str:
    """The JSON text of a parsed value, with every number as it was."""
    match value:
        case dict():
            inner = (f"{json.dumps(key)}:{written(item)}" for key, item in value.items())
            return "{" + ",".join(inner) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
