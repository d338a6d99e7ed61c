"""What a person asks of a capture, through the landing zone: whoever runs it finds it there.

`_asked/hold.json` below the task's folder holds the capture as long as it is there. Other objects
are requests: each is taken once, and removed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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
    """What is asked of a capture now."""

    held: bool
    wishes: tuple[Wish, ...] = ()


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
        """Whether somebody holds the capture. Lists the requests, takes none."""
        return any(path.endswith(f"/{_HOLD}") for path in self._paths())

    def take(self) -> Asked:
        """What is asked now; requests are removed. One that is no request is left out."""
        held, wishes = False, []
        for path in self._paths():
            if path.endswith(f"/{_HOLD}"):
                held = True
                continue
            wish = self._wish(path)
            self._store.delete(path)
            if wish is not None:
                wishes.append(wish)
        return Asked(held, tuple(wishes))

    def _paths(self) -> list[str]:
        return sorted(info.path for info in self._store.list(self._folder))

    def _wish(self, path: str) -> Wish | None:
        try:
            said = json.loads(self._store.get(path))
            return Wish(tuple(map(str, said["tables"])), bool(said["reload"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
