"""What may wait for an empty cluster outside of its buckets: its sources, and how far each is read.

The leader writes the object `sources`. While the cluster has no node, a function looks at these
sources (`functions/sources/` of the constructs) and starts the first node when something waits at
one of them, or when a schedule is due.

The object has references to secrets and no secret. A source whose secrets or certificates only a
node can read cannot be watched; the object says so, and the function reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, SecretStr

from polynya.cluster.coordination.documents import Document, Name
from polynya.engine.backlog import CaptureFigures, ReadPosition
from polynya.model.config.capture import slot_name_of
from polynya.model.config.client_properties import FILES, JAAS, login
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.connection import Connection, ProjectFile
from polynya.model.config.stream_landing import (
    DirectTask,
    KafkaSource,
    KinesisSource,
    StreamingLanding,
)
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task

#: Path of the document.
SOURCES: Final = "sources"

#: A position changes with each record, and is of use only when the last node has gone.
WRITE_SECONDS: Final = 60.0

Kind: TypeAlias = Literal["kafka", "kinesis", "postgresql", "mysql", "other"]


class WatchedSource(BaseModel):
    """A source of a task.

    Attributes:
        task: its name.
        kind: which client looks at it; `other`: none does.
        unwatched: why nothing can look at it; None: something can.
        place: how it is reached, with references in place of secrets, and what is read there.
        position: up to where it is read, by topic (`{partition: next offset}`), stream or place in
            a log; None: unknown.
        read_at: it was read up to there at that moment, or later; None: unknown.
        more: it had more than what was read.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    task: Name
    kind: Kind
    unwatched: str | None = None
    place: dict[str, Any] = {}
    position: dict[str, Any] | None = None
    read_at: datetime | None = None
    more: bool = False


class WatchList(Document):
    """`sources`: what may wait for the cluster.

    Attributes:
        sources: of its tasks.
        due: by task, the next moment of its schedule; also of automations.
    """

    sources: tuple[WatchedSource, ...] = ()
    due: Mapping[str, datetime] = {}


def watch_list(
    tasks: Iterable[Task],
    positions: Mapping[str, Sequence[ReadPosition]],
    captures: Mapping[str, CaptureFigures],
    now: datetime,
    more: Mapping[str, datetime] = MappingProxyType({}),
) -> WatchList:
    """What to look at for these tasks while no node does.

    Args:
        tasks: those that a node would work on: not stopped and not suspended ones.
        positions: by task, up to where this node has read its streams.
        captures: by task, how its capture is.
        now: from when on schedules count.
        more: moments at which the cluster has work besides its tasks, by what it is.
    """
    chosen = [task for task in tasks if not _is_held(task, captures)]
    sources = [_source(task, positions.get(task.name, ()), captures, now) for task in chosen]
    due = {task.name: moment for task in chosen if (moment := next_due(task, now)) is not None}
    found = tuple(one for one in sources if one is not None)
    return WatchList(sources=found, due={**due, **more})


def next_due(task: Task, now: datetime) -> datetime | None:
    """The first moment after `now` at which a task has work by its own schedule; None: it has none.

    These are the loads of a capture, and the moment at which it may read again; the reloads of a
    dataset; and the next read of an API. Without a schedule a task has work when its source has.
    """
    if isinstance(task, ConnectedCapture):
        return _due_of_capture(task, now)
    moments: list[datetime | None] = []
    if isinstance(task, StorageTask):
        reloads = [resolved(task, declared).landing.reload for declared in task.datasets]
        moments = [reload.schedule.next_after(now) for reload in reloads if reload is not None]
    if isinstance(task, StreamingLanding) and (api := task.source.http) is not None:
        moments = [now + api.period(name) for name in api.resources]
    return min((moment for moment in moments if moment is not None), default=None)


def _due_of_capture(task: ConnectedCapture, now: datetime) -> datetime | None:
    times = task.reading_times
    opens = times.waits_until(now)
    if opens is not None and opens > now and task.follows:
        # By then changes may wait, at which nothing looks before.
        return opens
    loads = [task.loads, task.reload.schedule if task.reload is not None else None]
    moments = [schedule.next_after(now) for schedule in loads if schedule is not None]
    opened = [times.waits_until(moment) for moment in moments if moment is not None]
    return min((moment for moment in opened if moment is not None), default=None)


def _is_held(task: Task, captures: Mapping[str, CaptureFigures]) -> bool:
    figures = captures.get(task.name)
    return figures is not None and figures.held


def _source(
    task: Task,
    positions: Sequence[ReadPosition],
    captures: Mapping[str, CaptureFigures],
    now: datetime,
) -> WatchedSource | None:
    if isinstance(task, ConnectedCapture):
        opens = task.reading_times.waits_until(now)
        if not task.follows or opens is None or opens > now:
            return None
        return _captured(task, captures.get(task.name), now)
    landing = task.reads if isinstance(task, DirectTask) else task
    # One with `direct: true` reads nothing itself.
    if not isinstance(landing, StreamingLanding) or (landing is task and landing.direct):
        return None
    takes_new = landing.on_new_topic == "apply"
    read_at = min((now - timedelta(seconds=one.seconds) for one in positions), default=None)
    if (kafka := landing.source.kafka) is not None:
        place, why = _kafka(kafka)
        return WatchedSource(
            task=task.name, kind="kafka", unwatched=why, read_at=read_at,
            place={**place, "takes_new": takes_new},
            position=_offsets(positions) if positions else None,
        )  # fmt: skip
    if (kinesis := landing.source.kinesis) is not None:
        return WatchedSource(
            task=task.name, kind="kinesis", read_at=read_at,
            place={**_kinesis(kinesis), "takes_new": takes_new},
            position=_streams(positions) if positions else None,
            more=any(one.position.get("behind") for one in positions),
        )  # fmt: skip
    return None


