"""Signatures of webhooks, sent and received: HMAC-SHA256 of a time and a body.

The header is `Polynya-Signature: t=SECONDS,v1=HEX`; HEX is HMAC-SHA256 of `SECONDS.BODY`, in lower
case. A receiver that refuses old times, and what it has seen, refuses repeated messages.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

SIGNATURE: Final = "Polynya-Signature"
#: Longest difference between the time of a message and the clock of its receiver.
WINDOW: Final = timedelta(minutes=5)
_HEADER: Final = re.compile(r"t=([0-9]{1,11}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ReceivedSignature:
    """A signature as it came: the time that it is of, in seconds since 1970, and its HEX."""

    seconds: int
    hex: str


def signature_of(key: str, at: datetime, body: bytes) -> str:
    """The value of `Polynya-Signature` for a body that is sent at a moment."""
    seconds = int(at.timestamp())
    return f"t={seconds},v1={_signed(key, seconds, body)}"


def received(header: str | None, now: datetime) -> ReceivedSignature | str:
    """The signature of a header, or why it counts as none, without a look at the secret."""
    if header is None:
        return f"the header `{SIGNATURE}` is missing"
    found = _HEADER.fullmatch(header)
    if found is None:
        return f"the header `{SIGNATURE}` is not `t=SECONDS,v1=HEX`"
    seconds = int(found[1])
    apart = abs(now.timestamp() - seconds)
    if apart > WINDOW.total_seconds():
        return f"its time is {apart:.0f} s away from this clock; at most 300 s are allowed"
    return ReceivedSignature(seconds, found[2])


def is_signed(key: str, signature: ReceivedSignature, body: bytes) -> bool:
    """Whether a body was signed with a key; takes the same time wherever two signatures differ."""
    return hmac.compare_digest(_signed(key, signature.seconds, body), signature.hex)


def _signed(key: str, seconds: int, body: bytes) -> str:
    return hmac.new(key.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
