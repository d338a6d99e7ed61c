"""What a keeper remembers on disk: which version serves, which one before, and what failed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

_FILE: Final = "versions.json"
#: Versions that failed are remembered, so that none is tried twice.
_REMEMBERED: Final = 50


@dataclass(frozen=True, slots=True)
class Book:
    """Versions by the digest of their packages; None is the one that is installed.

    Attributes:
        serving: carries commands out.
        former: the one before.
        doubted: whether the serving one has not come through its probation.
        failed: versions that did not work: the nonce of the pin of that time, and why. Who pins one
            again wants it tried again.
    """

    serving: str | None = None
    former: str | None = None
    doubted: bool = False
    failed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def with_failed(self, version: str, pin: str, reason: str) -> dict[str, tuple[str, str]]:
        """The versions that failed, with one more."""
        found = {**self.failed, version: (pin, reason)}
        return dict(list(found.items())[-_REMEMBERED:])


def read_book(folder: Path) -> Book:
    """What was remembered; nothing when that cannot be read: then the installed version serves."""
    try:
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return Book(
            serving=_version(found["serving"]),
            former=_version(found["former"]),
            doubted=bool(found["doubted"]),
            failed={str(one): (str(pin), str(why)) for one, (pin, why) in found["failed"].items()},
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Book()


def write_book(folder: Path, book: Book) -> None:
    """Remember it; whole at every moment."""
    partial = folder / f"{_FILE}.partial"
    with partial.open("w", encoding="utf-8") as file:
        json.dump(asdict(book), file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / _FILE)


def _version(value: object) -> str | None:
    if value is None or (isinstance(value, str) and len(value) == 64 and value.isalnum()):
        return value
    raise ValueError("no version")
