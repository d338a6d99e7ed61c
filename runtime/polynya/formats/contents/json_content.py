"""JSON: a message is one object, an array of objects, or one object a line."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from polynya.formats.contents.decoded import (
    MOST_RECORDS,
    MOST_VALUES,
    Decoded,
    Item,
    OneByOne,
    too_many,
)
from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_object, parse_value

_BOM = b"\xef\xbb\xbf"
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BLANK = b" \t\r\n"


class JsonDecoder(OneByOne):
    """Strict JSON, as in landed files of JSON lines."""

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
        text = message.removeprefix(_BOM)
        _refuse_many(text)
        if text.lstrip(_BLANK)[:1] == b"[":
            return _array(text)
        try:
            return Decoded((parse_object(text),))
        except RecordError as error:
            lines = _lines(text) if error.rule == "bad_json" else []
            if not lines:
                raise
        return Decoded([_parsed(line) for line in lines], part=lines.__getitem__)


def _refuse_many(text: bytes) -> None:
    """Refuse what would be far more values in memory than bytes."""
    # Commas in texts count only where they could matter: taking texts out is a pass of its own.
    if text.count(b",") >= MOST_VALUES and _TEXT.sub(b"", text).count(b",") >= MOST_VALUES:
        raise RecordError("too_large", f"more than {MOST_VALUES:,} values in one message")


def _array(text: bytes) -> Decoded:
    values = parse_value(text)
    if len(values) > MOST_RECORDS:
        raise too_many()
    items: list[Item] = [
        value if isinstance(value, dict) else RecordError("not_an_object", "it is no JSON object")
        for value in values
    ]
    return Decoded(items, part=lambda index: written(values[index]).encode())


def _lines(text: bytes) -> list[bytes]:
    """The lines of a text of which each looks like an object; none where that is not so."""
    if text.count(b"\n") > 2 * MOST_RECORDS:
        raise too_many()
    lines = [line.strip(_BLANK) for line in text.split(b"\n")]
    lines = [line for line in lines if line]
    plain = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    if len(lines) > MOST_RECORDS:
        raise too_many()
    return lines if plain and len(lines) > 1 else []


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
