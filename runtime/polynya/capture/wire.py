"""Messages between a task and its capture process, retries of failed tables, and operator requests.

The process (`python -m polynya.capture.worker`) reads lines of JSON from its standard input: first
the settings, then any requests. It ends when its input ends. It writes events as lines of JSON to
its standard output, and nothing else.

| event | fields |
|---|---|
| `tables` | `tables`: `{name: {state, rows, bytes, rows_estimate, bytes_estimate}}`, all of them |
| `progress` | `table`, `rows`, `bytes`, `rows_estimate`, `bytes_estimate`, `seconds` |
| `loaded` | `table`, `rows`, `bytes`, `seconds` |
| `landed` | `number`, `events`, `object_bytes` |
| `lag` | `bytes`, `seconds`, `log_bytes`, `log_limit_bytes`, null if unknown; `notes`: sentences |
| | `landed`: the place in the log up to which all has landed |
| `notes` | `tables`: a sentence for an operator, by table |
| `table_failed` | `table`, `error` (mapping); `suspended`: given up; `refused`: request refused |
| `streaming` | none: the stream is connected |
| `failed` | `error`; the last event of a process that ends by it |

States of a table: `queued`, `loading`, `running`, `suspended`. Estimates are null where the
database has none. A process that did what it was asked for exits with code 0.

All tables share one stream, and an unreadable change comes again with each attempt. So a failed
table is retried by reading the stream again from the newest landed batch. After `table_retries`
retries the table is suspended, and the stream continues without it.

Requests of an operator are objects in the landing zone, where any node that runs the capture finds
them. `_asked/hold.json` below the task's folder stops the capture as long as it exists. Each other
object is one request, and is removed once a capture has started on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from polynya.capture.lobs import Limit, LimitAction
from polynya.capture.source import Access
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import DELETING, ReloadMode
from polynya.model.errors import ConflictError, DependencyError, OperationError, PolynyaError
from polynya.store.object_store import ObjectStore

#: Seconds after which a failure no longer counts.
_FAILURE_WINDOW_SECONDS: Final = 3600.0


class TableError(OperationError):
    """Raised when a change of one table cannot land, whereas those of others can.

    `table` is its name; of a binlog it may be the name without the database.
    """

    table: str = ""

    @classmethod
    def of(cls, table: str, error: OperationError) -> TableError:
        """The same error as one of a table."""
        made = cls(
            error.code,
            error.message,
            where=error.where or table,
            state=error.state,
            fix=error.fix,
            why=error.why,
        )
        made.table = table
        return made


class TableChangedError(DependencyError):
    """Raised when a table is not what it was when its load began: the next round reads the rest.

    `table` is its name.
    """

    table: str = ""

    @classmethod
    def of(cls, table: str, error: DependencyError) -> TableChangedError:
        """The same error as one of a table."""
        made = cls(
            error.code,
            error.message,
            where=error.where,
            state=error.state,
            fix=error.fix,
            why=error.why,
        )
        made.table = table
        return made


@dataclass(slots=True)
class TableFaults:
    """How often a table failed in a row.

    Attributes:
        retries: so often a table is retried.
        monotonic: seconds of a clock.
    """

    retries: int
    monotonic: Callable[[], float]
    _failed: dict[str, list[float]] = field(default_factory=dict)

    def gives_up(self, table: str) -> bool:
        """Whether a table that has failed once more is given up; then its count starts again."""
        now = self.monotonic()
        failed = [at for at in self._failed.get(table, ()) if now - at < _FAILURE_WINDOW_SECONDS]
        failed.append(now)
        if len(failed) > self.retries:
            self._failed.pop(table, None)
            return True
        self._failed[table] = failed
        return False


_FOLDER: Final = "_asked"
_HOLD: Final = "hold.json"


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A request to reload tables, or to resume suspended ones; an empty tuple means all."""

    tables: tuple[str, ...] = ()
    reload: bool = False

    def line(self) -> bytes:
        """The request as a line of the process's input."""
        return _line({"type": "reload" if self.reload else "resume", "tables": self.tables})

    @classmethod
    def of_line(cls, line: bytes) -> CaptureRequest:
        """The request of a line. Raises ValueError."""
        try:
            message = json.loads(line)
            return cls(tuple(map(str, message["tables"])), str(message["type"]) == "reload")
        except (KeyError, TypeError):
            raise ValueError("the line is not a request") from None


def asks_for_all(requests: Iterable[CaptureRequest]) -> bool:
    """Whether a request wants a reload of all tables."""
    return any(request.reload and not request.tables for request in requests)


@dataclass(frozen=True, slots=True)
class CaptureRequests:
    """The requests of a capture by the path of their object, and whether it is held."""

    held: bool
    requests: Mapping[str, CaptureRequest] = field(default_factory=dict)


