"""The log of a command: the requested part goes to standard error, all of it to a file.

The file also gets every line of text output, with its time, under the logger `SAID`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from polynya.cli.options import GlobalOptions
from polynya.cli.visible import visible
from polynya.model.error_catalogue.configuration import LOG_FILE_NOT_WRITABLE
from polynya.store.node_folders import own

#: What was said on standard error; never said there a second time.
SAID: Final = logging.getLogger("polynya.said")
SAID.propagate = False
SAID.addHandler(logging.NullHandler())

_WITH_TIME: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class _Visible(logging.Formatter):
    """Lines in which a terminal obeys nothing, also when it shows the file later."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return visible(super().format(record))


class _OwnFile(logging.FileHandler):
    """A file that only this user may read; one that is there keeps its rights."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=own)


@contextmanager
def logging_as(options: GlobalOptions) -> Iterator[None]:
    """Log as the options say until the end of the block.

    Raises ConfigError when the log file cannot be written.
    """
    ours, root = logging.getLogger("polynya"), logging.getLogger()
    level = _level(options)
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(level)
    console.setFormatter(_Visible(_WITH_TIME if options.debug else "%(levelname)s %(message)s"))
    file = None if options.log_file is None else _file(options.log_file)
    before = (ours.level, SAID.level)
    root.addHandler(console)
    ours.setLevel(level if file is None else logging.DEBUG)
    SAID.setLevel(logging.CRITICAL if file is None else logging.DEBUG)
    if file is not None:
        root.addHandler(file)
        SAID.addHandler(file)
    try:
        yield
    finally:
        root.removeHandler(console)
        ours.setLevel(before[0])
        SAID.setLevel(before[1])
        if file is not None:
            root.removeHandler(file)
            SAID.removeHandler(file)
            file.close()


def _level(options: GlobalOptions) -> int:
    """People get warnings unless they ask for more or for less."""
    if options.debug:
        return logging.DEBUG
    if options.verbose:
        return logging.INFO
    return logging.ERROR if options.quiet else logging.WARNING


def _file(path: Path) -> logging.Handler:
    try:
        handler = _OwnFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise LOG_FILE_NOT_WRITABLE(where=str(path), reason=error.strerror) from error
    handler.setFormatter(_Visible(_WITH_TIME))
    return handler
