"""Records of JSON that would take far more memory, or columns, than their bytes let one expect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from polynya.formats import limits
from polynya.formats.errors import RecordError

_TEXT: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def check_values(text: bytes) -> None:
    """Refuse a text with more values than can be meant. Raises RecordError too_large."""
    most = limits.RECORD_VALUES
    # Commas in texts count only where they could matter: taking texts out is a pass of its own.
    if text.count(b",") >= most and _TEXT.sub(b"", text).count(b",") >= most:
        raise RecordError("too_large", f"more than {most:,} values in one record or message")


def check_width(record: dict[str, Any]) -> None:
    """Refuse a record with more fields than can be meant, those of its structs included.

    Raises RecordError too_large.
    """
    most = limits.RECORD_FIELDS
    places: set[tuple[str, ...]] = set()
    left: list[tuple[tuple[str, ...], Any]] = [((), record)]
    while left and len(places) <= most:
        place, value = left.pop()
        if isinstance(value, dict):
            inner = [((*place, name), one) for name, one in value.items()]
            places.update(name for name, _ in inner)
            left += [one for one in inner if isinstance(one[1], dict | list)]
        elif isinstance(value, list):
            left += [(place, one) for one in value if isinstance(one, dict | list)]
    if len(places) > most:
        raise RecordError("too_large", f"a record of more than {most:,} fields")


def refuse_wide(
    items: Iterable[dict[str, Any] | RecordError],
) -> Iterator[dict[str, Any] | RecordError]:
    """The records, those with more fields than can be meant as what refuses them."""
    for item in items:
        try:
            if isinstance(item, dict):
                check_width(item)
            yield item
        except RecordError as error:
            yield error
