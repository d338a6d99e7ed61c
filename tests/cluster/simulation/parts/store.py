"""An object store in memory, and the faulty line over which each process reaches it.

A conditional write compares the content, as the ETag of S3 does: the same bytes written again are
the same ETag. Versions in listings also have the second of the write, as the adapter's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, BinaryIO, TypeAlias, TypeVar, cast

from polynya.model.errors import DependencyError
from polynya.store.object_store import Content, ObjectInfo
from tests.cluster.simulation.parts.faults import Answer, StoreFaults
from tests.cluster.simulation.parts.world import Process, World

T = TypeVar("T")
#: Makes one change, of the object that a request is about.
Change: TypeAlias = Callable[[bytes | None], None]


@dataclass(frozen=True, slots=True)
class Write:
    """A change that was made: by which process, of what, into what (None: deleted).

    `sent` is when the request left; `late` says that its sender waits for it no more.
    """

    process: str
    path: str
    before: bytes | None
    after: bytes | None
    sent: float
    late: bool


class Objects:
    """What the store holds. `watchers` see every change as it is made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.watchers: list[Callable[[Write], None]] = []
        self.requests: dict[str, int] = {}
        self._held: dict[str, tuple[bytes, str]] = {}

    def read(self, path: str) -> tuple[bytes, str] | None:
        """Content and version."""
        return self._held.get(path)

    def below(self, folder: str) -> list[ObjectInfo]:
        """All below a folder, sorted."""
        return self.beginning(f"{folder}/" if folder else "")

    def beginning(self, start: str, after: str = "") -> list[ObjectInfo]:
        """All whose paths begin with `start` and come after another one, sorted."""
        found = [
            ObjectInfo(path, len(data), version)
            for path, (data, version) in self._held.items()
            if path.startswith(start) and path > after
        ]
        return sorted(found, key=lambda info: info.path)

    def write(
        self, process: str, path: str, data: bytes | None, sent: float = 0.0, *, late: bool = False
    ) -> None:
        """Make a change."""
        before = self._held.get(path)
        if data is None:
            self._held.pop(path, None)
        else:
            self._held[path] = (data, f"{int(self.world.now)} {hash(data)}")
        change = Write(process, path, before[0] if before else None, data, sent, late)
        for watcher in self.watchers:
            watcher(change)

    def matches(self, path: str, version: str) -> bool:
        """Whether the object has the ETag of this version."""
        held = self._held.get(path)
        return held is not None and held[1].partition(" ")[2] == version.partition(" ")[2]


class StoreLine:
    """The object store as one process sees it."""

    def __init__(self, objects: Objects, process: Process, faults: StoreFaults) -> None:
        self._objects, self._process, self._faults = objects, process, faults

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below a folder."""
        return iter(self._ask("list", prefix, lambda _: self._objects.below(prefix)))

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, and come after another one."""
        return iter(self._ask("list", start, lambda _: self._objects.beginning(start, after)))

    def size(self, path: str) -> int:
        """Size in bytes."""
        return len(self._found(path)[0])

    def open(self, path: str) -> BinaryIO:
        """A reader."""
        return BytesIO(self._found(path)[0])

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self._found(path)[0]

    def read(self, path: str, limit: int) -> Content:
        """The first bytes and the version."""
        data, version = self._found(path)
        return Content(data[:limit], version)

    def put(self, path: str, data: bytes) -> None:
        """Replace."""

        def apply(write: Change) -> None:
            write(data)

        self._ask("put", path, apply)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create."""

        def apply(write: Change) -> bool:
            if self._objects.read(path) is not None:
                return False
            write(data)
            return True

        return self._ask("put_if", path, apply)

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Swap."""

        def apply(write: Change) -> bool:
            if not self._objects.matches(path, version):
                return False
            write(data)
            return True

        return self._ask("put_if", path, apply)

    def delete(self, path: str) -> None:
        """Remove."""

        def apply(write: Change) -> None:
            write(None)

        self._ask("delete", path, apply)

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove this version."""

        def apply(write: Change) -> bool:
            if self._objects.read(path) is None:
                return True
            if not self._objects.matches(path, version):
                return False
            write(None)
            return True

        return self._ask("delete_if", path, apply)

    def _found(self, path: str) -> tuple[bytes, str]:
        found = self._ask("read", path, lambda _: self._objects.read(path))
        if found is None:
            raise FileNotFoundError(path)
        return found

    def _ask(self, verb: str, path: str, apply: Callable[[Change], T]) -> T:
        """Send a request, wait for the answer. What is on its way is not stopped by a crash."""
        process, objects, world = self._process, self._objects, self._process.world
        process.check_alive()
        objects.requests[verb] = objects.requests.get(verb, 0) + 1
        fate = self._faults.draw(process, verb, world.now)
        request = _Request(objects, process, path, apply, world.now)
        if fate.applied_after is not None:
            world.after(fate.applied_after, request.arrive)
        process.call()
        if fate.answered_after is None:
            if not request.answers:
                process.wait_for(request.on_arrival)
        else:
            process.wait(max(0.0, request.sent + fate.answered_after - world.now))
        request.awaited = False
        if fate.answer is Answer.ERROR:
            raise DependencyError(
                "POLYNYA-AWS-002",
                f"the store gave no clear answer ({verb} {path})",
                where=path,
                state="it may have been done",
                fix="read it back",
            )
        if fate.answer is Answer.REFUSED:
            return cast("T", False)
        assert request.answers, "an answer comes after the change"
        return cast("T", request.answers[0])


@dataclass(slots=True)
class _Request:
    """One on its way: it arrives whatever becomes of its sender."""

    objects: Objects
    process: Process
    path: str
    apply: Callable[[Change], Any]
    sent: float
    answers: list[Any] = field(default_factory=list)
    awaited: bool = True
    resume: Callable[[], None] | None = None

    def on_arrival(self, resume: Callable[[], None]) -> None:
        """Go on when it arrives."""
        self.resume = resume

    def arrive(self) -> None:
        """Change what it is to change, then answer."""
        self.answers.append(self.apply(self._write))
        if self.resume is not None:
            self.resume()

    def _write(self, data: bytes | None) -> None:
        late = not self.awaited or self.process.dead
        self.objects.write(self.process.name, self.path, data, self.sent, late=late)
