"""Compressed messages, told by their first bytes, with a limit to what they may expand to."""

from __future__ import annotations

import io
from typing import Final

from polynya.formats import limits
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.opening import codec_of, pieces_of

_HEAD_BYTES: Final = 16


def expanded(message: bytes, limit: int | None = None) -> bytes:
    """A message as it was before it was compressed; one that is not comes back as it is.

    `limit` is the most bytes that it may expand to; None: those that a message may have.

    Raises:
        RecordError: bad_archive, it is damaged or cut off; too_large, it holds more than `limit`.
    """
    codec = codec_of(message[:_HEAD_BYTES], "")
    if codec is None:
        return message
    limit = limits.MESSAGE_BYTES if limit is None else limit
    found = bytearray()
    try:
        for piece in pieces_of(io.BytesIO(message), codec):
            found += piece
            if len(found) > limit:
                raise RecordError(
                    "too_large", f"a {codec.name} archive of more than {limit:,} bytes"
                )
    except UnreadableFileError as error:
        raise RecordError("bad_archive", str(error)) from error
    return bytes(found)
