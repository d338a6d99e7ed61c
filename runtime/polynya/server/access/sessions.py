"""Sessions of people in browsers, kept on the server; the browser has an opaque cookie."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from polynya.model.error_catalogue.access import TOKEN_MISSING
from polynya.model.names import shown
from polynya.server.access.records import AccessRecord, RecordFolder, digest
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: Browsers send it only to this host, by HTTPS (or to this machine), for every path.
COOKIE: Final = "__Host-polynya"
#: Sessions of a person at a time; another login ends the oldest.
MOST_SESSIONS: Final = 10
#: The time of the last request is written when it is older than this.
_SEEN_STEP: Final = timedelta(minutes=1)


class SessionRecord(AccessRecord):
    """A session as it is kept, under the hash of its cookie."""

    name: str
    subjects: tuple[str, ...]
    created_at: datetime
    seen_at: datetime
    agent: str = ""

    def ended(self, now: datetime, idle: timedelta, longest: timedelta) -> str | None:
        """Why the session has ended at a moment, None while it goes on."""
        if now - self.created_at >= longest:
            return "it lasted long enough"
        return "nothing was asked for long" if now - self.seen_at >= idle else None


class KnownPerson(AccessRecord):
    """The names of a person as of their last login, for tokens of theirs."""

    name: str
    subjects: tuple[str, ...]
    seen_at: datetime


#: After so long without a login, groups of a person no longer count for their tokens.
GROUPS_LAST: Final = timedelta(days=30)


class Sessions:
    """The sessions of a target. Usable from many threads."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._records = RecordFolder(store, "sessions", SessionRecord, clock)
        self._people = RecordFolder(store, "people", KnownPerson, clock)
        self._clock, self._random = clock, random

    def begin(self, name: str, subjects: frozenset[str], agent: str, longest: timedelta) -> str:
        """Begin a session after a login; returns the value of its cookie, which is always new."""
        now, value = self._clock.now(), self._random(32)
        listed = tuple(sorted(subjects))
        mine = sorted(self.of(name), key=lambda one: one[1].created_at)
        for key, record in mine:
            if record.ended(now, longest, longest):
                self._records.delete(key)
        for key, _ in mine[: max(0, len(mine) - MOST_SESSIONS + 1)]:
            self._records.delete(key)
        record = SessionRecord(
            name=name, subjects=listed, created_at=now, seen_at=now, agent=agent[:200]
        )
        self._records.create(digest(value), record)
        self._people.put(digest(name), KnownPerson(name=name, subjects=listed, seen_at=now))
        return value

    def find(
        self, value: str, idle: timedelta, longest: timedelta
    ) -> tuple[str, SessionRecord] | None:
        """The session of a cookie and its key; None for one that ended, which is removed."""
        key, now = digest(value), self._clock.now()
        record = self._records.get(key)
        if record is None:
            return None
        if record.ended(now, idle, longest) is not None:
            self._records.delete(key)
            return None
        if now - record.seen_at >= _SEEN_STEP:
            record = record.model_copy(update={"seen_at": now})
            if not self._records.update(key, record) and self._records.get(key, fresh=True) is None:
                return None
        return key, record

    def end(self, key: str) -> None:
        """End a session; the next request with its cookie is refused."""
        self._records.delete(key)

    def end_of(self, name: str, public: str) -> None:
        """End the session of a person by its public id. Raises TOKEN_MISSING."""
        for key, _ in self.of(name):
            if key[:16] == public:
                self._records.delete(key)
                return
        raise TOKEN_MISSING(where=shown(public), name=shown(public), owner=name)

    def of(self, name: str) -> list[tuple[str, SessionRecord]]:
        """The sessions of a person, with their keys."""
        return [(key, record) for key, record in self._records.all() if record.name == name]

    def subjects_of(self, name: str) -> frozenset[str]:
        """The names of a person: of the last login, without its groups when that is long ago."""
        known = self._people.get(digest(name))
        if known is None:
            return frozenset({name})
        old = self._clock.now() - known.seen_at > GROUPS_LAST
        kept = (one for one in known.subjects if not (old and one.startswith("group:")))
        return frozenset({name, *kept})