class RequestFolder:
    """The requests of one task. Names are unique, so that nobody overwrites another's."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store, self._folder = store, f"{folder}/{_FOLDER}"

    def hold(self) -> None:
        """Stop the capture until it is released."""
        self._store.put(f"{self._folder}/{_HOLD}", b"{}\n")

    def release(self) -> None:
        """Let the capture run again."""
        self._store.delete(f"{self._folder}/{_HOLD}")

    def add(self, request: CaptureRequest, name: str) -> None:
        """Put a request under a name that nobody else takes."""
        stored = {"tables": request.tables, "reload": request.reload}
        self._store.put(f"{self._folder}/{name}.json", json.dumps(stored).encode() + b"\n")

    def is_held(self) -> bool:
        """Whether an operator holds the capture."""
        return any(path.endswith(f"/{_HOLD}") for path in self._paths())

    def pending(self) -> CaptureRequests:
        """The requests that are there now. An object that is not a request is removed."""
        held, requests = False, {}
        for path in self._paths():
            if path.endswith(f"/{_HOLD}"):
                held = True
                continue
            request = self._request(path)
            if request is None:
                self.remove(path)
            else:
                requests[path] = request
        return CaptureRequests(held, requests)

    def remove(self, path: str) -> None:
        """Remove a request: a capture has started on it."""
        self._store.delete(path)

    def _paths(self) -> list[str]:
        return sorted(info.path for info in self._store.list(self._folder))

    def _request(self, path: str) -> CaptureRequest | None:
        try:
            stored = json.loads(self._store.get(path))
            return CaptureRequest(tuple(map(str, stored["tables"])), bool(stored["reload"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None


#: `follow`: until it is asked to end. `once`: load the tables that need it, take the changes up to
#: where the source was at the start, then end. `reload`: load everything again, then end.
Mode: TypeAlias = Literal["follow", "once", "reload"]

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class GrowingSettings:
    """How the new rows of a table are found, as settings say it; None: as for the others.

    Attributes:
        column: the one that grows.
        overlap: how far back each extraction begins, of a column of numbers.
        overlap_seconds: likewise, of a column of times.
    """

    column: str | None = None
    overlap: int | None = None
    overlap_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """All that a capture process is told. It has secrets, so it is never shown as a whole.

    Attributes:
        landing: place of the target's landing zone, a folder or `s3://BUCKET/PREFIX`.
        folder: that of the task, below it.
        maven_repository: from where jars are fetched; None: the usual one.
        order: `highest` to `lowest` by table; those that are not named are `normal`.
        filter: condition for the load by table, in the SQL of the database.
        table_retries: how often a table that cannot be read is retried,
        table_then: and what follows then, `suspend` or `stop`.
        masks: by table and column, as `polynya.capture.masks.mask_of` takes them.
        lob_bytes: the longest value; None: any.
        lob_then: what becomes of a longer one, see `polynya.capture.lobs`.
        reload_mode: what becomes of rows that a load which is compared finds to differ.
        reload_schedule: when tables that are followed, or read by a growing column, are loaded
            again; None: never. As in `tasks/*.yml`.
        reload_tables: patterns of those tables.
        growing: how new rows are found, by table, `*` for the others; empty: not at all.
        requests: those that wait for the process, as those that follow on its input.
    """

    task: str
    mode: Mode
    access: Access = field(repr=False)
    landing: str
    folder: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    parallel: int = 5
    chunk_rows: int = 50_000
    order: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, str] = field(default_factory=dict)
    roll_bytes: int = 32 * 2**20
    roll_seconds: float = 2.0
    table_retries: int = 3
    table_then: str = "suspend"
    masks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    lob_bytes: int | None = None
    lob_then: LimitAction = "truncate"
    reload_mode: ReloadMode = DELETING
    reload_schedule: str | None = None
    reload_tables: tuple[str, ...] = ("*",)
    growing: Mapping[str, GrowingSettings] = field(default_factory=dict)
    aws: AwsAccess = field(default_factory=AwsAccess)
    maven_repository: str | None = None
    requests: tuple[CaptureRequest, ...] = ()

    @property
    def limit(self) -> Limit | None:
        """How long values may be; None: as long as the database gives them."""
        return None if self.lob_bytes is None else Limit(self.lob_bytes, self.lob_then)

    def line(self) -> bytes:
        """The settings as the first line of the process's input."""
        return _line({"version": VERSION, **asdict(self)})

    @classmethod
    def of_line(cls, line: bytes) -> WorkerSettings:
        """The settings of a first line. Raises ValueError, which shows nothing of it."""
        try:
            message: dict[str, Any] = json.loads(line)
            if message.pop("version") != VERSION:
                raise ValueError("the settings are of another version")
            return TypeAdapter(cls).validate_python(message)
        except (ValidationError, AttributeError, KeyError, TypeError, json.JSONDecodeError):
            # Without the cause, which shows values.
            raise ValueError("the first line is not the settings of a capture") from None


def event_line(type_: str, **fields: Any) -> bytes:
    """An event as a line of the process's output."""
    return _line({"type": type_, **fields})


def error_of(fields: Mapping[str, Any]) -> PolynyaError:
    """The error that an event reports, of the class that tells whether it may pass by itself."""
    conflict = fields.get("exit_code") == ConflictError.exit_code
    retryable = bool(fields.get("retryable"))
    raises = ConflictError if conflict else DependencyError if retryable else OperationError
    parts = {name: fields.get(name) for name in ("where", "why", "state", "fix")}
    return raises(str(fields.get("code")), str(fields.get("message")), **parts)


def error_fields(error: PolynyaError) -> dict[str, object]:
    """An error as fields of an event, from which `error_of` makes it again."""
    return {**error.as_dict(), "exit_code": error.exit_code}


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
