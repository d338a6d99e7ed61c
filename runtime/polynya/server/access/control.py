"""Recognising the person of a request, and everything of a target that it takes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.model.access import access_file, read_access
from polynya.model.config.access import AccessDocument
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.access import NO_LOGIN, UNSAFE_LISTENING
from polynya.server.access.audit import AuditEntry, AuditLog
from polynya.server.access.aws import PREFIX as AWS_PREFIX
from polynya.server.access.aws import AskSts, AwsIdentities
from polynya.server.access.rates import Rate
from polynya.server.access.roles import LOCAL, NOBODY, Person
from polynya.server.access.sessions import COOKIE, Sessions
from polynya.server.access.tokens import PREFIX as TOKEN_PREFIX
from polynya.server.access.tokens import Tokens
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.server.access.oidc import OidcProvider

#: For so many seconds the access file is used without a look at it.
_LOOK_SECONDS: Final = 1.0
#: Pages of a console ask a few times each second; a script that asks in a loop has to wait.
_ADDRESS_RATE: Final = Rate(2000, 1000)
_PERSON_RATE: Final = Rate(1000, 500)
#: The audit log is looked through for old parts once in so many lines.
_RETAIN_LINES: Final = 256


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """How the server is reached, and its limits.

    Attributes:
        host: where it listens.
        loopback: whether only this machine reaches that.
        tls: whether connections are encrypted.
        max_body_bytes: most bytes of a body.
        body_seconds: time in which a body has to arrive.
        address_rate: requests of an address, also of several people behind it.
        person_rate: requests of a person.
        refusal_cost: requests that a refused login counts as for its address.
    """

    host: str = "127.0.0.1"
    loopback: bool = True
    tls: bool = False
    max_body_bytes: int = 2 * 2**20
    body_seconds: float = 30.0
    address_rate: Rate = _ADDRESS_RATE
    person_rate: Rate = _PERSON_RATE
    refusal_cost: float = 100


def check_listening(settings: AccessSettings, document: AccessDocument | None) -> None:
    """Refuse to be reached by others without protection. Raises ConfigError POLYNYA-ACC-030."""
    if settings.loopback:
        return
    missing = [] if settings.tls else ["TLS (`--tls-certificate`, `--tls-key`)"]
    if document is None:
        missing.append("an `access.yml`")
    elif document.url is None:
        missing.append("`url` in `access.yml`")
    elif not document.url.startswith("https://"):
        missing.append("`url` in `access.yml` with https")
    if missing:
        raise UNSAFE_LISTENING(where=settings.host, missing=" and ".join(missing))


@dataclass(slots=True)
class AccessControl:
    """Tokens, sessions, logins and the audit log of one target. Usable from many threads."""

    directory: Path
    clock: Clock
    tokens: Tokens
    sessions: Sessions
    audit: AuditLog
    ask_sts: AskSts | None = None
    _document: AccessDocument | None = None
    _stamp: tuple[object, ...] | None = None
    _looked: float = float("-inf")
    _provider: OidcProvider | None = None
    _aws: AwsIdentities | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, directory: Path, target: ResolvedTarget, clock: Clock) -> AccessControl:
        """That of a project folder and one of its targets. Raises as `at`."""
        return cls.at(directory, store_at(target.warehouse, target.aws), clock)

    @classmethod
    def at(cls, directory: Path, store: ObjectStore, clock: Clock) -> AccessControl:
        """That of a project folder and the store of its warehouse.

        Raises ConfigErrors: `access.yml` is wrong.
        """
        found = cls(
            directory,
            clock,
            Tokens(store, clock),
            Sessions(store, clock),
            AuditLog(store, clock),
        )
        found.document()
        return found

    def document(self) -> AccessDocument | None:
        """The access document, as the file is now.

        Raises ConfigErrors: the file is wrong. Then nobody may do anything until it is right.
        """
        with self._lock:
            now = self.clock.monotonic()
            if now - self._looked < _LOOK_SECONDS:
                return self._document
            stamp = self._stamp_now()
            if self._stamp is None or stamp != self._stamp:
                self._stamp = None
                self._document = read_access(self.directory)
                self._provider = self._aws = None
                self._stamp = stamp
            self._looked = now
            return self._document

    @property
    def has_just_looked(self) -> bool:
        """Whether `document` now answers without a look at the file."""
        return self.clock.monotonic() - self._looked < _LOOK_SECONDS

    def log(self, entry: AuditEntry) -> None:
        """Write a line of the audit log, and now and then remove its oldest parts.

        Raises DependencyError POLYNYA-ACC-061: the line was not written.
        """
        line = self.audit.write(entry)
        if line.sequence % _RETAIN_LINES == 0 and self._document is not None:
            self.audit.retain(self._document.keep_audit)

    def look_again(self) -> None:
        """Read the access file at the next request: it was changed."""
        with self._lock:
            self._looked, self._stamp = float("-inf"), None

    def _stamp_now(self) -> tuple[object, ...]:
        path = access_file(self.directory)
        if path is None:
            return ()
        known = path.stat()
        return path.name, known.st_mtime_ns, known.st_size, known.st_ino

    def provider(self) -> OidcProvider:
        """The provider of logins. Raises RefusedError POLYNYA-ACC-022."""
        document = self.document()
        if document is None or document.oidc is None or document.url is None:
            raise NO_LOGIN().by(404)
        # Start-up time: cryptography.
        from polynya.server.access.oidc import OidcProvider

        with self._lock:
            if self._provider is None:
                self._provider = OidcProvider(document.oidc, document.url, self.clock)
            return self._provider

    def _identities(self, document: AccessDocument) -> AwsIdentities | None:
        if document.aws is None:
            return None
        with self._lock:
            if self._aws is None:
                self._aws = AwsIdentities(document.aws, self.clock, self.ask_sts)
            return self._aws

    def person(self, authorization: str | None, cookies: Mapping[str, str]) -> Person | None:
        """The person of a request: `NOBODY` if it names none, None if what it names is wrong.

        An `Authorization` header is taken before a cookie, so that a wrong token never becomes the
        session of a browser.
        """
        document = self.document()
        if document is None:
            return LOCAL
        if authorization is not None:
            scheme, _, text = authorization.partition(" ")
            return self._bearer(text.strip(), document) if scheme.lower() == "bearer" else None
        cookie = cookies.get(COOKIE)
        if cookie is None:
            return NOBODY
        found = self.sessions.find(cookie, document.idle, document.longest)
        if found is None:
            # An old cookie is no attack: the browser logs in again.
            return NOBODY
        key, record = found
        return Person(record.name, frozenset(record.subjects), "session", None, key)

    def _bearer(self, text: str, document: AccessDocument) -> Person | None:
        if text.startswith(TOKEN_PREFIX):
            record = self.tokens.find(text)
            if record is None:
                return None
            subjects = self.sessions.subjects_of(record.owner)
            return Person(record.owner, subjects, "token", record.scope, record.id)
        if text.startswith(AWS_PREFIX):
            identities = self._identities(document)
            name = None if identities is None else identities.find(text)
            return None if name is None else Person(name, frozenset({name}), "aws")
        if document.oidc is None:
            return None
        identity = self.provider().bearer(text)
        return None if identity is None else Person(identity.name, identity.subjects, "bearer")
