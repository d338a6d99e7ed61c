"""What a run that goes on says when somebody removes its warehouse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.projects import USERS, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PATIENCE_SECONDS = 150.0
_POLYNYA = "import sys; from polynya.cli.main import main; sys.exit(main())"


def land(project: Path, number: int) -> None:
    record = {"userId": number, "sequenceNum": number, "operation": "INSERT"}
    file = project / "landing" / "users" / f"{number}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record) + "\n")


def wait_for(text: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


@pytest.mark.parametrize("removed", ["warehouse", "warehouse/catalog.db"])
def test_a_removed_warehouse_is_no_bug(removed: str, tmp_path: Path) -> None:
    project = write_project(tmp_path, users=USERS)
    land(project, 1)
    log = tmp_path / "run.log"
    with log.open("w") as out:
        line = [sys.executable, "-c", _POLYNYA, "run", "-p", str(project)]
        run = subprocess.Popen(line, stderr=out, stdout=subprocess.DEVNULL, env=dict(os.environ))
    try:
        wait_for("copied ", log)
        place = project / removed
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink()
        land(project, 2)
        wait_for("POLYNYA-DEP-017", log)
        run.terminate()
        code = run.wait(PATIENCE_SECONDS)
    finally:
        run.kill()

    assert code == 4, log.read_text()
    assert "POLYNYA-BUG" not in log.read_text()
