"""A machine to boot: this one's files under a layer that is thrown away, and stand-ins for AWS."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BIN = Path(__file__).parent / "bin"
# A layer over the whole file system in a mount namespace of its own: what the boot writes to /etc,
# /opt and /var is gone with it.
_ENTER = """
set -eu
mount -t tmpfs -o size=3g none {layer}
mkdir {layer}/upper {layer}/work {layer}/root
mount -t overlay -o lowerdir=/,upperdir={layer}/upper,workdir={layer}/work none {layer}/root
mount --rbind /dev {layer}/root/dev
mount -t proc none {layer}/root/proc
mount -t tmpfs none {layer}/root/run
mount --bind {shared} {layer}/root{shared}
for folder in {searched}; do chmod o+x {layer}/root$folder; done
exec chroot {layer}/root {shell} -c {script}
"""


def can_layer() -> bool:
    """Whether this process may mount: root may, unless it is in a container."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def lay_out(shared: Path, user_data: str, python: str) -> None:
    """Make the folder that a machine shares with a test: the user data, and the stand-ins.

    Args:
        shared: is made.
        user_data: what the machine runs at its start.
        python: the interpreter of the stand-ins, as the machine sees it.
    """
    (shared / "bin").mkdir(parents=True)
    shared.chmod(0o777)
    (shared / "user-data").write_text(user_data)
    (shared / "user-data").chmod(0o755)
    for program in BIN.iterdir():
        text = program.read_text().replace("#!/usr/bin/env python3", f"#!{python}", 1)
        (shared / "bin" / program.name).write_text(text)
        (shared / "bin" / program.name).chmod(0o755)


@dataclass(frozen=True)
class Booted:
    """What a machine left behind: what was printed, and the files that a test asked for."""

    printed: str
    shared: Path

    @property
    def calls(self) -> list[str]:
        """What the group was told, in order: hook and result of a lifecycle action, or poweroff."""
        calls = self.shared / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        made = [json.loads(line) for line in lines]
        told = ("lifecycle-hook-name", "lifecycle-action-result")
        return [
            " ".join(call[name] for name in told if name in call) or call["command"]
            for call in made
        ]

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The lines of metrics that the boot sent itself."""
        lines = [json.loads(line) for line in (self.shared / "calls").read_text().splitlines()]
        events = [event for call in lines for event in json.loads(call.get("log-events", "[]"))]
        return [json.loads(event["message"]) for event in events]

    def file(self, name: str) -> str:
        """Text of a file that the test's commands put aside."""
        return (self.shared / name).read_text()


@dataclass
class Machine:
    """Runs commands as root of a machine that has just started."""

    folder: Path
    metadata: str
    s3: str
    extra: dict[str, str] = field(default_factory=dict)

    def run(self, user_data: str, commands: str) -> Booted:
        """Run commands, in which `$BOOT` is the user data and `$SHARED` outlives the machine."""
        shared, layer = self.folder / "shared", self.folder / "layer"
        layer.mkdir()
        python = os.path.realpath(sys.executable)
        lay_out(shared, user_data, python)
        packages = sysconfig.get_path("purelib")
        # Parts of the way to them may be closed to others than root.
        searched = {*Path(python).parents, *shared.parents, *Path(packages).parents}
        variables = {
            "PATH": f"{shared}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "BOOT": str(shared / "user-data"),
            "SHARED": str(shared),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "TEST_S3": self.s3,
            "TEST_CALLS": str(shared / "calls"),
            "TEST_PACKAGES": str(shared / "packages"),
            "TEST_PYTHON": python,
            "TEST_SITE_PACKAGES": packages,
            **self.extra,
        }
        script = _ENTER.format(
            layer=layer, shared=shared, shell="/bin/bash", script=shlex.quote(commands),
            searched=" ".join(str(folder) for folder in sorted(searched)),
        )  # fmt: skip
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", script],
            env=variables, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return Booted(done.stdout + done.stderr, shared)
