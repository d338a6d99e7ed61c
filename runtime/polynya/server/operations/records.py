"""What is kept of an operation: a folder with its request, its output and its result.

`request.json` comes first and whole. `begun` says that a process may have been started,
`process.json` which one, `output.jsonl` and `errors.txt` what it wrote, `exit` its exit code, and
`result.json` how the operation ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

#: Ended operations are kept so long, and so many bytes of them.
KEPT: Final = timedelta(days=30)
KEPT_BYTES: Final = 1024**3
#: An answer is repeated for the same key so long.
KEY_KEPT: Final = timedelta(hours=24)
#: Output that is read at a time.
_PIECE: Final = 1024 * 1024
_NOTE: Final = re.compile(r"[a-z][a-z-]{0,40}\.json")
_OWN: Final = frozenset({"request.json", "process.json", "result.json"})
_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{12}-[0-9a-f]{8}")

Status: TypeAlias = Literal[
    "queued", "running", "stopping", "succeeded", "failed", "cancelled", "interrupted"
]


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """What was asked for: an action on objects, by whom, at what time (ISO 8601, UTC).

    `key` and `body` are hashes of the idempotency key, with its sender, and of the request.
    """

    id: str
    verb: str
    arguments: tuple[str, ...]
    objects: tuple[str, ...]
    by: str
    created: str
    body: str
    key: str | None = None


def is_note(name: str) -> bool:
    """Whether a file of an operation is what others noted beside it."""
    return _NOTE.fullmatch(name) is not None and name not in _OWN


def request_of(read: Mapping[str, Any]) -> OperationRequest:
    """The request of its JSON. Raises KeyError or TypeError for any other."""
    return OperationRequest(
        **{**read, "arguments": tuple(read["arguments"]), "objects": tuple(read["objects"])}
    )


@dataclass(frozen=True, slots=True)
class OperationResult:
    """How an operation ended: at what time, with which exit code, and in what state the data is."""

    status: Status
    ended: str
    exit_code: int | None
    state: str | None


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A process by its number and its start, because numbers are used again."""

    pid: int
    start: str

    @classmethod
    def now(cls, pid: int) -> ChildProcess:
        """The process that has a number now."""
        return cls(pid, _start_of(pid))

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.start != "" and _start_of(self.pid) == self.start


def _start_of(pid: int) -> str:
    """Start of a process in ticks since the boot; empty if it has ended (Linux: proc(5))."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2]
    except OSError:
        return ""
    fields = after_name.split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


@dataclass(frozen=True, slots=True)
class OperationFolder:
    """The folder of one operation; every file but the output is written whole or not at all."""

    path: Path

    @property
    def output(self) -> Path:
        """The lines of JSON that the process wrote to standard output."""
        return self.path / "output.jsonl"

    @property
    def errors(self) -> Path:
        """What the process wrote to standard error."""
        return self.path / "errors.txt"

    def request(self) -> OperationRequest:
        """What was asked for."""
        return request_of(json.loads((self.path / "request.json").read_bytes()))

    def result(self) -> OperationResult | None:
        """How it ended, None if it has not."""
        read = self._read("result.json")
        return None if read is None else OperationResult(**read)

    def process(self) -> ChildProcess | None:
        """Its process, None if that has not begun its work."""
        read = self._read("process.json")
        return None if read is None else ChildProcess(**read)

    def exit_code(self) -> int | None:
        """The exit code that the process noted, None if it was killed or has not ended."""
        read = self._read("exit")
        return None if read is None else int(read)

    @property
    def begun(self) -> bool:
        """Whether a process may have been started for it."""
        return (self.path / "begun").exists()

    @property
    def asked_to_stop(self) -> bool:
        """Whether it was cancelled."""
        return (self.path / "cancel").exists()

    def note_begun(self) -> None:
        """Note that a process will be started."""
        self._write("begun", {})

    @property
    def stopped_with_server(self) -> bool:
        """Whether it was asked to stop because its server ended."""
        return (self.path / "stopped").exists()

    def note_stopped(self) -> None:
        """Note that it is asked to stop because its server ends."""
        self._write("stopped", {})

    def note_cancel(self) -> None:
        """Note that it was cancelled."""
        self._write("cancel", {})

    def note_process(self, pid: int) -> None:
        """Note the process that does the work."""
        self._write("process.json", asdict(ChildProcess.now(pid)))

    def note_exit(self, code: int) -> None:
        """Note the exit code of the process."""
        self._write("exit", int(code))

    def note_result(self, result: OperationResult) -> None:
        """Note how it ended."""
        self._write("result.json", asdict(result))

    def lines(self, after: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The objects of the output after a place, each with the place behind it, in bytes.

        A line that is not written to its end yet comes later; one that is not JSON is left out. At
        most about 1 MiB is read.
        """
        try:
            with self.output.open("rb") as file:
                file.seek(after)
                piece = file.read(_PIECE)
        except OSError:
            return
        place = after
        for line in piece.splitlines(keepends=True):
            # One line that is larger than a piece is passed over, piece by piece.
            if not line.endswith(b"\n") and len(line) < _PIECE:
                return
            place += len(line)
            try:
                read = json.loads(line)
            except ValueError:
                continue
            if isinstance(read, dict):
                yield place, read

    def notes(self) -> dict[str, str]:
        """The files that others wrote beside those of the operation, such as parts of a plan."""
        return {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(self.path.glob("*.json"))
            if is_note(path.name)
        }

    def end_of_output(self, most: int) -> str:
        """The last whole lines of the output, of `most` bytes together."""
        try:
            with self.output.open("rb") as file:
                skipped = max(0, file.seek(0, os.SEEK_END) - most)
                file.seek(skipped)
                piece = file.read(most)
        except OSError:
            return ""
        whole = piece.partition(b"\n")[2] if skipped else piece
        return whole.decode("utf-8", "replace")

    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.path.iterdir())

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_bytes())
        except FileNotFoundError:
            return None

    def _write(self, name: str, value: object) -> None:
        write_whole(self.path / name, value)


