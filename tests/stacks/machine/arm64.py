"""A machine with an arm64 processor to boot: Debian's files for arm64, which an emulator runs.

The emulator is qemu in user mode. The kernel starts it for each program of the machine, also for
those that a program starts, because the machine's own namespace has a `binfmt_misc` that says so.
This machine's is left as it is, and nothing is installed on it.

apt fetches the emulator and the files once, from where this machine has its own packages and
verified by the same keys, into the cache of the user.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polynya.lake.spark.cache import cache_root
from tests.absent import absent
from tests.stacks.machine.node import Booted, lay_out

PYTHON: Final = "/usr/bin/python3.11"
"""Of the machine."""

#: What Amazon Linux has, or its `dnf` is asked for, by the names of Debian.
_PACKAGES: Final = (
    "python3.11", "openjdk-17-jre-headless", "bash", "coreutils", "curl", "findutils", "gawk",
    "grep", "gzip", "login", "passwd", "procps", "sed", "tar", "util-linux",
)  # fmt: skip
_EMULATOR: Final = "qemu-user-static"
#: Graviton2, the oldest processor of the types that a cluster takes by default: what a newer one
#: has besides, the emulator refuses.
_PROCESSOR: Final = "neoverse-n1"
#: The second compiler costs the emulator more than it gains within minutes.
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Magic and mask of a 64-bit little-endian ELF file for AArch64 (`/usr/lib/binfmt.d` of the
# package). P keeps the name by which a program was called, F opens the emulator now, where its path
# still leads to it.
_FORMAT: Final = (
    r":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    ":{emulator}:PF"
)
_ENTER: Final = """
set -eu
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' '{format}' >/proc/sys/fs/binfmt_misc/register
mount --rbind /dev {root}/dev
mount -t proc none {root}/proc
mount -t tmpfs none {root}/run
mount --bind {shared} {root}/mnt
exec chroot {root} /bin/bash -c "PATH=/mnt/bin:$PATH; $COMMANDS"
"""
#: Before anything else, so that a kernel without it is told from a boot that fails.
_PROBE: Final = "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc"


@dataclass(frozen=True, slots=True)
class Arm64Parts:
    """What was fetched: the emulator, for this machine, and packages for the other."""

    emulator: Path
    packages: tuple[Path, ...]


def arm64_parts() -> Arm64Parts:
    """Return the emulator and the packages, fetched if they are missing.

    Without them, or on a kernel that cannot have a format of programs for some processes only, the
    test is skipped, where CI is set failed.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            absent(f"the arm64 emulator comes from Debian's packages, and there is no {program}")
    if _run(_PROBE).returncode != 0:
        absent("an emulator for a test alone needs root and a kernel from 6.7 on")
    folder = cache_root() / "test-parts" / "debian-arm64"
    fetched, wanted = folder / "fetched", " ".join([_EMULATOR, *_PACKAGES])
    if not (fetched.is_file() and fetched.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        _fetch(folder)
        fetched.write_text(wanted)
    packages = tuple(sorted((folder / "cache" / "archives").glob("*.deb")))
    return Arm64Parts(folder / "emulator" / "usr" / "bin" / "qemu-aarch64-static", packages)


@dataclass
class Arm64Machine:
    """Runs commands as root of an arm64 machine that has just started.

    Attributes:
        folder: of the machine's files, some GB; is made.
        parts: of which the machine is.
        metadata: address of its metadata service.
        published: the archives that a node fetches, by the last part of their keys.
        endpoint: of the services of AWS.
    """

    folder: Path
    parts: Arm64Parts
    metadata: str
    published: Path
    endpoint: str

    def run(self, user_data: str, commands: str, *, timeout: float) -> Booted:
        """Run commands, in which `$BOOT` is the user data; what the agent said is in `agent.log`.

        Args:
            user_data: what a node runs at its start.
            commands: for bash.
            timeout: seconds after which the machine is switched off.
        """
        shared, root = self.folder / "shared", self.folder / "root"
        lay_out(shared, user_data, PYTHON)
        shutil.copytree(self.published, shared / "published")
        self._unpack(root)
        variables = {
            "COMMANDS": commands,
            "BOOT": "/mnt/user-data",
            "QEMU_CPU": _PROCESSOR,
            "JAVA_TOOL_OPTIONS": _JAVA,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "TEST_CALLS": "/mnt/calls",
            "TEST_PACKAGES": "/mnt/packages",
            "TEST_PUBLISHED": "/mnt/published",
            "TEST_PYTHON": PYTHON,
        }
        script = _ENTER.format(
            format=_FORMAT.format(emulator=self.parts.emulator), root=root, shared=shared
        )
        done = _run(script, variables, timeout)
        agent = root / "var" / "log" / "polynya" / "agent.log"
        shutil.copy(agent if agent.exists() else os.devnull, shared / "agent.log")
        return Booted(done.stdout, shared)

    def _unpack(self, root: Path) -> None:
        """Lay out the packages, and what their scripts would have made of which a node has use."""
        for name in ("bin", "lib", "sbin"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        for package in self.parts.packages:
            content = subprocess.Popen(
                ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
            )
            line = ["tar", "--extract", "--keep-directory-symlink", "--directory", root]
            subprocess.run(line, stdin=content.stdout, check=True)
            assert content.wait() == 0, package
        (root / "usr" / "bin" / "java").symlink_to("/usr/lib/jvm/java-17-openjdk-arm64/bin/java")
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
        (root / "etc" / "group").write_text("root:x:0:\n")
        (root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
        for name in ("etc/logrotate.d", "etc/systemd/system", "mnt"):
            (root / name).mkdir(parents=True, exist_ok=True)


def _fetch(folder: Path) -> None:
    """Let apt fetch into a folder, with lists of its own and nothing installed."""
    lists, archives = folder / "lists", folder / "cache" / "archives"
    for made in (lists / "partial", archives / "partial"):
        made.mkdir(parents=True)
    (folder / "status").touch()
    own = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    configuration = folder / "apt.conf"
    configuration.write_text(
        f"""\
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; "{own}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "{folder}";
Dir::State::Lists "{lists}";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
"""
    )
    for line in (
        ["apt-get", "--quiet=2", "update"],
        ["apt-get", "--quiet=2", "--yes", "--download-only", "install",
         f"{_EMULATOR}:{own}", *_PACKAGES],
    ):  # fmt: skip
        done = subprocess.run(
            line, env={**os.environ, "APT_CONFIG": str(configuration)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            absent(f"the arm64 emulator cannot be fetched: {done.stderr.strip()[-500:]}")
    (emulator,) = archives.glob(f"{_EMULATOR}_*.deb")
    subprocess.run(["dpkg-deb", "--extract", emulator, folder / "emulator"], check=True)
    emulator.unlink()
    shutil.rmtree(lists)


def _run(
    script: str, variables: dict[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a script as root of namespaces of its own, in which it has the users of this machine.

    A user namespace, because only there a `binfmt_misc` of its own can be mounted. When the time
    is over, everything in it is ended, and what it printed is returned.
    """
    process = subprocess.Popen(
        ["unshare", "--user", "--mount", "--pid", "--fork", "--kill-child",
         "sh", "-c", 'read _; exec sh -c "$0"', script],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(variables or {})}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        _map_users(process)
        printed, _ = process.communicate("\n", timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        printed = process.communicate()[0] + f"\nended after {timeout:.0f} s\n"
    except OSError as problem:  # this process may not map users
        process.kill()
        printed = process.communicate()[0] + str(problem)
    return subprocess.CompletedProcess(process.args, process.returncode, printed)


def _map_users(process: subprocess.Popen[str]) -> None:
    """Let a process that waits for it have all users of this machine in its own namespace."""
    own = os.readlink("/proc/self/ns/user")
    while process.poll() is None and os.readlink(f"/proc/{process.pid}/ns/user") == own:
        time.sleep(0.01)
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{process.pid}/{kind}").write_text("0 0 65536")
