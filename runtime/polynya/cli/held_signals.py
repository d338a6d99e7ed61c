"""Signals that arrive while a command starts are held until the command can handle them.

Python needs a second to import the modules of a command. Until then Ctrl-C would print a traceback,
and SIGTERM would kill a run, which should stop with code 0. This module is imported before all
others, so it must not import anything slow.
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
    """Let signals through before a command that does not set handlers: they end it immediately."""
    if command not in _stopped_by_signals:
        release()