def _offsets(positions: Sequence[ReadPosition]) -> dict[str, Any]:
    return {
        name: topic["partitions"]
        for one in positions
        for name, topic in one.position["topics"].items()
    }


def _streams(positions: Sequence[ReadPosition]) -> dict[str, Any]:
    return {name: {} for one in positions for name in one.position["streams"]}


#: All of a setting, so that no part of it is a secret which stands there itself.
_REFERENCE: Final = re.compile(r"\$\{secret:[^}]+\}")
_NOT_IN_SECRETS_MANAGER: Final = "its password is not an entry of Secrets Manager"
_FILES_OF_NODES: Final = "its certificates are files of the nodes"


def _kafka(source: KafkaSource) -> tuple[dict[str, Any], str | None]:
    """How the brokers are reached, and why they cannot be looked at."""
    properties = source.plain_properties()
    mechanism = properties.get("sasl.mechanism", "")
    place: dict[str, Any] = {
        "brokers": source.bootstrap_servers,
        "topics": list(source.topics),
        "protocol": properties.get("security.protocol", "PLAINTEXT"),
        "mechanism": mechanism,
        "checks_host": properties.get("ssl.endpoint.identification.algorithm", "https") != "",
        "committed": properties.get("isolation.level", "read_committed") == "read_committed",
    }
    if any(name.startswith("ssl.keystore.") for name in properties):
        return place, "it asks for a certificate of the client"
    if FILES & properties.keys():
        return place, _FILES_OF_NODES
    place["authorities"] = properties.get("ssl.truststore.certificates")
    if mechanism in {"", "AWS_MSK_IAM"}:
        return place, None
    if mechanism != "PLAIN" and not mechanism.startswith("SCRAM-"):
        return place, f"nothing but a node can log in with {mechanism}"
    options = dict(login(properties[JAAS]).options) if JAAS in properties else {}
    user, password = options.get("username", ""), options.get("password", "")
    why = _why_not(user, password)
    if why is None:
        place["user"], place["password"] = user, password
    return place, why


def _kinesis(source: KinesisSource) -> dict[str, Any]:
    return {
        "streams": list(source.streams),
        "region": source.region,
        "endpoint": source.endpoint,
    }


def _captured(
    task: ConnectedCapture, figures: CaptureFigures | None, now: datetime
) -> WatchedSource:
    database = task.database
    kind: Kind = "other"
    place: dict[str, Any] = {}
    why: str | None = f"nothing but a node can look at {database.type}"
    if database.type == "postgresql":
        kind, (place, why) = "postgresql", _database(database)
        default = slot_name_of(task.name)
        place |= {"slot": task.slot or default, "publication": task.publication or default}
    elif database.type in {"mysql", "mariadb"}:
        kind, (place, why) = "mysql", _database(database)
        place |= {"include": list(task.tables.include), "exclude": list(task.tables.exclude)}
    position: dict[str, Any] | None = None
    read_at: datetime | None = None
    if figures is not None and figures.landed is not None:
        position = {**figures.landed, "log_bytes": figures.log_bytes}
        # While it fails, the place may be an old one.
        read_at = None if figures.retries else now
    return WatchedSource(
        task=task.name, kind=kind, unwatched=why, place=place, position=position, read_at=read_at
    )  # fmt: skip


def _database(connection: Connection) -> tuple[dict[str, Any], str | None]:
    """How a database is reached, and why it cannot be looked at."""
    written = connection.password
    # One in an environment variable of the nodes is known to them only.
    password = written.get_secret_value() if isinstance(written, SecretStr) else None
    place: dict[str, Any] = {
        "host": connection.host,
        "port": connection.port_number,
        "database": connection.database or "",
        "tls": connection.tls.mode,
    }
    known = written is None or password is not None
    why = _why_not(connection.user, password or "") if known else _NOT_IN_SECRETS_MANAGER
    if why is None:
        place["user"], place["password"] = connection.user, password or ""
    if connection.tls.ca is None:
        return place, why
    if not isinstance(connection.tls.ca, ProjectFile):
        return place, _FILES_OF_NODES
    try:
        place["authorities"] = Path(connection.tls.ca).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return place, "its certificates cannot be read"
    return place, why


def _why_not(user: str, password: str) -> str | None:
    """Why a login cannot be used outside of a node; None: it can."""
    if password and not _REFERENCE.fullmatch(password):
        return _NOT_IN_SECRETS_MANAGER
    return "its user is in a file of the nodes" if "${file:" in user else None
