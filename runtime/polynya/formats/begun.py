"""Notes of the files being read: a file that kills its reader again and again is refused.

A file that needs more memory than the machine has kills the process, and would kill the next one
too. So each process keeps a small local file, a note, with the names of the files in its current
batch until their records are typed. It holds a lock on the note while it lives. A note without a
lock belongs to a process that was killed while it read. The next process counts one kill for each
file in that note and reads such a file alone, in its own batch. After three kills without one
complete read it refuses the file.

A note costs a few bytes of local writes per file, which need not reach the disk, and no request to
a store. Each machine counts for itself.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast
from uuid import uuid4

from polynya.formats.batch import FilePart
from polynya.formats.errors import UnreadableFileError
from polynya.store.object_store import ObjectStore, not_now

log = logging.getLogger(__name__)

#: So often a file is begun before it is set aside.
MAX_ATTEMPTS: Final = 3
#: So often tasks may not finish files of a load before they are read one by one.
MAX_LOAD_ATTEMPTS: Final = 2
#: Memory that is missing for a moment does not count more often than this, in seconds.
COUNT_INTERVAL_SECONDS: Final = 60.0
#: How long a file that was set aside stays so in this process, and a count on this machine.
_REFUSED_SECONDS: Final = 600.0
_KEPT_SECONDS: Final = 30 * 86_400.0
_COUNTS: Final = "counts.json"
_NOTE: Final = "note-"
_LOAD: Final = "load "

#: What is counted, with how often it was begun in vain and when that was noticed, in seconds.
Counts: TypeAlias = "dict[str, tuple[int, float]]"


class Begun:
    """The notes of this process about one landing zone.

    `folder` is where they are; None, or one that cannot be written: nothing outlives the process.
    `place` tells the landing zone from others.
    """

    def __init__(
        self,
        folder: Path | None = None,
        place: str = "",
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._place, self._now = folder, place, now
        self._changed = threading.Condition()
        self._readers = self._waiting = 0
        self._is_alone = False
        self._inside = threading.local()
        self._refused: dict[str, float] = {}
        self._free: list[_Note] = []
        self._counts: Counts = {}
        if folder is not None:
            try:
                self._counts = _counted(folder, now())
            except OSError as error:
                log.warning("files that are being read cannot be noted in %s: %s", folder, error)
                self._folder = None

    def at(self, store: ObjectStore) -> ObjectStore:
        """The store, whose landed files are noted while they are read."""
        return cast("ObjectStore", CarefulStore(store, self))

    def careful(self, files: Sequence[FilePart]) -> Sequence[FilePart]:
        """The first of the files to read together: one that was begun in vain is read alone."""
        first = next((at for at, part in enumerate(files) if self.is_suspect(part.path)), None)
        return files if first is None else files[: max(first, 1)]

    def is_suspect(self, path: str) -> bool:
        """Whether a file was begun, and not finished."""
        return self._times(path) > 0 or self._times(_LOAD + path) >= MAX_LOAD_ATTEMPTS

    @contextmanager
    def batch(self, files: Sequence[FilePart]) -> Iterator[None]:
        """Note the files that are begun inside, until their records have become a batch.

        Raises DependencyError POLYNYA-STO-003 when the memory does not suffice.
        """
        alone = bool(files) and self.is_suspect(files[0].path)
        paths: list[str] = []
        with self._turn(alone=alone), self._noted() as note:
            self._inside.batch = (note, paths)
            try:
                yield
            except MemoryError as error:
                self.in_vain(paths)
                raise not_now(paths[-1] if paths else self._place, error) from error
            finally:
                self._inside.batch = None
        self._finished(*paths, *(_LOAD + path for path in paths))

    def begin(self, path: str) -> None:
        """Note that a file is begun. Raises UnreadableFileError for one begun too often in vain."""
        self._refuse(path)
        batch = getattr(self._inside, "batch", None)
        if batch is not None and path not in batch[1][-1:]:
            note, paths = batch
            paths.append(path)
            if note is not None:
                note.add([self._key(path)])

    @contextmanager
    def loading(self, paths: Iterable[str]) -> Iterator[None]:
        """Note that tasks read these files."""
        keys = [_LOAD + path for path in paths]
        with self._turn(alone=False), self._noted() as note:
            if note is not None:
                note.add(map(self._key, keys))
            yield
        self._finished(*keys)

    def in_vain(self, paths: Iterable[str]) -> None:
        """Count files that memory did not suffice for, though the process lives."""
        keys, now = list(map(self._key, paths)), self._now()
        last = max((self._counts.get(key, (0, 0.0))[1] for key in keys), default=now)
        if now - last >= COUNT_INTERVAL_SECONDS:
            self._change(lambda counts: _add(counts, keys, now))

    def load_in_vain(self, paths: Iterable[str]) -> None:
        """Count a load whose tasks died."""
        keys, now = [self._key(_LOAD + path) for path in paths], self._now()
        self._change(lambda counts: _add(counts, keys, now))

    def _refuse(self, path: str) -> None:
        since = self._refused.get(path)
        times = self._times(path) + min(self._times(_LOAD + path), 1)
        if since is None and times < MAX_ATTEMPTS:
            return
        if since is not None and self._now() - since > _REFUSED_SECONDS:
            del self._refused[path]
            return
        if since is None:
            # Forgotten on the machine: whoever has it read again, with more memory, may.
            self._refused[path] = self._now()
            self._change(lambda counts: self._forget(counts, path, _LOAD + path))
        raise UnreadableFileError(
            f"it was begun {MAX_ATTEMPTS} times and never finished: its reading took all memory or "
            "was killed; read it again on a machine with more memory, or land it in parts"
        )

    def _finished(self, *keys: str) -> None:
        if any(map(self._times, keys)):
            self._change(lambda counts: self._forget(counts, *keys))

    def _forget(self, counts: Counts, *keys: str) -> None:
        for key in keys:
            counts.pop(self._key(key), None)

    def _key(self, path: str) -> str:
        return f"{self._place} {path}"

    def _times(self, key: str) -> int:
        return self._counts.get(self._key(key), (0, 0.0))[0]

    def _change(self, change: Callable[[Counts], None]) -> None:
        with self._changed:
            change(self._counts)
            if self._folder is None:
                return
            try:
                with _alone_in(self._folder):
                    counts = _read_counts(self._folder)
                    change(counts)
                    _write_counts(self._folder, counts)
            except OSError as error:
                log.warning("counts of files cannot be written: %s", error)

    @contextmanager
    def _turn(self, *, alone: bool) -> Iterator[None]:
        """Wait until this may be read: a suspect with no other file, others with no suspect."""
        with self._changed:
            self._waiting += alone
            self._changed.wait_for(lambda: self._may_read(alone=alone))
            self._waiting -= alone
            self._readers, self._is_alone = self._readers + 1, alone
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._is_alone = False
                self._changed.notify_all()

    def _may_read(self, *, alone: bool) -> bool:
        return not self._is_alone and not (self._readers if alone else self._waiting)

    @contextmanager
    def _noted(self) -> Iterator[_Note | None]:
        """A note; None where nothing can be noted."""
        note = self._note()
        try:
            yield note
        finally:
            if note is not None:
                note.clear()
                self._free.append(note)

    def _note(self) -> _Note | None:
        if self._folder is None:
            return None
        try:
            return self._free.pop() if self._free else _Note(self._folder)
        except OSError as error:
            log.warning("files that are read cannot be noted: %s", error)
            return None


class CarefulStore:
    """A store whose landed files are noted while they are read. Tasks get the store itself."""

    def __init__(self, store: ObjectStore, begun: Begun) -> None:
        self.store, self.begun = store, begun

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def __reduce__(self) -> tuple[Callable[[ObjectStore], ObjectStore], tuple[ObjectStore]]:
        return _itself, (self.store,)

    def open(self, path: str) -> BinaryIO:
        """As of the store."""
        return self.store.open(path)


def _itself(store: ObjectStore) -> ObjectStore:
    return store


class _Note:
    """A note of this process; it is held as long as the process lives."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{_NOTE}{os.getpid()}-{uuid4().hex[:8]}"
        with _alone_in(folder):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._end = 0

    def add(self, keys: Iterable[str]) -> None:
        """Name more that is read."""
        text = "".join(f"{json.dumps(key)}\n" for key in keys).encode()
        try:
            self._end += os.pwrite(self._file, text, self._end)
        except OSError as error:
            log.warning("a file that is read cannot be noted: %s", error)

    def clear(self) -> None:
        """Name nothing any more."""
        os.ftruncate(self._file, 0)
        self._end = 0

    def __del__(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def _add(counts: Counts, keys: Iterable[str], now: float) -> None:
    for key in keys:
        counts[key] = (counts.get(key, (0, 0.0))[0] + 1, now)


def _counted(folder: Path, now: float) -> Counts:
    """The counts of this machine, with the notes that nobody holds any more."""
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder):
        before = _read_counts(folder)
        counts = {key: one for key, one in before.items() if now - one[1] < _KEPT_SECONDS}
        for path in folder.glob(f"{_NOTE}*"):
            _add(counts, dict.fromkeys(_left_in(path)), now)
        if counts != before:
            _write_counts(folder, counts)
        return counts


def _left_in(path: Path) -> Sequence[str]:
    """What a process was reading that was killed; the note is removed. Nothing if it is held."""
    try:
        with path.open("rb") as note:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = note.read()
            path.unlink(missing_ok=True)
    except OSError:
        return ()
    return [key for line in text.splitlines() if (key := _key_in(line)) is not None]


def _key_in(line: bytes) -> str | None:
    try:
        key = json.loads(line)
    except ValueError:
        # The last one, which was being written.
        return None
    return key if isinstance(key, str) else None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_counts(folder: Path) -> Counts:
    try:
        found = json.loads((folder / _COUNTS).read_text(encoding="utf-8"))
        return {str(key): (int(one[0]), float(one[1])) for key, one in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, IndexError):
        return {}


def _write_counts(folder: Path, counts: Counts) -> None:
    scratch = folder / f".{_COUNTS}.{os.getpid()}"
    scratch.write_text(json.dumps(counts), encoding="utf-8")
    scratch.replace(folder / _COUNTS)
