"""Packages, processes and heartbeats of the network agent's versions.

Keeper and process exchange three files in a folder, which an environment variable names. Each
version knows the other by these names alone, so they never change:

- `heartbeat`: JSON that the process writes after each turn
- `serve`: exists once the process may carry out commands
- `trouble`: what the keeper wants operators to know

The pin and the packages are objects without a folder in the coordination place, so no version
mistakes them for a cluster.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Protocol, TypeAlias

from pydantic import Field

from polynya.cluster.coordination.documents import MAX_DOCUMENT_BYTES, Document, Text, parse
from polynya.cluster.network.decide import ObservedProcess
from polynya.model.error_catalogue.cluster import AGENT_PACKAGE_UNUSABLE, CLUSTER_OBJECT_CONTENDED
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

PIN: Final = "network-agent-version"
#: Largest package, in bytes; the code has two million.
MAX_PACKAGE_BYTES: Final = 64 * 2**20
#: Somebody else pinning at the same moment is rare.
_PIN_TRIES: Final = 5


class Pin(Document):
    """`network-agent-version`: the code that network agents run, and the author of the pin.

    Attributes:
        sha256: of the package, lower-case hex.
        size: of the package, in bytes.
    """

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0, le=MAX_PACKAGE_BYTES, strict=True)]
    by: Text
    reason: Text = ""
    since: datetime


def package_path(sha256: str) -> str:
    """Where the package with this digest is."""
    return f"network-agent-{sha256}.tar"


def wanted(store: ObjectStore) -> Pin | None:
    """The pin, None when the installed version is wanted.

    Raises:
        OperationError: it cannot be understood (POLYNYA-AGT-012).
        DependencyError: what the store raises.
    """
    try:
        return parse(Pin, store.read(PIN, MAX_DOCUMENT_BYTES).data, PIN)
    except FileNotFoundError:
        return None


def put_pin(
    store: ObjectStore, package: bytes, *, by: str, reason: str, now: datetime, token: str
) -> Pin:
    """Let network agents run this package; `token` is unique.

    The package is written before the pin, so a reader of the pin finds it.

    Raises:
        ConflictError: others pin all the time (POLYNYA-AGT-022).
        DependencyError: what the store raises.
    """
    sha256 = hashlib.sha256(package).hexdigest()
    pin = Pin(nonce=token, sha256=sha256, size=len(package), by=by, reason=reason, since=now)
    store.put_if_absent(package_path(sha256), package)
    for _ in range(_PIN_TRIES):
        version, unknown = _before(store)
        data = pin.model_copy(update=unknown).encoded()
        if version is None:
            written = store.put_if_absent(PIN, data)
        else:
            written = store.put_if_unchanged(PIN, data, version)
        found = wanted(store)
        if written or (found is not None and found.nonce == token):
            return pin
    raise CLUSTER_OBJECT_CONTENDED(
        where=PIN,
        state="the pin of the other process is in force",
        fix="find out who else pins a package, then try again",
    )


def take_pin_back(store: ObjectStore) -> bool:
    """Let network agents run the version that is installed. False: they were to do so already."""
    for _ in range(_PIN_TRIES):
        version, _ = _before(store)
        if version is None:
            return False
        if store.delete_if_unchanged(PIN, version):
            return True
    return False


def _before(store: ObjectStore) -> tuple[str | None, dict[str, object]]:
    """Version of the pin that is there, and what it has that this version does not know."""
    try:
        found = store.read(PIN, MAX_DOCUMENT_BYTES)
    except FileNotFoundError:
        return None, {}
    return found.version, dict(parse(Pin, found.data, PIN).model_extra or {})


#: What it may become on disk.
_MAX_UNPACKED_BYTES: Final = 512 * 2**20
_MAX_FILES: Final = 20_000
_ENTRY_POINT: Final = Path("polynya", "__main__.py")


def fetch(store: ObjectStore, pin: Pin, versions: Path) -> Path:
    """The folder of a pinned package below `versions`; fetched unless it is there.

    Raises:
        OperationError: it is not the file that the pin names, or no package (POLYNYA-AGT-063).
        FileNotFoundError: there is none yet.
        DependencyError: what the store raises.
    """
    place = versions / pin.sha256
    if place.is_dir():
        return place
    where = package_path(pin.sha256)
    data = store.read(where, pin.size + 1).data
    if len(data) != pin.size or hashlib.sha256(data).hexdigest() != pin.sha256:
        raise AGENT_PACKAGE_UNUSABLE(where=where, why="it is not the file that the pin names")
    partial = versions / f"{pin.sha256}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _unpack(data, partial)
    except (tarfile.TarError, ValueError, EOFError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise AGENT_PACKAGE_UNUSABLE(where=where, why=str(error)) from error
    # Whole at every moment: a folder of this name was unpacked to its end.
    partial.replace(place)
    return place


def forget(versions: Path, keep: set[str]) -> None:
    """Delete the folders of all other packages, and what a broken fetch left."""
    for one in versions.iterdir() if versions.is_dir() else ():
        if one.name not in keep:
            shutil.rmtree(one, ignore_errors=True)


def _unpack(data: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
        if len(members) > _MAX_FILES or sum(one.size for one in members) > _MAX_UNPACKED_BYTES:
            raise ValueError("it is larger than a package")
        # Nothing outside of the folder, no devices, no links out of it.
        archive.extractall(folder, members, filter="data")
    if not (folder / _ENTRY_POINT).is_file():
        raise ValueError(f"it has no {_ENTRY_POINT}")


FOLDER_VARIABLE: Final = "POLYNYA_NETWORK_AGENT_KEEPER"
_HEARTBEAT_FILE: Final = "heartbeat"
_SERVE_FILE: Final = "serve"
_TROUBLE_FILE: Final = "trouble"


class UpdateHeartbeat:
    """The side of the process. Without a keeper `folder` is None, and the process serves."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._turns = self._connected = 0

    @staticmethod
    def of(environment: Mapping[str, str]) -> UpdateHeartbeat:
        """The one that the environment names."""
        folder = environment.get(FOLDER_VARIABLE)
        return UpdateHeartbeat(Path(folder) if folder else None)

    @property
    def may_serve(self) -> bool:
        """Whether commands may be carried out."""
        return self._folder is None or (self._folder / _SERVE_FILE).exists()

    @property
    def trouble(self) -> str:
        """What operators have to know of the version, empty if nothing."""
        if self._folder is None:
            return ""
        with suppress(OSError, UnicodeDecodeError):
            return (self._folder / _TROUBLE_FILE).read_text(encoding="utf-8")[:2000]
        return ""

    def beat(self, *, connected: bool) -> None:
        """A turn is over; `connected`: all clusters were reached in it."""
        self._turns += 1
        self._connected += connected
        if self._folder is not None:
            state = {"turns": self._turns, "connected_turns": self._connected}
            with suppress(OSError):
                _put(self._folder / _HEARTBEAT_FILE, json.dumps(state | {"connected": connected}))


