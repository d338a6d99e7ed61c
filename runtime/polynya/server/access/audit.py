"""The audit log: each change and each refusal as a line, chained by hashes, in append-only parts.

A part is an object of JSON lines below `.polynya/access/audit`, named by the number of its first
line. A line is added by a conditional write, so that several servers keep one chain. The hash of a
line is SHA-256 over its JSON without the hash, which holds the hash of the line before.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError

from polynya.model.error_catalogue.access import AUDIT_BROKEN, AUDIT_UNWRITABLE
from polynya.model.errors import PolynyaError
from polynya.server.access.records import FOLDER, AccessRecord
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

_PARTS: Final = f"{FOLDER}/audit"
#: What retention removed ends with this line: verification begins there.
_ANCHOR: Final = f"{FOLDER}/audit-anchor.json"
_LINES_OF_PART: Final = 256
_MAX_PART_BYTES: Final = 4 * 2**20
_MAX_TEXT: Final = 300
_ATTEMPTS: Final = 20
#: The hash before the first line.
START: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What happened. No text of it is a secret or a body.

    Attributes:
        who: name of the person, `anonymous` without one.
        proof: how they were recognised.
        action: the action of the route, "" for a path that is none.
        method: of HTTP, or `CLI`.
        path: without the query, which may hold a code of a login.
        source: address of the client.
        status: HTTP status of the answer.
        code: error code of a refusal, "" without one.
        operation: id of the operation that was begun, "" without one.
    """

    who: str
    proof: str
    action: str
    method: str
    path: str
    source: str
    status: int
    code: str = ""
    operation: str = ""


