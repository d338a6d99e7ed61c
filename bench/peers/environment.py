"""What a contender runs with, fetched into the cache on first use: jars, and another PySpark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.contenders import Contender
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.jars import CORE, jar_paths

LOCK = Path(__file__).with_name("jars.lock.json")


class UnavailableError(Exception):
    """A contender cannot be run; the text is the reason."""


def jars(contender: Contender) -> list[str]:
    """Verified paths of its jars. Raises DependencyError when they cannot be had."""
    if contender.jars == CORE:
        return jar_paths()
    return jar_paths(groups=(contender.jars,), lock_file=LOCK)


def python(contender: Contender) -> str:
    """Its Python: this one, or one of a virtual environment with its PySpark.

    Raises UnavailableError when that cannot be made.
    """
    if contender.spark is None:
        return sys.executable
    home = cache_root() / "bench" / f"pyspark-{contender.spark}"
    made, executable = home / "made", home / "bin" / "python"
    if not made.is_file():
        shutil.rmtree(home, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(executable), "-m", "pip", "install", "--quiet", f"pyspark=={contender.spark}")
        made.touch()
    return str(executable)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnavailableError(f"`{' '.join(command[1:])}`: {said[-1] if said else 'failed'}")