def write_whole(path: Path, value: object) -> None:
    """Write a JSON file that is either there whole or not at all, also after a power failure."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


@dataclass(frozen=True, slots=True)
class OperationStore:
    """The folders of all operations of a project and target."""

    path: Path

    def add(self, request: OperationRequest) -> OperationFolder:
        """Keep a request: its folder appears with the whole request in it."""
        return self.restore(request, begun=False, result=None, output="", notes={})

    def restore(
        self,
        request: OperationRequest,
        *,
        begun: bool,
        result: OperationResult | None,
        output: str,
        notes: Mapping[str, str],
    ) -> OperationFolder:
        """Keep an operation as another server left it: its folder appears whole."""
        new = OperationFolder(self.path / f".{request.id}.new")
        new.path.mkdir(parents=True, mode=0o700)
        write_whole(new.path / "request.json", asdict(request))
        if output:
            new.output.write_text(output, encoding="utf-8")
        for name, text in notes.items():
            (new.path / name).write_text(text, encoding="utf-8")
        if begun:
            new.note_begun()
        if result is not None:
            new.note_result(result)
        folder = self.path / request.id
        new.path.rename(folder)
        return OperationFolder(folder)

    def remove(self, folder: OperationFolder) -> None:
        """Remove an operation that was never started."""
        shutil.rmtree(folder.path, ignore_errors=True)

    @staticmethod
    def is_name(name: str) -> bool:
        """Whether a text can be the id of an operation, and thus the name of its folder."""
        return _NAME.fullmatch(name) is not None

    def all(self) -> list[OperationFolder]:
        """All operations, oldest first."""
        return [
            OperationFolder(path)
            for path in sorted(self.path.glob("[0-9]*"))
            if (path / "request.json").is_file()
        ]

    def remove_parts(self) -> None:
        """Remove requests that were not kept whole: nothing was answered to them."""
        for path in self.path.glob(".*.new"):
            shutil.rmtree(path, ignore_errors=True)

    def remove_old(self, now: datetime) -> list[str]:
        """Remove ended operations that are too old or, oldest first, too large; return their ids.

        Those that an idempotency key can still ask for stay.
        """
        removed = []
        ended = [(one, result) for one in self.all() if (result := one.result()) is not None]
        sizes = {one.path.name: one.size() for one, _ in ended}
        total = sum(sizes.values())
        for folder, result in ended:
            age = now - datetime.fromisoformat(result.ended)
            if age > KEPT or (age > KEY_KEPT and total > KEPT_BYTES):
                total -= sizes[folder.path.name]
                shutil.rmtree(folder.path)
                removed.append(folder.path.name)
        return removed