class AuditLine(AccessRecord):
    """A line of the log: an entry with its number, its time and the chain."""

    sequence: int
    at: datetime
    who: str
    proof: str
    action: str
    method: str
    path: str
    source: str
    status: int
    code: str
    operation: str
    before: str
    hash: str

    def text(self) -> str:
        """The line as it is written, without its end."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=True, sort_keys=True)

    def right_hash(self) -> str:
        """The hash that it has to have."""
        data = self.model_dump(mode="json", exclude={"hash"})
        text = json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class AuditHead(AccessRecord):
    """The last line of something: its number and its hash."""

    sequence: int = 0
    hash: str = START


@dataclass(slots=True)
class _Part:
    path: str
    version: str
    data: bytes
    lines: int
    head: AuditHead


class AuditLog:
    """The log of a target. Usable from many threads, and by many servers."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._last: _Part | None = None
        self._lock = threading.Lock()

    def write(self, entry: AuditEntry) -> AuditLine:
        """Add a line. Raises DependencyError POLYNYA-ACC-061 when it is not written."""
        try:
            with self._lock:
                for _ in range(_ATTEMPTS):
                    if (line := self._try(entry)) is not None:
                        return line
        except (OSError, PolynyaError) as error:
            self._last = None
            raise AUDIT_UNWRITABLE(why=str(error)) from error
        raise AUDIT_UNWRITABLE(why="other servers wrote each time")

    def _try(self, entry: AuditEntry) -> AuditLine | None:
        part = self._last or self._newest()
        head = AuditHead() if part is None else part.head
        line = _chained(entry, head, self._clock.now())
        text = line.text().encode() + b"\n"
        new = AuditHead(sequence=line.sequence, hash=line.hash)
        if part is None or part.lines >= _LINES_OF_PART:
            path = f"{_PARTS}/{line.sequence:012}.jsonl"
            written = self._store.put_if_absent(path, text)
            data, lines = text, 1
        else:
            path, data, lines = part.path, part.data + text, part.lines + 1
            written = self._store.put_if_unchanged(path, data, part.version)
        self._last = None
        if not written:
            return None
        # Another server may have added to it since: then its version is not that of this text.
        now = self._store.read(path, _MAX_PART_BYTES)
        if now.data == data:
            self._last = _Part(path, now.version, data, lines, new)
        return line

    def _newest(self) -> _Part | None:
        """The last part as it is now. Raises AUDIT_BROKEN when its last line cannot be read."""
        paths = self._paths()
        if not paths:
            anchor = self._anchor()
            return None if anchor.sequence == 0 else _Part("", "", b"", _LINES_OF_PART, anchor)
        content = self._store.read(paths[-1], _MAX_PART_BYTES)
        lines = content.data.splitlines()
        if not lines or not content.data.endswith(b"\n"):
            raise AUDIT_BROKEN(where=paths[-1], reason="its last part does not end with a line")
        last = _line(lines[-1], paths[-1])
        head = AuditHead(sequence=last.sequence, hash=last.hash)
        return _Part(paths[-1], content.version, content.data, len(lines), head)

    def _paths(self) -> list[str]:
        return sorted(one.path for one in self._store.list(_PARTS) if one.path.endswith(".jsonl"))

    def _anchor(self) -> AuditHead:
        try:
            return AuditHead.model_validate_json(self._store.read(_ANCHOR, 10_000).data)
        except FileNotFoundError:
            return AuditHead()
        except ValidationError as error:
            raise AUDIT_BROKEN(where=_ANCHOR, reason="its anchor cannot be read") from error

    def page(self, before: int | None, size: int) -> list[AuditLine]:
        """Up to `size` lines, the newest first: those before a number, or the last ones."""
        found: list[AuditLine] = []
        for path in reversed(self._paths()):
            first = int(path.rpartition("/")[2].removesuffix(".jsonl"))
            if before is not None and first >= before:
                continue
            for text in reversed(self._store.read(path, _MAX_PART_BYTES).data.splitlines()):
                line = _line(text, path)
                if before is None or line.sequence < before:
                    found.append(line)
                if len(found) == size:
                    return found
        return found

    def verify(self, noted: AuditHead | None = None) -> AuditHead:
        """Check every line, and return the last one.

        Args:
            noted: a head that was noted elsewhere, which the log must still hold.

        Raises:
            OperationError: a line was changed, removed or inserted (POLYNYA-ACC-060).
        """
        anchor = self._anchor()
        head = anchor
        seen = noted is None or noted == anchor or noted == AuditHead()
        for path in self._paths():
            for line in self._lines(path):
                if line.sequence <= anchor.sequence and head == anchor:
                    # Retention noted its anchor, and was ended before it removed the part.
                    continue
                wrong = _wrong(line, head)
                if wrong is not None:
                    raise AUDIT_BROKEN(where=f"{path}: {line.sequence}", reason=wrong)
                head = AuditHead(sequence=line.sequence, hash=line.hash)
                seen = seen or head == noted
        if not seen and noted is not None:
            if noted.sequence <= anchor.sequence:
                raise AUDIT_BROKEN(reason="retention has removed the line that was noted")
            raise AUDIT_BROKEN(
                reason=f"the line {noted.sequence} that was noted is not in it as it was"
            )
        return head

    def _lines(self, path: str) -> Iterator[AuditLine]:
        data = self._store.read(path, _MAX_PART_BYTES).data
        for text in data.splitlines():
            yield _line(text, path)

    def retain(self, keep: timedelta) -> int:
        """Remove whole parts whose last line is older; returns how many lines. The last stays."""
        removed, limit = 0, self._clock.now() - keep
        for path in self._paths()[:-1]:
            lines = list(self._lines(path))
            if not lines or lines[-1].at >= limit:
                break
            anchor = AuditHead(sequence=lines[-1].sequence, hash=lines[-1].hash)
            self._store.put(_ANCHOR, anchor.model_dump_json().encode())
            self._store.delete(path)
            removed += len(lines)
        return removed


def _chained(entry: AuditEntry, head: AuditHead, now: datetime) -> AuditLine:
    line = AuditLine(
        sequence=head.sequence + 1,
        at=now,
        who=_short(entry.who),
        proof=entry.proof,
        action=entry.action,
        method=_short(entry.method),
        path=_short(entry.path),
        source=_short(entry.source),
        status=entry.status,
        code=entry.code,
        operation=_short(entry.operation),
        before=head.hash,
        hash="",
    )
    return line.model_copy(update={"hash": line.right_hash()})


def _wrong(line: AuditLine, head: AuditHead) -> str | None:
    """Why a line cannot follow a head."""
    if line.sequence != head.sequence + 1:
        return f"after line {head.sequence} comes line {line.sequence}"
    if line.before != head.hash:
        return f"line {line.sequence} does not follow the line before it"
    return None if line.hash == line.right_hash() else f"line {line.sequence} was changed"


def _line(text: bytes, path: str) -> AuditLine:
    try:
        values: Any = json.loads(text)
        return AuditLine.model_validate(values)
    except ValueError as error:
        raise AUDIT_BROKEN(where=path, reason="a line of it cannot be read") from error


def _short(text: str) -> str:
    """A text of a request as a log may hold it."""
    return "".join(one if one.isprintable() else "?" for one in text[:_MAX_TEXT])
