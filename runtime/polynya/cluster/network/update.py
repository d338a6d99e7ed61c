"""The keeper: it runs a network agent in the pinned version, or in the last one that worked.

The keeper fetches and verifies a new version and starts it next to the serving one. The new process
reaches the clusters and sends heartbeats, but executes no command; then it takes over. A process
that ends or stays silent is discarded, and the former version has served all the time. If a version
fails after it took over, the former one returns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event as Flag
from typing import Final

from polynya.cluster.coordination.store import STORE_ERRORS, error_line
from polynya.cluster.network.decide import (
    Accept,
    GoBack,
    Reject,
    Try,
    UpdateFacts,
    UpdateLimits,
    decide,
)
from polynya.cluster.network.update_process import Child, Pin, Pulse, Start, fetch, forget, wanted
from polynya.cluster.systemd import Notify
from polynya.model.errors import OperationError
from polynya.observe.cluster import AgentUpdate, UpdateIs
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

_RECORD_FILE: Final = "versions.json"
#: Most failed versions that are remembered, so that none is tried twice.
_MAX_REMEMBERED: Final = 50


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """Versions by the digest of their packages; None is the installed one.

    Attributes:
        serving: executes commands.
        former: the previous one.
        doubted: whether the serving version is on probation.
        failed: versions that did not work: the nonce of their pin, and why. A version pinned
            again is tried again.
    """

    serving: str | None = None
    former: str | None = None
    doubted: bool = False
    failed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def with_failed(self, version: str, pin: str, reason: str) -> dict[str, tuple[str, str]]:
        """The versions that failed, and this one."""
        failed = {**self.failed, version: (pin, reason)}
        return dict(list(failed.items())[-_MAX_REMEMBERED:])


def read_update_record(folder: Path) -> UpdateRecord:
    """The record; an empty one when it cannot be read: then the installed version serves."""
    try:
        found = json.loads((folder / _RECORD_FILE).read_text(encoding="utf-8"))
        return UpdateRecord(
            serving=_version(found["serving"]),
            former=_version(found["former"]),
            doubted=bool(found["doubted"]),
            failed={
                str(version): (str(pin), str(why))
                for version, (pin, why) in found["failed"].items()
            },
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return UpdateRecord()


def write_update_record(folder: Path, record: UpdateRecord) -> None:
    """Write the record atomically."""
    partial = folder / f"{_RECORD_FILE}.partial"
    with partial.open("w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / _RECORD_FILE)


def _version(value: object) -> str | None:
    if value is None or (isinstance(value, str) and len(value) == 64 and value.isalnum()):
        return value
    raise ValueError("no version")


STEP_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 30.0
_RESTART_SECONDS: Final = 10.0
_VERSIONS_FOLDER: Final = "versions"
_PROCESSES_FOLDER: Final = "processes"


@dataclass(frozen=True, slots=True)
class KeeperPorts:
    """The ports of a keeper: `start` starts a version, `tell` takes events."""

    store: ObjectStore
    start: Start
    notify: Notify
    tell: EventSink


class Keeper:
    """The versions of one network agent.

    Args:
        name: of the network agent, for its events.
        folder: its own, with versions, processes and the record.
        ports: its store, its processes and its events.
        clock: its monotonic time.
        limits: until when a version has to prove itself.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        ports: KeeperPorts,
        *,
        clock: Clock,
        limits: UpdateLimits | None = None,
    ) -> None:
        self._name, self._folder, self._ports, self._clock = name, folder, ports, clock
        self._limits = limits or UpdateLimits()
        (folder / _VERSIONS_FOLDER).mkdir(parents=True, exist_ok=True)
        forget(folder / _PROCESSES_FOLDER, set())
        self._record = read_update_record(folder)
        if not self._is_here(self._record.serving):
            # Its folder is gone; the installed version can always be started.
            self._record = UpdateRecord(failed=self._record.failed)
        self._pin: Pin | None = None
        self._pin_known = False
        self._trouble = ""
        self._deaths, self._doubted = 0, self._limits.probation_seconds
        self._ready = False
        self._looked = self._died = float("-inf")
        self._number = 0
        self._trial: Child | None = None
        self._serving = self._started(self._record.serving)
        self._serving.pulse.serve()
        self._at = clock.monotonic()

    def run(self, stop: Flag) -> None:
        """Keep it running until `stop` is set; then end it."""
        while not stop.is_set():
            self.turn()
            stop.wait(STEP_SECONDS)
        if self._trial is not None:
            self._trial.kill()
        self._serving.end(self._clock)

    def turn(self) -> None:
        """Look once, and take the next step."""
        now = self._clock.monotonic()
        passed, self._at = now - self._at, now
        self._watch(passed)
        self._revive(now)
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._look()
        self._act()

    def _watch(self, passed: float) -> None:
        serving = self._serving
        beaten, connected = serving.watch(passed, on_trial=False), serving.connected
        if beaten:
            self._ports.notify("WATCHDOG=1")
        if connected and not self._ready:
            self._ready = True
            self._ports.notify("READY=1")
        if self._trial is not None:
            # While the network is down no version can show that it works.
            self._trial.watch(passed if connected else 0.0, on_trial=True)
        if self._record.doubted and connected:
            self._doubted -= passed
            if self._doubted <= 0:
                self._note(replace(self._record, doubted=False))

    def _revive(self, now: float) -> None:
        """Start the one that serves again when it has ended, after a pause."""
        if self._serving.known().ended is None:
            self._died = float("-inf")
            return
        if self._died == float("-inf"):
            self._died = now
            self._deaths += 1
        elif now - self._died >= _RESTART_SECONDS:
            self._serve(self._record.serving)

    def _look(self) -> None:
        """Read the pin; the known one stays while the store does not answer."""
        try:
            self._pin = wanted(self._ports.store)
            self._pin_known = True
        except STORE_ERRORS as error:
            self._say(error_line(error))

    def _act(self) -> None:
        if not self._pin_known:
            return
        match decide(self._facts(), self._limits):
            case Try():
                self._try()
            case Accept():
                self._accept()
            case Reject(reason, failed):
                self._reject(reason, failed=failed)
            case GoBack(reason):
                self._go_back(reason)
            case _:
                why = self._failed.get(self._wanted or "")
                trouble = f"the pinned version {_short(self._wanted)} failed: {why}"
                self._say(trouble if why is not None else "")

    def _facts(self) -> UpdateFacts:
        record = self._record
        return UpdateFacts(
            wanted=self._wanted,
            serving=self._serving.known(),
            former=record.former,
            doubted=self._doubted if record.doubted else 0.0,
            deaths=self._deaths,
            trial=self._trial.known() if self._trial is not None else None,
            failed=self._failed,
        )

    @property
    def _failed(self) -> dict[str, str]:
        """The versions that failed since the present pin was made, and why."""
        now = self._pin.nonce if self._pin is not None else ""
        return {version: why for version, (pin, why) in self._record.failed.items() if pin == now}

    def _with_failed(self, version: str, reason: str) -> dict[str, tuple[str, str]]:
        pin = self._pin.nonce if self._pin is not None else ""
        return self._record.with_failed(version, pin, reason)

    @property
    def _wanted(self) -> str | None:
        return self._pin.sha256 if self._pin is not None else None

    def _try(self) -> None:
        """Start the wanted version next to the serving one."""
        version = self._wanted
        try:
            if self._pin is not None:
                fetch(self._ports.store, self._pin, self._folder / _VERSIONS_FOLDER)
        except FileNotFoundError:
            self._say("the pinned package is not there yet")
            self._pin_known = False
            return
        except OperationError as error:
            assert version is not None
            self._note(replace(self._record, failed=self._with_failed(version, error_line(error))))
            self._tell("refused", version, error_line(error))
            return
        except STORE_ERRORS as error:
            # It is tried again with the next look.
            self._say(error_line(error))
            self._pin_known = False
            return
        self._tell("tried", version, "it was pinned" if version is not None else "no pin is left")
        self._trial = self._started(version)

    def _accept(self) -> None:
        trial = self._trial
        assert trial is not None
        record = self._record
        # First the record: a keeper that crashes before the other version ends starts this one.
        self._note(replace(record, serving=trial.version, former=record.serving, doubted=True))
        self._serving.end(self._clock)
        trial.pulse.serve()
        self._serving, self._trial = trial, None
        self._deaths, self._doubted = 0, self._limits.probation_seconds
        self._at = self._clock.monotonic()
        self._tell("serves", trial.version, "it has shown that it works")
        kept = {version for version in (trial.version, record.serving) if version is not None}
        forget(self._folder / _VERSIONS_FOLDER, kept)

    def _reject(self, reason: str, *, failed: bool) -> None:
        trial, self._trial = self._trial, None
        assert trial is not None
        trial.kill()
        if failed and trial.version is not None:
            self._note(replace(self._record, failed=self._with_failed(trial.version, reason)))
        elif failed:
            # The installed version is tried again: nothing else is pinned.
            self._pin_known = False
        self._tell("failed" if failed else "given up", trial.version, reason)

    def _go_back(self, reason: str) -> None:
        record = self._record
        bad, former = record.serving, record.former if self._is_here(record.former) else None
        failed = self._with_failed(bad, reason) if bad is not None else record.failed
        self._note(UpdateRecord(serving=former, failed=failed))
        self._serving.kill()
        self._serve(former)
        self._tell("went back", bad, reason)

    def _serve(self, version: str | None) -> None:
        self._serving = self._started(version)
        self._serving.pulse.serve()
        self._died = float("-inf")

    def _started(self, version: str | None) -> Child:
        self._number += 1
        pulse = Pulse(self._folder / _PROCESSES_FOLDER / str(self._number))
        code = None if version is None else self._folder / _VERSIONS_FOLDER / version
        pulse.say(self._trouble)
        return Child(version, code, pulse, self._ports.start)

    def _is_here(self, version: str | None) -> bool:
        return version is None or (self._folder / _VERSIONS_FOLDER / version).is_dir()

    def _note(self, record: UpdateRecord) -> None:
        self._record = record
        write_update_record(self._folder, record)

    def _say(self, trouble: str) -> None:
        """Report it to operators, by the sign of life of the serving version."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._serving.pulse.say(trouble)

    def _tell(self, state: UpdateIs, version: str | None, reason: str) -> None:
        self._ports.tell(
            AgentUpdate(subject=self._name, state=state, version=_short(version), reason=reason)
        )


def _short(version: str | None) -> str:
    return "as installed" if version is None else version[:12]
