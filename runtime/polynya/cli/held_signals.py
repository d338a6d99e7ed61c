"""Signals that come while a command starts are held until it is known what they mean to it.

Python needs a second for the modules of a command. Until then Ctrl-C would show a trace, and
SIGTERM would end a run by the signal, though a run that is asked to stop ends with code 0. This is
imported before all else, so it imports nothing that takes long.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

_HELD: Final = frozenset({signal.SIGINT, signal.SIGTERM})
_Command = TypeVar("_Command", bound=Callable[..., Any])
_stopped_by_signals: Final[set[Callable[..., Any]]] = set()


@contextmanager
def held() -> Iterator[None]:
    """Hold signals back until `release`, and at most until the end of the block."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        release()


def release() -> None:
    """Let signals through: those that came before arrive now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)


def stopped_by_signals(command: _Command) -> _Command:
    """Mark a command that sets handlers of its own, and calls `release` after it has."""
    _stopped_by_signals.add(command)
    return command


def release_unless_handled(command: Callable[..., Any]) -> None:
    """Let signals through before a command that does not set handlers: they end it at once."""
    if command not in _stopped_by_signals:
        release()
