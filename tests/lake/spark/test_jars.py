"""The pinned jars: only the very bytes of the lock are ever handed to Spark."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from polynya.lake.spark import jars
from polynya.lake.spark.jars import jar_paths, sha256_of
from polynya.model.errors import DependencyError

CONTENT = b"PK\x05\x06" + bytes(18)  # an empty zip file


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A company's Maven repository, as a folder."""
    folder = tmp_path / "mirror" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0.jar").write_bytes(CONTENT)
    (folder / "thing-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        "<artifactId>thing</artifactId><version>1.0</version></project>"
    )
    return tmp_path / "mirror"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file of one small jar."""
    reference = tmp_path / "reference.jar"
    reference.write_bytes(CONTENT)
    entry = {"organisation": "org.example", "module": "thing", "revision": "1.0", "group": "core",
             "size": len(CONTENT), "sha256": sha256_of(reference)}  # fmt: skip
    path = tmp_path / "jars.lock.json"
    path.write_text(json.dumps({"jars": [entry]}))
    return path


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of our own and no settings of the machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("POLYNYA_JARS", raising=False)
    monkeypatch.delenv("POLYNYA_MAVEN_REPOSITORY", raising=False)
    return tmp_path / "cache" / "polynya" / "jars"


@pytest.mark.parametrize("by_environment", [True, False])
def test_a_missing_jar_is_fetched_from_the_company_mirror(
    monkeypatch: pytest.MonkeyPatch, mirror: Path, lock: Path, own_cache: Path, by_environment: bool
) -> None:
    setting = mirror.as_uri()
    if by_environment:
        monkeypatch.setenv("POLYNYA_MAVEN_REPOSITORY", setting)
        setting = "file:///the/environment/wins"

    paths = jar_paths(repository=setting, lock_file=lock)

    assert paths == [str(own_cache / "thing-1.0.jar")]
    assert Path(paths[0]).read_bytes() == CONTENT
    assert [path.name for path in own_cache.iterdir() if path.name.startswith(".fetch")] == []


def test_what_is_there_is_not_fetched_again(
    monkeypatch: pytest.MonkeyPatch, mirror: Path, lock: Path
) -> None:
    paths = jar_paths(repository=mirror.as_uri(), lock_file=lock)
    monkeypatch.setattr(jars, "retrieve_all", None)
    monkeypatch.setattr(jars, "sha256_of", None)  # the second check is a stat, not a read

    assert jar_paths(lock_file=lock) == paths


def test_a_download_that_is_not_the_pinned_jar_is_refused(
    mirror: Path, lock: Path, own_cache: Path
) -> None:
    next(mirror.rglob("*.jar")).write_bytes(CONTENT + b"malware")

    with pytest.raises(DependencyError, match=r"thing-1\.0\.jar is not the jar that the lock"):
        jar_paths(repository=mirror.as_uri(), lock_file=lock)

    assert list(own_cache.glob("*.jar")) == []


@pytest.mark.parametrize("keep_times", [True, False])
def test_a_tampered_jar_in_the_cache_is_refused(mirror: Path, lock: Path, keep_times: bool) -> None:
    """Also when its size and its modification time are those of the jar that was checked."""
    path = Path(jar_paths(repository=mirror.as_uri(), lock_file=lock)[0])
    before = path.stat()
    path.write_bytes(CONTENT[:-1] + b"!")
    if keep_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(DependencyError) as caught:
        jar_paths(lock_file=lock)

    shown = caught.value.render()
    assert str(path) in shown
    assert sha256_of(path) in shown
    assert "delete the file" in shown


def test_an_air_gapped_machine_reads_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lock: Path
) -> None:
    monkeypatch.setattr(jars, "retrieve_all", None)
    folder = tmp_path / "carried in"
    folder.mkdir()
    monkeypatch.setenv("POLYNYA_JARS", str(folder))
    with pytest.raises(DependencyError, match="not in the folder that POLYNYA_JARS names"):
        jar_paths(lock_file=lock)

    (folder / "thing-1.0.jar").write_bytes(b"something else")
    with pytest.raises(DependencyError, match="is not the jar that the lock file pins"):
        jar_paths(lock_file=lock)

    (folder / "thing-1.0.jar").write_bytes(CONTENT)
    assert jar_paths(lock_file=lock) == [str(folder / "thing-1.0.jar")]


def test_a_failed_download_says_what_where_and_three_fixes(lock: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        port = unused.getsockname()[1]
        with pytest.raises(DependencyError) as caught:
            jar_paths(repository=f"http://me:secret@127.0.0.1:{port}/maven", lock_file=lock)

    assert caught.value.exit_code == 4
    shown = caught.value.render()
    assert "org.example:thing:1.0" in shown
    assert "refused" in shown
    assert "secret" not in shown
    for fix in ("make install", "POLYNYA_MAVEN_REPOSITORY", "POLYNYA_JARS"):
        assert fix in shown


def test_a_jar_that_the_repository_lacks_is_named(mirror: Path, lock: Path) -> None:
    next(mirror.rglob("*.jar")).unlink()

    with pytest.raises(DependencyError, match=r"cannot download org\.example:thing:1\.0"):
        jar_paths(repository=mirror.as_uri(), lock_file=lock)


def test_the_lock_pins_every_jar_by_digest() -> None:
    for jar in jars.locked_jars():
        assert len(jar.sha256) == 64
        assert jar.size > 5_000
    assert {jar.group for jar in jars.locked_jars()} == {
        jars.CORE,
        jars.AWS,
        jars.POSTGRESQL,
        jars.KAFKA,
        jars.MSK,
        jars.DEBEZIUM,
    }
