"""Build the dependencies of a runtime for either architecture, on any machine, without Docker.

pip fetches what `requirements.txt` pins, as wheels for the architecture of the nodes, and lays
them out as they are to lie there: a node unpacks one file and installs nothing. PySpark comes as
source only; its wheel has no machine code, so the one built here serves everywhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.package import PYTHON, Archive, Dependencies

#: Amazon Linux 2023 has glibc 2.34; wheels made for an older one run on it, too.
_GLIBC_MINORS = range(34, 16, -1)
_MACHINES: Final = {Architecture.ARM64: "aarch64", Architecture.X86_64: "x86_64"}
# Published as source only.
_FROM_SOURCE = frozenset({"pyspark"})
# What pip notes for pip; it names the machine on which it ran.
_NOTES_OF_PIP = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


class BuildError(Exception):
    """The dependencies cannot be built; says what failed and what to do."""


def build_dependencies(project: Path, folder: Path, architecture: Architecture) -> Archive:
    """Return the archive of the dependencies, building it if `folder` does not have it.

    Args:
        project: with the lock files.
        folder: of the archives.
        architecture: of the nodes.

    Raises:
        BuildError: pip or the fetching of the jars failed.
    """
    dependencies = Dependencies.of(project, folder, architecture)
    if archive := dependencies.built():
        return archive
    with tempfile.TemporaryDirectory(prefix="polynya-package-") as name:
        scratch = Path(name)
        _lay_out(project, scratch, architecture)
        _copy_jars(project, scratch / "jars")
        trees = {"site-packages": scratch / "site-packages", "jars": scratch / "jars"}
        return dependencies.write(trees)


def split_lock(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Divide a lock file by how its packages are published; text of each pin by its package.

    Returns:
        Those that have wheels, and those that are source only.
    """
    pins: dict[str, str] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", text):
        if match := re.match(r"([A-Za-z0-9._-]+)==", block):
            pins[match[1]] = block.rstrip() + "\n"
    source = {name: pin for name, pin in pins.items() if name in _FROM_SOURCE}
    return {name: pin for name, pin in pins.items() if name not in source}, source


def _lay_out(project: Path, scratch: Path, architecture: Architecture) -> None:
    """Make `site-packages` in a scratch folder."""
    binary, source = split_lock((project / "requirements.txt").read_text(encoding="utf-8"))
    # A marker speaks of the nodes' Python, pip would take it as speaking of this one.
    unmarked = [re.sub(r" ; [^\\\n]*", "", pin) for pin in binary.values()]
    (scratch / "binary.txt").write_text("".join(unmarked), encoding="utf-8")
    (scratch / "source.txt").write_text("".join(source.values()), encoding="utf-8")
    wheels = str(scratch / "wheels")
    foreign = [*_platforms(architecture), "--python-version", PYTHON, "--only-binary=:all:"]
    locked = ["--require-hashes", "--no-deps", "--quiet"]
    _pip("download", *locked, *foreign, "--requirement", str(scratch / "binary.txt"), "-d", wheels)
    _pip("wheel", *locked, "--no-build-isolation",
         "--requirement", str(scratch / "source.txt"), "-w", wheels)  # fmt: skip
    site_packages = scratch / "site-packages"
    _pip("install", *foreign, "--quiet", "--no-deps", "--no-index", "--no-compile",
         "--find-links", wheels, "--target", str(site_packages), *binary, *source)  # fmt: skip
    for folder in ("bin", "share"):  # of commands whose first line names this machine's Python
        shutil.rmtree(site_packages / folder, ignore_errors=True)
    for path in site_packages.glob("*.dist-info/*"):
        if path.name in _NOTES_OF_PIP:
            path.unlink()


def _platforms(architecture: Architecture) -> Iterator[str]:
    machine = _MACHINES[architecture]
    for tag in (*(f"manylinux_2_{minor}" for minor in _GLIBC_MINORS), "manylinux2014"):
        yield f"--platform={tag}_{machine}"


def _copy_jars(project: Path, folder: Path) -> None:
    """Fetch and verify the jars as the runtime itself does, and copy them."""
    fetched = _run(
        [
            sys.executable,
            "-m",
            "polynya.lake.spark.jars",
            "fetch",
            "--group",
            "core",
            "--group",
            "aws",
            "--group",
            "kafka",
            "--group",
            "msk",
            "--group",
            "debezium",
        ],
        cwd=project,
    )
    folder.mkdir()
    for line in fetched.splitlines():
        shutil.copy(line, folder)


def _pip(verb: str, *arguments: str) -> None:
    _run([sys.executable, "-m", "pip", verb, "--disable-pip-version-check", *arguments])


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        what = " ".join(command[2:4])
        raise BuildError(f"`{what}` failed with code {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout
