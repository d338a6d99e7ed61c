"""The runtime package: the same bytes from the same files, and names that tell when they differ."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.archive import write_archive
from polynya_constructs.packaging.dependencies import split_lock
from polynya_constructs.packaging.package import LOCKS, Dependencies, write_code

ROOT = Path(__file__).resolve().parents[2]


def tree(folder: Path, *, moment: int, umask: int) -> Path:
    """Some files as a machine would have them that was set up at a moment."""
    before = os.umask(umask)
    names = ["b/deep.py", "a.py", "run"]
    for name in names if moment % 2 else reversed(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
        os.utime(path, (moment, moment))
    (folder / "run").chmod(0o777 & ~umask)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(str(moment).encode())
    os.umask(before)
    return folder


def test_an_archive_knows_nothing_of_the_machine_that_made_it(tmp_path: Path) -> None:
    one = tree(tmp_path / "one", moment=1_000_000_001, umask=0o022)
    two = tree(tmp_path / "two", moment=1_700_000_000, umask=0o077)

    first = write_archive(tmp_path / "1.tar", {"x": one, "y": one})
    assert write_archive(tmp_path / "2.tar", {"y": two, "x": two}) == first
    with tarfile.open(tmp_path / "1.tar") as archive:
        modes = {member.name: member.mode for member in archive}
    assert modes == {f"{p}/{n}": m for p in "xy" for n, m in
                     (("a.py", 0o644), ("b/deep.py", 0o644), ("run", 0o755))}  # fmt: skip
    (two / "a.py").write_text("# b.py\n")
    assert write_archive(tmp_path / "2.tar", {"y": two, "x": two}) != first


def test_a_link_is_not_followed_into_an_archive(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "passwd").symlink_to("/etc/passwd")

    with pytest.raises(ValueError, match="passwd is neither a file nor a folder"):
        write_archive(tmp_path / "1.tar", {"x": tmp_path / "tree"})


def test_dependencies_are_others_when_a_lock_or_the_processor_is(tmp_path: Path) -> None:
    for lock in LOCKS:
        (tmp_path / lock).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / lock, tmp_path / lock)

    def name(architecture: Architecture = Architecture.ARM64) -> str:
        return Dependencies.of(tmp_path, tmp_path, architecture).name

    names = {name(), name(Architecture.X86_64)}
    assert name() == Dependencies.of(ROOT, tmp_path, Architecture.ARM64).name
    for lock in LOCKS:
        (tmp_path / lock).write_text((tmp_path / lock).read_text() + "\n")
        names.add(name())
    assert len(names) == 2 + len(LOCKS)


def test_a_half_built_package_is_none(tmp_path: Path) -> None:
    files = tree(tmp_path / "files", moment=1, umask=0o022)
    dependencies = Dependencies.of(ROOT, tmp_path, Architecture.ARM64)
    assert dependencies.built() is None

    archive = dependencies.write({"site-packages": files})
    assert dependencies.built() == archive
    with dependencies.path.open("r+b") as stream:
        stream.truncate(1000)
    assert dependencies.built() is None
    dependencies.manifest.write_text("{")
    assert dependencies.built() is None


def test_the_lock_is_divided_without_a_rest() -> None:
    text = (ROOT / "requirements.txt").read_text()

    binary, source = split_lock(text)

    assert list(source) == ["pyspark"]
    assert len(binary) + len(source) == text.count("==")
    assert all("--hash=sha256:" in pin for pin in [*binary.values(), *source.values()])


def test_the_code_has_what_a_node_starts(tmp_path: Path) -> None:
    archive = write_code(ROOT, tmp_path)

    with tarfile.open(archive.path) as packed:
        names = {member.name: member.mode for member in packed}
    assert archive.name == archive.sha256
    assert names["polynya/cli/main.py"] == names["node/polynya-agent.service"] == 0o644
    assert names["polynya/lake/spark/jars.lock.json"] == 0o644
    assert {names[f"node/{name}"] for name in ("polynya", "launched", "drain", "health")} == {0o755}
