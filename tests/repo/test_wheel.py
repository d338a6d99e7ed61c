"""The package as `pip install` gives it, without the repository around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polynya

PACKAGE = Path(polynya.__file__).parent


def test_a_built_wheel_has_all_that_a_command_needs(tmp_path: Path) -> None:
    """Built from a copy: a build leaves folders behind."""
    source, installed = tmp_path / "source", tmp_path / "installed"
    shutil.copytree(
        PACKAGE.parent, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("polynya-*.whl")
    subprocess.run(
        # A command compiles what it imports: a small part of it.
        [*pip, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(installed),
         str(wheel)],
        check=True,
    )  # fmt: skip
    shutil.rmtree(source)

    wanted = {
        file.relative_to(PACKAGE) for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }  # fmt: skip
    assert {one for one in wanted if not (installed / "polynya" / one).is_file()} == set()
    script = installed / "bin" / "polynya"
    assert script.is_file()
    for command in (["init", "shop"], ["validate", "--project", "shop"], ["explain", "CFG-007"]):
        done = subprocess.run(
            [sys.executable, str(script), *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
