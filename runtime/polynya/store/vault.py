"""Secrets that settings name, read from files and AWS Secrets Manager where they are used.

A secret of Secrets Manager is read again after `FRESH_SECONDS`, so that a rotation is noticed;
while the service fails, the known value is used for up to `STALE_SECONDS`. A file is read each
time.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from polynya.model.documents.references import LateReference, opened
from polynya.model.error_catalogue.stream_sources import STREAM_SECRET_UNREADABLE
from polynya.model.errors import DependencyError
from polynya.store.clock import Clock, SystemClock
from polynya.store.node_folders import SECRETS

#: How long an answer of Secrets Manager is used.
FRESH_SECONDS: Final = 300.0
#: How long it is used while Secrets Manager does not answer.
STALE_SECONDS: Final = 3600.0
#: Secrets Manager has this limit, too.
_MAX_SECRET_BYTES: Final = 64 * 1024

#: Asks for an entry by name or ARN: its text.
Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class OpenedText:
    """A text with its secrets filled in, and the texts that no message may show."""

    text: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Vault:
    """Reads secrets. Usable from many threads."""

    def __init__(self, ask: Ask | None = None, clock: Clock | None = None) -> None:
        self._ask = ask or _ask_secrets_manager
        self._clock = clock or SystemClock()
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def open(self, text: str, *, quoted: bool = False) -> OpenedText:
        """A text of the settings with its references replaced.

        Args:
            text: the setting.
            quoted: the references stand in double quotes of a text of JAAS, so what they bring
                may not end them.

        Raises:
            DependencyError: a secret cannot be read (POLYNYA-STR-090, or what AWS says).
        """
        found: list[str] = []

        def read(reference: LateReference) -> str:
            value = self._read(reference)
            inserted = _in_quotes(value) if quoted else value
            found.extend(dict.fromkeys((value, inserted)))
            return inserted

        return OpenedText(opened(text, read), tuple(secret for secret in found if secret))

    def _read(self, reference: LateReference) -> str:
        if reference.provider == "file":
            return _from_file(reference)
        text = self._entry(reference.place)
        return text if reference.field is None else _field_of(text, reference)

    def _entry(self, name: str) -> str:
        with self._lock:
            now = self._clock.monotonic()
            asked, text = self._known.get(name, (None, ""))
            if asked is not None and now < asked + FRESH_SECONDS:
                return text
            try:
                text = self._ask(name)
            except DependencyError:
                if asked is None or now >= asked + STALE_SECONDS:
                    raise
                return text
            self._known[name] = now, text
            return text


@cache
def vault() -> Vault:
    """That of this process."""
    return Vault()


def _ask_secrets_manager(name: str) -> str:
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.account import secret_text

    found = secret_text(name)
    if found is None:
        raise STREAM_SECRET_UNREADABLE(
            where=f"${{secret:{name}}}", why="Secrets Manager has no such entry with text in it"
        )
    return found


def _from_file(reference: LateReference) -> str:
    try:
        data = _bytes_of(reference)
        if len(data) > _MAX_SECRET_BYTES:
            raise STREAM_SECRET_UNREADABLE(
                where=str(reference), why=f"the file has more than {_MAX_SECRET_BYTES} bytes"
            )
        text = data.decode()
    except OSError as error:
        raise STREAM_SECRET_UNREADABLE(
            where=str(reference), why=error.strerror or type(error).__name__
        ) from None
    except UnicodeDecodeError:
        raise STREAM_SECRET_UNREADABLE(where=str(reference), why="the file is not UTF-8") from None
    # What writes such files ends them with a line end, which is not part of a password.
    return text.removesuffix("\n").removesuffix("\r")


def _bytes_of(reference: LateReference) -> bytes:
    place = SECRETS.below(reference.place)
    if place is None:
        raise STREAM_SECRET_UNREADABLE(where=str(reference), why=SECRETS.outside())
    # A pipe would wait for its writer.
    opened_file = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(opened_file).st_mode):
            raise STREAM_SECRET_UNREADABLE(where=str(reference), why="it is not a file")
        with os.fdopen(opened_file, "rb", closefd=False) as file:
            return file.read(_MAX_SECRET_BYTES + 1)
    finally:
        os.close(opened_file)


def _field_of(text: str, reference: LateReference) -> str:
    try:
        said: Any = json.loads(text)
    except ValueError:
        said = None
    value = said.get(reference.field) if isinstance(said, dict) else None
    if not isinstance(value, str):
        raise STREAM_SECRET_UNREADABLE(
            where=str(reference), why="the entry is not a JSON object with text in that field"
        )
    return value


def _in_quotes(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
