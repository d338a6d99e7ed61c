"""What a person asks of a capture, through the landing zone: whoever runs it finds it there.

`_asked/hold.json` below the task's folder holds the capture as long as it is there. Other objects
are requests: each is removed when a capture has begun with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from polynya.store.object_store import ObjectStore

_FOLDER: Final = "_asked"
_HOLD: Final = "hold.json"


@dataclass(frozen=True, slots=True)
class Wish:
    """Tables to take up again, or to load anew; none are all of them."""

    tables: tuple[str, ...]
    reload: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a capture now; wishes by the path of their object."""

    held: bool
    wishes: Mapping[str, Wish] = field(default_factory=dict)


class Asking:
    """The requests of one task. Names are unique, so that nobody overwrites another's."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store, self._folder = store, f"{folder}/{_FOLDER}"

    def hold(self) -> None:
        """Let the capture end and stay so."""
        self._store.put(f"{self._folder}/{_HOLD}", b"{}\n")

    def release(self) -> None:
        """Let it go on."""
        self._store.delete(f"{self._folder}/{_HOLD}")

    def ask(self, wish: Wish, name: str) -> None:
        """Leave a request under a name that nobody else takes."""
        said = {"tables": list(wish.tables), "reload": wish.reload}
        self._store.put(f"{self._folder}/{name}.json", json.dumps(said).encode() + b"\n")

    def is_held(self) -> bool:
        """Whether somebody holds the capture."""
        return any(path.endswith(f"/{_HOLD}") for path in self._paths())

    def look(self) -> Asked:
        """What is asked now. An object that is no request is removed."""
        held, wishes = False, {}
        for path in self._paths():
            if path.endswith(f"/{_HOLD}"):
                held = True
                continue
            wish = self._wish(path)
            if wish is None:
                self.done(path)
            else:
                wishes[path] = wish
        return Asked(held, wishes)

    def done(self, path: str) -> None:
        """Remove a request: a capture has begun with it."""
        self._store.delete(path)

    def _paths(self) -> list[str]:
        return sorted(info.path for info in self._store.list(self._folder))

    def _wish(self, path: str) -> Wish | None:
        try:
            said = json.loads(self._store.get(path))
            return Wish(tuple(map(str, said["tables"])), bool(said["reload"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
