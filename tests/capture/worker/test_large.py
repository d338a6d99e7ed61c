"""A table and a transaction that are far larger than the memory of a capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.worker.large import Large
from tests.postgresql import postgres_server

pytestmark = pytest.mark.slow

#: Java may have 512 MiB for its objects; it, Python and all buffers need some hundred more.
MOST_MEBIBYTES = 900


def test_memory_is_bounded_while_ten_million_rows_are_loaded(tmp_path: Path) -> None:
    with postgres_server() as server:
        large = Large(server, tmp_path, 10_000_000)
        taken = large.load()
        large.stop()

    assert taken.memory < MOST_MEBIBYTES


def test_memory_is_bounded_while_a_transaction_of_a_million_rows_streams(tmp_path: Path) -> None:
    with postgres_server() as server:
        large = Large(server, tmp_path, 1_000_000)
        large.load()
        taken = large.transaction()
        large.stop()

    assert taken.memory < MOST_MEBIBYTES
