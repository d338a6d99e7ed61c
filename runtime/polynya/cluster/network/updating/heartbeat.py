"""What passes between a keeper and a process of the network agent: two files in a folder.

Each version knows the other one's by these names alone, so they never change: `heartbeat` is
written by the process after each turn, as JSON, and `serve` is there once it may carry out
commands. `trouble` is what the keeper wants people to know. The folder is named by the environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER_VARIABLE: Final = "POLYNYA_NETWORK_AGENT_KEEPER"
_HEARTBEAT: Final = "heartbeat"
_SERVE: Final = "serve"
_TROUBLE: Final = "trouble"


class Heartbeat:
    """The side of the process. `folder` is None where nobody keeps it: then it serves."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._turns = self._connected = 0

    @staticmethod
    def of(environment: Mapping[str, str]) -> Heartbeat:
        """The one that the environment names."""
        folder = environment.get(FOLDER_VARIABLE)
        return Heartbeat(Path(folder) if folder else None)

    @property
    def may_serve(self) -> bool:
        """Whether commands may be carried out."""
        return self._folder is None or (self._folder / _SERVE).exists()

    @property
    def trouble(self) -> str:
        """What people have to know of the version, empty when there is nothing."""
        if self._folder is None:
            return ""
        with suppress(OSError, UnicodeDecodeError):
            return (self._folder / _TROUBLE).read_text(encoding="utf-8")[:2000]
        return ""

    def beat(self, *, connected: bool) -> None:
        """A turn is over; `connected`: all clusters were reached in it."""
        self._turns += 1
        self._connected += connected
        if self._folder is not None:
            state = {"turns": self._turns, "connected_turns": self._connected}
            with suppress(OSError):
                _put(self._folder / _HEARTBEAT, json.dumps(state | {"connected": connected}))


class Pulse:
    """The side of the keeper, for one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in (_HEARTBEAT, _SERVE):
            (folder / name).unlink(missing_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What the process has to be told."""
        return {FOLDER_VARIABLE: str(self._folder)}

    def serve(self) -> None:
        """Let it carry out commands."""
        (self._folder / _SERVE).touch()

    def say(self, trouble: str) -> None:
        """Let people know this by its sign of life."""
        with suppress(OSError):
            _put(self._folder / _TROUBLE, trouble)

    def read(self) -> tuple[int, int, bool]:
        """Its turns, those in which it was connected, and whether it is now."""
        try:
            found = json.loads((self._folder / _HEARTBEAT).read_text(encoding="utf-8"))
            return int(found["turns"]), int(found["connected_turns"]), bool(found["connected"])
        except (OSError, ValueError, LookupError, TypeError):
            return 0, 0, False


def _put(path: Path, text: str) -> None:
    """Whole at every moment."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
