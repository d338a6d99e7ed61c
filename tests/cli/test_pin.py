"""`polynya cluster pin-agent` and `unpin-agent`: what a person puts into the coordination place."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.cluster.control.reading import clusters_at
from polynya.cluster.network.update_process import package_path, wanted
from polynya.store.object_store import LocalObjectStore


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "coordination"
    place.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYNYA_COORDINATION", str(place))
    return place


def test_a_package_is_pinned_by_its_digest_and_taken_back(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package, store = tmp_path / "code.tar", LocalObjectStore(place)
    package.write_bytes(b"code")

    assert main(["cluster", "pin-agent", str(package), "--reason", "fix"]) == 0

    sha256 = hashlib.sha256(b"code").hexdigest()
    pin = wanted(store)
    assert pin is not None
    assert (pin.sha256, pin.size, pin.reason) == (sha256, 4, "fix")
    assert store.get(package_path(sha256)) == b"code"
    assert clusters_at(store) == [], "nobody takes it for a cluster"
    assert f"network agents will run {sha256[:12]}" in capsys.readouterr().out
    assert main(["cluster", "unpin-agent"]) == 0
    assert wanted(store) is None
    assert main(["cluster", "unpin-agent"]) == 0
    assert "no version was pinned" in capsys.readouterr().out


def test_what_is_no_package_is_refused_at_once(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.tar").touch()

    assert main(["cluster", "pin-agent", "empty.tar"]) == 2
    assert "empty.tar has 0 bytes" in capsys.readouterr().err
    assert main(["cluster", "pin-agent", "nothing.tar"]) == 2
    assert list(place.iterdir()) == []
