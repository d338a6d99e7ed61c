"""Records of the engine that are no changes."""

from __future__ import annotations

import base64
import json

import pytest

from polynya.capture.records import asks_for_position


def message(prefix: str, content: str) -> bytes:
    said = {"prefix": prefix, "content": base64.b64encode(content.encode()).decode()}
    return json.dumps({"op": "m", "ts_ms": 1, "source": {}, "message": said}).encode()


def test_the_message_of_a_comparison_asks_for_the_position() -> None:
    assert asks_for_position(message("polynya", "compare"))


@pytest.mark.parametrize(
    "other",
    [
        message("polynya", "alive"),
        message("other", "compare"),
        message("polynya", ""),
        b'{"op":"m"}',
        b'{"op":"m","message":{"prefix":"polynya","content":"%%%"}}',
        b'{"op":"m","message":{"prefix":"polynya","content":7}}',
        b'{"op":"m","message":"compare"}',
        b"[]",
        b"\xff",
    ],
)
def test_other_messages_ask_for_nothing(other: bytes) -> None:
    assert not asks_for_position(other)
