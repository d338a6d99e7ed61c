"""Tokens of programs: 256 random bits that are shown once, and kept as a hash."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from polynya.model.config.fields import format_duration
from polynya.model.error_catalogue.access import TOKEN_MISSING, TOKEN_UNUSABLE
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.records import AccessRecord, RecordFolder, digest
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: Beginning of every token, by which scanners of secrets find lost ones.
PREFIX: Final = "polynya_"
_TOKEN: Final = re.compile(r"polynya_([A-Za-z0-9]{12})_([A-Za-z0-9_-]{43})")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#: The time of the last use is kept to the hour: it shows whether a token is needed, not who works
#: when.
_USE_STEP: Final = timedelta(hours=1)
_MAX_NOTE: Final = 200


class TokenRecord(AccessRecord):
    """A token as it is kept. `owner` is the name of a person, `actions` what it was made for."""

    id: str
    hash: str
    owner: str
    actions: tuple[str, ...]
    note: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None

    def shown(self) -> dict[str, object]:
        """The token as people see it: without its hash."""
        return self.model_dump(mode="json", exclude={"hash"})

    @property
    def scope(self) -> frozenset[Action]:
        """Its actions; one that no longer exists is left out."""
        known = {action.value for action in Action}
        return frozenset(Action(one) for one in self.actions if one in known)


def actions_named(names: Iterable[str]) -> frozenset[Action]:
    """The actions of these names; `task.*` names all that begin so. Raises TOKEN_UNUSABLE."""
    found: set[Action] = set()
    for name in names:
        stem = name.removesuffix("*")
        chosen = [
            one for one in Action if one.value == name or (stem != name and one.startswith(stem))
        ]
        if not chosen:
            known = ", ".join(sorted(Action))
            raise TOKEN_UNUSABLE(
                f"no action is called {shown(name)}", where=shown(name), fix=f"choose of: {known}"
            )
        found |= set(chosen)
    return frozenset(found)


class Tokens:
    """The tokens of a target. Usable from many threads."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._records = RecordFolder(store, "tokens", TokenRecord, clock)
        self._clock, self._random = clock, random

    def create(
        self,
        owner: str,
        actions: frozenset[Action],
        life: timedelta,
        *,
        longest: timedelta,
        note: str = "",
    ) -> tuple[str, TokenRecord]:
        """Make a token; its text is nowhere else. Raises TOKEN_UNUSABLE."""
        if not actions:
            raise TOKEN_UNUSABLE("a token needs an action", fix="name at least one")
        if not timedelta(0) < life <= longest:
            raise TOKEN_UNUSABLE(
                f"a token lives at most {format_duration(longest)}",
                fix="make its life shorter, or `longest_token` of `access.yml` longer",
            )
        if len(note) > _MAX_NOTE or not note.isprintable():
            raise TOKEN_UNUSABLE(
                f"a note has at most {_MAX_NOTE} printable characters", fix="make it shorter"
            )
        public = "".join(secrets.choice(_LETTERS) for _ in range(12))
        text = f"{PREFIX}{public}_{self._random(32)}"
        now = self._clock.now()
        record = TokenRecord(
            id=public,
            hash=digest(text),
            owner=owner,
            actions=tuple(sorted(actions)),
            note=note,
            created_at=now,
            expires_at=now + life,
        )
        self._records.create(public, record)
        return text, record

    def find(self, text: str) -> TokenRecord | None:
        """The token of a text that is right and has not expired, None for any other text."""
        parts = _TOKEN.fullmatch(text)
        if parts is None:
            return None
        record = self._records.get(parts[1])
        # An unknown id takes as long as a wrong secret.
        expected = record.hash if record is not None else digest("")
        right = hmac.compare_digest(digest(text), expected)
        now = self._clock.now()
        if record is None or not right or now >= record.expires_at:
            return None
        if record.used_at is None or now - record.used_at >= _USE_STEP:
            used = now.replace(minute=0, second=0, microsecond=0)
            record = record.model_copy(update={"used_at": used})
            if not self._records.update(record.id, record) and not self._exists(record.id):
                return None
        return record

    def _exists(self, public: str) -> bool:
        return self._records.get(public, fresh=True) is not None

    def all(self, owner: str | None = None) -> list[TokenRecord]:
        """The tokens of an owner, or of all, by their ids."""
        return [one for _, one in self._records.all() if owner in (None, one.owner)]

    def revoke(self, public: str, owner: str | None = None) -> TokenRecord:
        """Remove a token; with `owner` only one of theirs. Raises TOKEN_MISSING."""
        record = self._records.get(public, fresh=True)
        if record is None or owner not in (None, record.owner):
            raise TOKEN_MISSING(where=shown(public), name=shown(public), owner=owner or "anybody")
        self._records.delete(public)
        return record
