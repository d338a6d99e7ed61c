"""Programs that read tables with packages of their own: pandas and dbt, which bring NumPy.

They are in `.venv/consumers`, since the runtime does without them and the other tests have to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.absent import absent

_FOLDER = Path(sys.prefix) / "consumers"


def consume(folder: Path, *arguments: str) -> str:
    """What Python prints in a folder, with these packages on top of the runtime's."""
    if not _FOLDER.is_dir():
        absent("no .venv/consumers: `make test-slow` installs it")
    paths = [str(_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
