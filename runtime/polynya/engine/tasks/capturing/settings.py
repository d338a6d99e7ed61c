"""What the capture process of a task is told: the task's settings with their secrets opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polynya.gateway.asking import Wish
from polynya.gateway.lobs import Limit
from polynya.gateway.source import Access
from polynya.gateway.wire import Mode, WorkerSettings, request
from polynya.model.config.capture.connected import ConnectedCapture
from polynya.model.config.capture.connection import Connection, ProjectFile
from polynya.model.config.capture.masks import MaskSetting
from polynya.model.config.capture.secret import FromEnvironment, SecretSetting
from polynya.model.config.target import ResolvedTarget
from polynya.model.contract.identifiers import shown
from polynya.model.errors import DependencyError, OperationError
from polynya.store.node_folders import SECRETS
from polynya.store.vault import Vault


class Secrets:
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
            raise OperationError(
                "POLYNYA-GTW-065",
                f"the environment variable {setting.env} is not set",
                where=self._task,
                state="nothing was read from the database",
                fix="set it where Polynya is started",
            )
        return value

    def opened(self, text: str) -> str:
        """A text with its references opened. Raises as `text`."""
        try:
            return self._vault.open(text).text
        except DependencyError as error:
            raise DependencyError(
                "POLYNYA-GTW-066",
                "a secret of a capture cannot be read",
                where=error.where,
                why=error.why or error.message,
                state="nothing was read from the database; what had landed stays",
                fix="put the secret there, let this process read it, or correct the reference",
            ) from error


def access_of(task: ConnectedCapture, secrets: Secrets) -> Access:
    """How the database of a task is reached. Raises as `Secrets.text`."""
    access = access_to(task.database, task.name, secrets)
    rows = dict(task.rows)
    follows = task.update_method == "cdc"
    return replace(access, slot=task.slot, publication=task.publication, rows=rows, follows=follows)


def access_to(connection: Connection, name: str, secrets: Secrets) -> Access:
    """How a connection is reached, under a name of a task or its own.

    Raises as `Secrets.text`, and OperationError for certificates that are elsewhere.
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
    found = SECRETS.below(ca)
    if found is None:
        raise OperationError(
            "POLYNYA-GTW-094",
            f"`tls.ca` is {shown(ca)}: {SECRETS.outside()}",
            where=name,
            state="nothing was read from the database",
            fix="put the certificates into `connections/` of the project as a `.pem`, or there",
        )
    return str(found)


def worker_settings(
    task: ConnectedCapture,
    target: ResolvedTarget,
    mode: Mode,
    secrets: Secrets,
    wishes: Sequence[Wish] = (),
) -> WorkerSettings:
    """All that the process is told. Raises as `Secrets.text`."""
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
        aws=target.aws,
        maven_repository=target.maven_repository,
        asked=tuple(request(wish.tables, reload=wish.reload) for wish in wishes),
    )


def masks_of(task: ConnectedCapture, secrets: Secrets) -> dict[str, dict[str, Any]]:
    """Masks by table and column, with the keys of their hashes. Raises as `Secrets.text`."""
    return {
        table: {column: _mask(mask, secrets) for column, mask in columns.items()}
        for table, columns in task.mask.items()
    }


def limit_of(task: ConnectedCapture) -> Limit | None:
    """How long its values may be; None: as long as the database gives them."""
    return None if task.lobs is None else Limit(task.lobs.limit, task.lobs.then)


def _mask(mask: MaskSetting, secrets: Secrets) -> Any:
    if mask == "drop":
        return mask
    if mask.hash is not None:
        return {"hash": {"key": secrets.text(mask.hash.key)}}
    if mask.truncate is not None:
        return {"truncate": mask.truncate}
    return {"replace": mask.replace}
