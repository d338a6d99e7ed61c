"""The class archive: used when it fits, never needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from polynya.lake.spark import class_archive as cds
from polynya.lake.spark.class_archive import archive_path, cds_options, create_archive
from polynya.lake.spark.java import JavaHome
from polynya.model.errors import DependencyError


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JavaHome:
    """A Java that brings the archive of its own classes, and a cache of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    return JavaHome(home, "17.0.1", "system", home)


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "a.jar"
    path.write_bytes(b"1")
    return path


def trained(java: JavaHome, jars: object, options: list[str], scratch: Path) -> None:
    """In place of the Spark job: write what the JVM would."""
    (flag,) = [option for option in options if option.startswith("-XX:ArchiveClassesAtExit=")]
    Path(flag.partition("=")[2]).write_bytes(b"archive")


def test_no_archive_means_no_flags(java: JavaHome, jar: Path) -> None:
    assert cds_options(java, [str(jar)]) == []


def test_the_archive_is_used_until_a_jar_changes(
    monkeypatch: pytest.MonkeyPatch, java: JavaHome, jar: Path
) -> None:
    monkeypatch.setattr(cds, "_train", trained)

    archive = create_archive(java, [str(jar)])

    assert cds_options(java, [str(jar)])[0] == f"-XX:SharedArchiveFile={archive}"
    jar.write_bytes(b"22")
    assert cds_options(java, [str(jar)]) == []


def test_it_is_made_once(monkeypatch: pytest.MonkeyPatch, java: JavaHome, jar: Path) -> None:
    monkeypatch.setattr(cds, "_train", trained)
    archive = create_archive(java, [str(jar)])
    monkeypatch.setattr(cds, "_train", None)

    assert create_archive(java, [str(jar)]) == archive


def test_archives_that_nothing_used_for_a_month_go(
    monkeypatch: pytest.MonkeyPatch, java: JavaHome, jar: Path
) -> None:
    monkeypatch.setattr(cds, "_train", trained)
    old = create_archive(java, [str(jar)])
    os.utime(old, (1, 1))
    jar.write_bytes(b"22")

    new = create_archive(java, [str(jar)])

    assert (old.exists(), new.exists()) == (False, True)


def test_a_failed_job_leaves_no_archive(
    monkeypatch: pytest.MonkeyPatch, java: JavaHome, jar: Path
) -> None:
    # This Java has no program: the job cannot start.
    with pytest.raises(DependencyError, match="the class archive cannot be made"):
        create_archive(java, [str(jar)])

    assert not archive_path(java, [str(jar)]).exists()
    assert list(archive_path(java, [str(jar)]).parent.glob(".create-*")) == []
