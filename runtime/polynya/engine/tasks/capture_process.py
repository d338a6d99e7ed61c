"""The capture process of one task: its settings, its start and its end."""

from __future__ import annotations

import atexit
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from typing_extensions import override

from polynya.capture.lobs import Limit
from polynya.capture.source import Access
from polynya.capture.wire import CaptureRequest, GrowingSettings, Mode, WorkerSettings
from polynya.model.config.capture import Overlap
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.connection import Connection, ProjectFile
from polynya.model.config.masks import FromEnvironment, MaskSetting, SecretSetting
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.capture import (
    CAPTURE_PROCESS_NOT_STARTED,
    CAPTURE_SECRET_UNREADABLE,
    CERTIFICATES_ELSEWHERE,
    SECRET_VARIABLE_NOT_SET,
)
from polynya.model.errors import DependencyError
from polynya.model.names import shown
from polynya.store.node_folders import SECRETS
from polynya.store.vault import Vault

log = logging.getLogger(__name__)

COMMAND: Final = (sys.executable, "-m", "polynya.capture.worker")
#: Seconds in which a process must end; it lands what it has.
END_SECONDS: Final = 20.0
#: Messages are far smaller.
_LONGEST_MESSAGE_BYTES: Final = 8 * 2**20

WorkerMessage: TypeAlias = Mapping[str, Any]


class CaptureProcess(Protocol):
    """What captures; `WorkerProcess` is the real one."""

    def take(self, patience: float) -> list[WorkerMessage]:
        """Its messages since the last call; waits some seconds for the first one."""
        ...

    def ask(self, tables: tuple[str, ...], *, reload: bool) -> None:
        """Let it resume tables, or reload them."""
        ...

    @property
    def code(self) -> int | None:
        """Its exit code when it has ended and all its messages were taken; None before."""
        ...

    def end(self) -> None:
        """Ask it to end, and wait until it has; by force if it takes too long."""
        ...


