"""APIs of these tests are on this machine, which only its owner allows."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _local_apis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1 localhost")
