"""Watches the configuration: when it is read again, and what is in force after that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polynya.cluster.configuration.accept import Acceptance, InForce
from polynya.model.errors import DependencyError, PolynyaError
from polynya.observe.events import EventSink
from polynya.observe.node import (
    ConfigurationAccepted,
    ConfigurationBroken,
    ConfigurationMended,
    ConfigurationUnread,
    ConfigurationUnused,
)
from polynya.store.bucket.configuration import Snapshot


class Watch:
    """The configuration of one node.

    `read` begins to read it and returns at once; what it gives goes to `taken`. `tell` takes what
    is news. Times in monotonic seconds.
    """

    def __init__(
        self,
        node: str,
        acceptance: Acceptance,
        read: Callable[[], None],
        tell: EventSink,
        every_seconds: float,
    ) -> None:
        self.in_force: InForce | None = None
        self.unread: PolynyaError | None = None
        self.unused: tuple[PolynyaError, ...] = ()
        self._node, self._acceptance, self._read, self._tell = node, acceptance, read, tell
        self._every_seconds = every_seconds
        self._reading = False
        self._read_at: float | None = None

    def look(self, now: float) -> None:
        """Begin to read when it is time, unless a reading is under way."""
        due = self._read_at is None or now - self._read_at >= self._every_seconds
        if due and not self._reading:
            self._reading, self._read_at = True, now
            self._read()

    def taken(self, result: Snapshot | PolynyaError) -> InForce | None:
        """Take what a reading gave; what is in force from now on, None when nothing changed."""
        self._reading = False
        if isinstance(result, PolynyaError):
            self._not_read(result)
            # Only at a start; later what is in force stays so.
            stored = self._acceptance.stored() if self.in_force is None else None
            return self._accept(stored, {}) if stored is not None else None
        self._tell_unused(result.refused)
        if self.in_force is not None and result.identity == self.in_force.snapshot.identity:
            self.unread = None
            return None
        accepted = self._accept(result, self._before())
        if accepted is not None:
            self.unread = None
        return accepted

    def _before(self) -> Mapping[str, bytes]:
        if self.in_force is not None:
            return self.in_force.files
        stored = self._acceptance.stored()
        return stored.files if stored is not None else {}

    def _accept(self, snapshot: Snapshot, before: Mapping[str, bytes]) -> InForce | None:
        try:
            found = self._acceptance.accept(snapshot, before)
        except PolynyaError as error:
            self._not_read(error)
            return None
        except OSError as error:
            self._not_read(_unwritable(error))
            return None
        earlier, self.in_force = self.in_force, found
        self._tell_accepted(found, earlier)
        return found

    def _not_read(self, error: PolynyaError) -> None:
        # What lasts is said once.
        if self.unread is None or str(self.unread) != str(error):
            self._tell(ConfigurationUnread(subject=self._node, error=error))
        self.unread = error

    def _tell_unused(self, unused: tuple[PolynyaError, ...]) -> None:
        before = {str(error) for error in self.unused}
        for error in unused:
            if str(error) not in before:
                self._tell(ConfigurationUnused(subject=self._node, error=error))
        self.unused = unused

    def _tell_accepted(self, found: InForce, earlier: InForce | None) -> None:
        self._tell(
            ConfigurationAccepted(
                subject=self._node,
                identity=found.snapshot.identity,
                revision=found.snapshot.revision,
                edited=tuple(found.snapshot.edited),
                kept=found.kept,
                tasks=tuple(sorted(found.tasks)),
                elsewhere=tuple(sorted(found.elsewhere)),
            )
        )
        before = earlier.errors if earlier is not None else {}
        for file, error in found.errors.items():
            if file not in before or str(before[file]) != str(error):
                self._tell(ConfigurationBroken(subject=self._node, file=file, error=error))
        for file in sorted(before.keys() - found.errors.keys()):
            self._tell(ConfigurationMended(subject=self._node, file=file))


def _unwritable(error: OSError) -> DependencyError:
    return DependencyError(
        "POLYNYA-AGT-002",
        f"the work folder cannot be written: {error.strerror}",
        where=str(error.filename or ""),
        state="the configuration from before stays in force",
        fix="check the disk and the owner of the folder",
    )