class WorkerProcess(CaptureProcess):
    """The real process. It also ends when this process ends for any reason: its input is closed."""

    def __init__(
        self, settings: WorkerSettings, log_file: Path, command: Sequence[str] | None = None
    ) -> None:
        """Start it. Raises DependencyError, POLYNYA-GTW-067, when that is not possible."""
        self._said: list[WorkerMessage] = []
        self._changed = threading.Condition()
        self._heard_all = False
        try:
            log_file.parent.mkdir(parents=True, exist_ok=True)
            with log_file.open("wb") as complaints:
                self._process = subprocess.Popen(
                    list(command or COMMAND),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    # A Ctrl-C is for the command, which ends its captures in order.
                    start_new_session=True,
                )
        except OSError as error:
            raise CAPTURE_PROCESS_NOT_STARTED(where=settings.task, reason=error.strerror) from error
        atexit.register(self.end)
        self._send(settings.line())
        name = f"capture-{settings.task}"
        threading.Thread(target=self._listen, name=name, daemon=True).start()

    @override
    def take(self, patience: float) -> list[WorkerMessage]:
        with self._changed:
            self._changed.wait_for(lambda: self._said or self._heard_all, patience)
            messages, self._said = self._said, []
        return messages

    @override
    def ask(self, tables: tuple[str, ...], *, reload: bool) -> None:
        self._send(CaptureRequest(tables, reload).line())

    @property
    @override
    def code(self) -> int | None:
        with self._changed:
            if not self._heard_all or self._said:
                return None
        return self._process.wait()

    @override
    def end(self) -> None:
        atexit.unregister(self.end)
        assert self._process.stdin is not None, "it was started with a pipe"
        with suppress(OSError):
            self._process.stdin.close()
        for last in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_SECONDS)
                return
            except subprocess.TimeoutExpired:
                last()
        self._process.wait()

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None, "it was started with a pipe"
        # The messages of a process that has ended say why, so they are read to the end.
        with suppress(OSError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        while line := self._process.stdout.readline(_LONGEST_MESSAGE_BYTES):
            message = _message(line)
            if message is not None:
                with self._changed:
                    self._said.append(message)
                    self._changed.notify_all()
        self._process.wait()
        with self._changed:
            self._heard_all = True
            self._changed.notify_all()


def _message(line: bytes) -> WorkerMessage | None:
    """The message of a line; None for other output, such as that of a library."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, dict) and isinstance(message.get("type"), str):
        return message
    log.warning("a capture process wrote %d bytes that are not a message", len(line))
    return None


class CaptureSecrets:
    """Opens the secrets of one task."""

    def __init__(self, task: str, environment: Mapping[str, str], vault: Vault) -> None:
        self._task, self._environment, self._vault = task, environment, vault

    def text(self, setting: SecretSetting | None) -> str:
        """The secret itself, "" for none.

        Raises:
            OperationError: POLYNYA-GTW-065, a variable of the environment is not set.
            DependencyError: POLYNYA-GTW-066, a file or Secrets Manager does not give it.
        """
        if setting is None:
            return ""
        if not isinstance(setting, FromEnvironment):
            return self.opened(setting.get_secret_value())
        value = self._environment.get(setting.env)
        if value is None:
            raise SECRET_VARIABLE_NOT_SET(where=self._task, variable=setting.env)
        return value

    def opened(self, text: str) -> str:
        """A text with its references opened. Raises as `text`."""
        try:
            return self._vault.open(text).text
        except DependencyError as error:
            raise CAPTURE_SECRET_UNREADABLE(
                where=error.where, why=error.why or error.message
            ) from error


def access_of(task: ConnectedCapture, secrets: CaptureSecrets) -> Access:
    """How the database of a task is reached. Raises as `CaptureSecrets.text`."""
    access = access_to(task.database, task.name, secrets)
    rows = dict(task.rows)
    growing = {} if task.incremental is None else task.incremental.tables
    return replace(
        access,
        slot=task.slot,
        publication=task.publication,
        rows=rows,
        follows=task.follows,
        keys={table: settings.keys for table, settings in growing.items() if settings.keys},
    )


def access_to(connection: Connection, name: str, secrets: CaptureSecrets) -> Access:
    """How a connection is reached, under a name of a task or its own.

    Raises as `CaptureSecrets.text`, and OperationError for certificates that are elsewhere.
    """
    return Access(
        type=connection.type,
        host=connection.host,
        port=connection.port_number,
        database=connection.database or "",
        user=secrets.opened(connection.user),
        password=secrets.text(connection.password),
        tls=connection.tls.mode,
        ca=_authorities(connection.tls.ca, name),
        task=name,
        jars=connection.engine.jars,
        properties=dict(connection.engine.properties),
    )


def _authorities(ca: str | None, name: str) -> str | None:
    """The file of certificates that a connection names."""
    if ca is None or isinstance(ca, ProjectFile):
        return ca
    file = SECRETS.below(ca)
    if file is None:
        raise CERTIFICATES_ELSEWHERE(where=name, path=shown(ca), reason=SECRETS.outside())
    return str(file)


def worker_settings(
    task: ConnectedCapture,
    target: ResolvedTarget,
    mode: Mode,
    secrets: CaptureSecrets,
    requests: Sequence[CaptureRequest] = (),
) -> WorkerSettings:
    """All settings that the process receives. Raises as `CaptureSecrets.text`."""
    return WorkerSettings(
        task=task.name,
        mode=mode,
        access=access_of(task, secrets),
        landing=str(target.landing),
        folder=task.place,
        include=task.tables.include,
        exclude=task.tables.exclude,
        parallel=task.load.parallel,
        chunk_rows=task.load.chunk_rows,
        order=dict(task.load.order),
        filter=dict(task.load.filter),
        roll_bytes=task.write.roll.size,
        roll_seconds=task.write.roll.age.total_seconds(),
        table_retries=task.errors.table.retry,
        table_then=task.errors.table.then,
        masks=masks_of(task, secrets),
        lob_bytes=None if task.lobs is None else task.lobs.limit,
        lob_then="truncate" if task.lobs is None else task.lobs.then,
        reload_mode=task.reload_mode if task.reload is None else task.reload.mode,
        reload_schedule=None if task.reload is None else str(task.reload.schedule),
        reload_tables=("*",) if task.reload is None else task.reload.tables,
        growing=growing_of(task),
        aws=target.aws,
        maven_repository=target.maven_repository,
        requests=tuple(requests),
    )


def growing_of(task: ConnectedCapture) -> dict[str, GrowingSettings]:
    """How new rows are found, by table, `*` for the others; empty where they are not so found."""
    settings = task.incremental
    if task.update_method != "incremental" or settings is None:
        return {}
    named = {table: _growing(of.column, of.overlap) for table, of in settings.tables.items()}
    return {"*": _growing(settings.column, settings.overlap), **named}


def _growing(column: str | None, overlap: Overlap | None) -> GrowingSettings:
    if isinstance(overlap, timedelta):
        return GrowingSettings(column, overlap_seconds=overlap.total_seconds())
    return GrowingSettings(column, overlap=overlap)


def masks_of(task: ConnectedCapture, secrets: CaptureSecrets) -> dict[str, dict[str, Any]]:
    """Masks by table and column, with the keys of their hashes. Raises as `CaptureSecrets.text`."""
    return {
        table: {column: _mask(mask, secrets) for column, mask in columns.items()}
        for table, columns in task.mask.items()
    }


def lob_limit(task: ConnectedCapture) -> Limit | None:
    """How long its values may be; None: as long as the database gives them."""
    return None if task.lobs is None else Limit(task.lobs.limit, task.lobs.then)


def _mask(mask: MaskSetting, secrets: CaptureSecrets) -> Any:
    if mask == "drop":
        return mask
    if mask.hash is not None:
        return {"hash": {"key": secrets.text(mask.hash.key)}}
    if mask.truncate is not None:
        return {"truncate": mask.truncate}
    return {"replace": mask.replace}
