"""The folder of a demo, which is made anew each time."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster_demo.agents import Failed


def clean(folder: Path, mark: str) -> None:
    """Make the folder anew. One without the mark of the demo is left alone: raises Failed."""
    if folder.exists() and any(folder.iterdir()) and not (folder / mark).exists():
        raise Failed(f"{folder} is no folder of the demo; it was left alone")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / mark).touch()
