"""Programs of servers come once, whoever needs them first."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.servers.maven import UnavailableError, kept


def test_processes_that_need_a_server_at_once_wait_for_the_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fetched: list[Path] = []

    def fetch(scratch: Path) -> Path:
        fetched.append(scratch)
        (scratch / "server").mkdir()
        time.sleep(0.2)
        (scratch / "server" / "program").touch()
        return scratch / "server"

    with ThreadPoolExecutor(4) as threads:
        folders = list(threads.map(lambda _: kept("server-1.0", fetch), range(4)))

    assert len(fetched) == 1
    assert {(folder / "program").is_file() for folder in folders} == {True}


def test_a_server_that_cannot_be_had_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fetch(scratch: Path) -> Path:
        (scratch / "server").mkdir()
        raise UnavailableError("no network")

    with pytest.raises(UnavailableError):
        kept("server-1.0", fetch)

    assert not [path for path in tmp_path.rglob("*") if path.name.startswith("server")]
