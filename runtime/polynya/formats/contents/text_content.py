"""Text that a regular expression takes apart, and text that one cuts into pieces.

RE2 does both: no text takes more than linear time, whatever the pattern is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, Item, OneByOne, Plain, too_many
from polynya.formats.errors import RecordError
from polynya.model.config.streaming.content import RegexContent, SplitLinesContent
from polynya.model.config.streaming.patterns import group_pattern
from polynya.model.errors import OperationError

_LINE = "line"


class RegexDecoder(Plain):
    """The named groups of a pattern are the columns; a group that took no part is NULL."""

    def __init__(self, content: RegexContent) -> None:
        self.is_text = content.infer_types
        pattern = group_pattern(content.pattern)
        self._whole = content.multi_line
        self._pattern = f"(?s){pattern}" if content.multi_line else pattern
        _try(lambda: pc.extract_regex(pa.array([""]), pattern=self._pattern), content.pattern)

    def decode(self, messages: Sequence[bytes]) -> Iterable[Decoded | RecordError]:
        """See `Decoder.decode`: the pattern is made once for all messages."""
        texts = [_text(message) for message in messages]
        lines = [
            [] if isinstance(text, RecordError) else [text] if self._whole else _lines(text)
            for text in texts
        ]
        found = iter(self._items([line for one in lines for line in one]))
        for text, own in zip(texts, lines, strict=True):
            if isinstance(text, RecordError):
                yield text
            elif len(own) > limits.MESSAGE_RECORDS:
                yield too_many()
            else:
                items = [next(found) for _ in own]
                yield Decoded(items, part=None if self._whole else _encoded(own))

    def _items(self, lines: list[str]) -> list[Item]:
        if not lines:
            return []
        groups = pc.extract_regex(pa.array(lines, pa.string()), pattern=self._pattern).to_pylist()
        return [_item(group) for group in groups]


class SplitDecoder(OneByOne):
    """Each piece is a record with one column; empty pieces are none."""

    def __init__(self, content: SplitLinesContent) -> None:
        self._pattern = content.pattern
        _try(lambda: self._cut(""), content.pattern)

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
        text = _text(message)
        if isinstance(text, RecordError):
            raise text
        pieces = [piece for piece in self._cut(text) if piece]
        if len(pieces) > limits.MESSAGE_RECORDS:
            raise too_many()
        return Decoded([{_LINE: piece} for piece in pieces], part=_encoded(pieces))

    def _cut(self, text: str) -> list[str]:
        parts = pc.split_pattern_regex(pa.array([text], pa.string()), pattern=self._pattern)
        pieces: list[str] = parts[0].as_py()
        return pieces


def _text(message: bytes) -> str | RecordError:
    try:
        return message.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return RecordError("bad_utf8", f"not UTF-8: {error.reason} at byte {error.start}")


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _item(groups: dict[str, Any] | None) -> Item:
    if groups is None:
        return RecordError("no_match", "the pattern is not found in it")
    return groups


class _encoded:  # noqa: N801 - a function with a memory
    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __call__(self, index: int) -> bytes:
        return self._texts[index].encode()


def _try(use: Any, pattern: str) -> None:
    """Raise OperationError for a pattern that RE2 refuses although the settings were right."""
    try:
        use()
    except pa.ArrowException as error:
        raise OperationError(
            "POLYNYA-STR-021",
            f"the pattern of a stream cannot be used: {error}",
            where=f"pattern {pattern[:200]!r}",
            state="nothing of the landed batch was copied; it is read again at the next run",
            fix="correct `pattern` in `content` of the task that lands the stream, and land anew",
        ) from error
