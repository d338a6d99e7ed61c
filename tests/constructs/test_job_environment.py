"""The archive of jobs: its Python has its packages and jars wherever it is unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

from polynya.cluster.submit import entry
from polynya.lake.spark.cache import cache_root
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.dependencies import split_lock
from polynya_constructs.packaging.job_environment import build_job_environment, job_environment
from polynya_constructs.packaging.package import Dependencies, write_code
from tests.projects import write_project

ROOT = Path(__file__).resolve().parents[2]
USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - {name: users, keys: [id], sequence_by: [n]}
"""


def archive_of(folder: Path, packages: Path, jars: Path) -> Path:
    """Build the archive with these packages and jars."""
    dependencies = Dependencies.of(ROOT, folder, Architecture.X86_64)
    dependencies.write({"site-packages": packages, "jars": jars})
    return build_job_environment(folder, dependencies, write_code(ROOT, folder)).path


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack as the script of a job does, and return its Python."""
    folder.mkdir()
    shutil.copy(archive, folder / "polynya.tar.gz")
    return Path(entry.python_in(folder))


def test_its_python_finds_packages_jars_and_polynya_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "beside.py").write_text("answer = 42\n")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").write_bytes(b"jar")
    archive = archive_of(tmp_path / "built", tmp_path / "packages", tmp_path / "jars")
    python = unpacked(archive, tmp_path / "elsewhere")
    code = """import beside, os, polynya
print(beside.answer, os.listdir(os.environ["POLYNYA_JARS"]), polynya.__file__)"""

    said = subprocess.run(
        [python, "-c", code],
        env={"POLYNYA_PYTHON": sys.executable},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    place = tmp_path / "elsewhere" / "environment" / "site-packages" / "polynya" / "__init__.py"
    assert said == f"42 ['a.jar'] {place}\n"


def test_it_is_built_once_for_the_same_code_and_packages(tmp_path: Path) -> None:
    for name in ("packages", "jars"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    path = archive_of(tmp_path / "built", tmp_path / "packages", tmp_path / "jars")
    before = path.read_bytes()
    dependencies = Dependencies.of(ROOT, tmp_path / "built", Architecture.X86_64)
    code = write_code(ROOT, tmp_path / "built")

    kept = job_environment(tmp_path / "built", dependencies, code)

    assert kept.built() is not None
    path.unlink()
    assert kept.built() is None
    assert build_job_environment(tmp_path / "built", dependencies, code).path.read_bytes() == before


@pytest.mark.spark
@pytest.mark.slow
def test_the_unpacked_archive_runs_a_project_with_an_empty_environment(tmp_path: Path) -> None:
    for name in split_lock((ROOT / "requirements.txt").read_text())[0] | {"pyspark": ""}:
        for file in files(name) or ():
            if ".." not in file.parts:
                target = tmp_path / "packages" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), target)
    jars = tmp_path / "jars"
    shutil.copytree(cache_root() / "jars", jars)
    archive = archive_of(tmp_path / "built", tmp_path / "packages", jars)
    python = unpacked(archive, tmp_path / "elsewhere")
    shop = write_project(tmp_path / "shop", users=USERS)
    landed = shop / "landing" / "users"
    landed.mkdir(parents=True)
    (landed / "1.json").write_text('{"id": 1, "n": 1, "name": "Ann"}\n')
    home = {"HOME": str(tmp_path / "home"), "POLYNYA_PYTHON": sys.executable}

    def polynya(*arguments: str) -> str:
        done = subprocess.run(
            [python, "-m", "polynya", *arguments],
            env=home, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert polynya("--version").startswith("polynya ")
    polynya("run", "--once", "--project", str(shop))
    assert "Ann" in polynya("query", "SELECT name FROM shop.users", "--project", str(shop))
    assert not os.environ.get("POLYNYA_JARS")
