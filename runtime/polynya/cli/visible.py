"""Text for terminals: control characters are shown as symbols instead of being sent.

Values, file names and messages from others may contain any character. An escape sequence moves the
cursor, or sets the title or the clipboard; a bidi mark shows text in another order than it has.
Each becomes one character, so columns of tables stay aligned.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import Final

#: C0 but tab and line end, DEL, C1; marks of direction and invisible marks that change what is
#: read; line ends that only some programs know; halves of surrogate pairs, from names of files
#: that are not UTF-8.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES: Final = {**{code: chr(0x2400 + code) for code in range(32)}, 0x7F: "\u2421"}
_UNKNOWN: Final = "\ufffd"


def visible(text: str, encoding: str | None = None) -> str:
    """The text with a picture for each character that a terminal obeys, such as `␛`.

    It is `?` where the encoding of the terminal has no pictures.
    """
    if _OBEYED.search(text) is None:
        return text
    has_pictures = _has_pictures(encoding or "utf-8")

    def picture(match: re.Match[str]) -> str:
        return _PICTURES.get(ord(match[0]), _UNKNOWN) if has_pictures else "?"

    return _OBEYED.sub(picture, text)


@cache
def _has_pictures(encoding: str) -> bool:
    try:
        return bool(codecs.encode(f"{_UNKNOWN}\u241b", encoding))
    except (LookupError, UnicodeError):
        return False