class Pulse:
    """The side of the keeper, for one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in (_HEARTBEAT_FILE, _SERVE_FILE):
            (folder / name).unlink(missing_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the process receives."""
        return {FOLDER_VARIABLE: str(self._folder)}

    def serve(self) -> None:
        """Let it carry out commands."""
        (self._folder / _SERVE_FILE).touch()

    def say(self, trouble: str) -> None:
        """Let people know this by its sign of life."""
        with suppress(OSError):
            _put(self._folder / _TROUBLE_FILE, trouble)

    def read(self) -> tuple[int, int, bool]:
        """Its turns, those in which it was connected, and whether it is now."""
        try:
            found = json.loads((self._folder / _HEARTBEAT_FILE).read_text(encoding="utf-8"))
            return int(found["turns"]), int(found["connected_turns"]), bool(found["connected"])
        except (OSError, ValueError, LookupError, TypeError):
            return 0, 0, False


def _put(path: Path, text: str) -> None:
    """Whole at every moment."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


#: After SIGTERM; then it is killed. A turn that waits for AWS takes some seconds.
END_SECONDS: Final = 30.0
_STEP_SECONDS: Final = 0.1


class Started(Protocol):
    """A process that was started."""

    def poll(self) -> int | None:
        """Its exit code, None while it lives."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


#: Starts a version, whose code is in a folder (None: the one that is installed).
Start: TypeAlias = Callable[[Path | None, Mapping[str, str]], Started]


def starter(arguments: Sequence[str]) -> Start:
    """Starts `polynya` with these arguments in the Python that runs now."""

    def start(code: Path | None, more: Mapping[str, str]) -> Started:
        environment = {**os.environ, **more}
        # Only the keeper notifies systemd.
        environment.pop("NOTIFY_SOCKET", None)
        environment.pop("WATCHDOG_USEC", None)
        if code is not None:
            former = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join([str(code), *([former] if former else [])])
        return subprocess.Popen([sys.executable, "-m", "polynya", *arguments], env=environment)

    return start


class Child:
    """One process and its heartbeat. Times in monotonic seconds of the clock."""

    def __init__(self, version: str | None, code: Path | None, pulse: Pulse, start: Start) -> None:
        self.version, self.pulse = version, pulse
        self._process = start(code, pulse.environment)
        self._turns = (0, 0)
        self._quiet = 0.0

    @property
    def connected(self) -> bool:
        """Whether its last turn reached all clusters."""
        return self.pulse.read()[2]

    def watch(self, seconds: float, *, on_trial: bool) -> bool:
        """Look at its heartbeat; so many seconds count since the last look. True: there was one.

        Of one that is on trial only a turn counts in which it was connected.
        """
        turns, connected, _ = self.pulse.read()
        before, self._turns = self._turns, (turns, connected)
        beaten = connected > before[1] if on_trial else turns > before[0]
        self._quiet = 0.0 if beaten else self._quiet + seconds
        return beaten

    def known(self) -> ObservedProcess:
        """What is known of it."""
        return ObservedProcess(self.version, self._turns[1], self._quiet, self._process.poll())

    def end(self, clock: Clock) -> None:
        """Ask it to end, and end it after a while."""
        self._process.terminate()
        until = clock.monotonic() + END_SECONDS
        while self._process.poll() is None and clock.monotonic() < until:
            clock.sleep(_STEP_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.poll()

    def kill(self) -> None:
        """End it at once: it has nothing under way."""
        self._process.kill()
