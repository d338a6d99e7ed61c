"""The sample unit of a capture: systemd knows all it says, and it starts a command there is."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from polynya.cli.commands import build_app
from polynya.cli.options import split_options
from tests.docs.pages import ROOT

UNIT = ROOT / "examples" / "systemd" / "polynya-landing.service"


def settings() -> dict[str, str]:
    """What the unit says, by key."""
    lines = UNIT.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if re.match(r"[A-Z]\w+=", line))


def test_it_starts_a_command_that_there_is() -> None:
    program, *arguments = shlex.split(settings()["ExecStart"])
    _, tokens = split_options(arguments)

    build_app().parse_args(tokens, exit_on_error=False, print_error=False)

    assert Path(program).name == "polynya"
    assert tokens[:2] == ["landing", "run"]


def test_a_stop_lets_the_captures_land_what_they_have() -> None:
    said = settings()

    assert said["KillMode"] == "mixed"
    assert int(said["TimeoutStopSec"]) > 40


def test_systemd_knows_what_it_says(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")

    def verify(text: str) -> str:
        # It looks for the program that a unit starts; on this machine there is none.
        (tmp_path / UNIT.name).write_text(text.replace("/opt/polynya/bin/polynya", "/bin/true"))
        command = ["systemd-analyze", "verify", "--man=no", tmp_path / UNIT.name]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        return "".join(line for line in said.splitlines() if UNIT.stem in line)

    text = UNIT.read_text("utf-8")
    assert verify(text) == ""
    assert "KillMood" in verify(text.replace("KillMode", "KillMood"))
