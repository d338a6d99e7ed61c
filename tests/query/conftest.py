"""What tests of queries share."""

from __future__ import annotations

import pytest

from polynya.query import database


@pytest.fixture
def sliced_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give DuckDB slices of the batches of small tables, as it gets them of large ones."""
    monkeypatch.setattr(database, "_STREAMED_ROWS", 3)
