"""The key hash that a task writes is the published one."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from polynya.lake.copy.rows import key_hashes


def test_the_hash_is_over_the_texts_of_the_keys_with_one_backspace_between() -> None:
    numbers, texts = pa.array([1, -(1 << 63)], pa.int64()), pa.array(["ä", ""], pa.string())

    found = key_hashes([numbers, texts]).to_pylist()

    expected = ["1\bä", f"{-(1 << 63)}\b"]
    assert found == [hashlib.sha1(text.encode()).digest() for text in expected]
