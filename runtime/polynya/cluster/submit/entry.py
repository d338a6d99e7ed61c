"""The script that starts a job in EMR Serverless or Glue: it becomes `polynya`.

It lies alone in S3, so the script may need only Python. The service has another
version of Spark than the package was tested with, so the script removes the service's Spark from
the environment, and the package starts its own.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Glue has named arguments only: the list is in one of them, as base64 of JSON.
ARGUMENTS = "--polynya-arguments"
#: What `spark-submit` sets for the Python of its own Spark.
_OF_SPARK = ("PYSPARK_", "PYTHONPATH", "SPARK_")


def arguments_in(given: Sequence[str]) -> list[str]:
    """The arguments of `polynya` in those of the script."""
    if ARGUMENTS not in given:
        return list(given)
    text = given[given.index(ARGUMENTS) + 1]
    return [str(one) for one in json.loads(base64.b64decode(text))]


def environment_of(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment without what belongs to the Spark of the service."""
    return {name: text for name, text in inherited.items() if not name.startswith(_OF_SPARK)}


def python_in(folder: Path) -> str:
    """Python with Polynya: of the environment that came with the job, else the one that runs."""
    packed, unpacked = folder / "polynya.tar.gz", folder / "environment"
    if packed.is_file() and not unpacked.is_dir():
        with tarfile.open(packed) as archive:
            archive.extractall(unpacked, filter="tar")
    python = unpacked / "bin" / "python"
    return str(python) if python.exists() else sys.executable


def main() -> None:
    """Become `polynya`."""
    python = python_in(Path.cwd())
    command = [python, "-m", "polynya", *arguments_in(sys.argv[1:])]
    sys.stdout.flush()
    os.execve(python, command, environment_of(os.environ))  # noqa: S606


if __name__ == "__main__":
    main()
