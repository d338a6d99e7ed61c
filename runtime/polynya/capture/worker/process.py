"""The process of one capture: its settings, requests and reports are lines of JSON."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from polynya.capture.landing.log import CaptureLog
from polynya.capture.source import open_database
from polynya.capture.wire import CaptureRequest, WorkerSettings, error_fields
from polynya.capture.worker.capture import Capture, DebeziumEngines
from polynya.capture.worker.reporting import EventLines
from polynya.formats.debezium.envelope import placeholder_of
from polynya.model.error_catalogue.capture import CAPTURE_FAILED_UNEXPECTEDLY
from polynya.model.errors import InternalError, PolynyaError
from polynya.model.names import parse_location
from polynya.store.places import store_at

_FAILED_EXIT_CODE: Final = 3


def run() -> int:
    """Capture as the first line of the input says, until the input ends; the exit code.

    0: it did what it was asked for. 3: it could not, and the last event says why.
    """
    # Only events go to the standard output, whatever a library prints.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    report, source = EventLines(out), sys.stdin.buffer
    try:
        _capture(WorkerSettings.of_line(source.readline()), report, source)
    except PolynyaError as error:
        report("failed", error=error_fields(error))
        return _FAILED_EXIT_CODE
    except Exception as error:  # noqa: BLE001 - the process has no other way to say it
        report("failed", error=error_fields(_unexpected(error)))
        return _FAILED_EXIT_CODE
    return 0


def _capture(settings: WorkerSettings, report: EventLines, source: BinaryIO) -> None:
    location = parse_location(settings.landing, Path.cwd(), settings.task)
    store = store_at(location, settings.aws)
    database = open_database(settings.access)
    writer = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="polynya-capture-") as folder:
        capture = Capture(
            settings,
            database,
            CaptureLog(store, settings.folder),
            DebeziumEngines(settings, Path(folder), placeholder_of(database.connector, writer)),
            report,
            now=lambda: datetime.now(UTC),
            monotonic=time.monotonic,
            writer=writer,
        )
        for request in settings.requests:
            capture.ask(request)
        signal.signal(signal.SIGTERM, lambda *_: capture.end())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        threading.Thread(target=_listen, args=(source, capture), daemon=True).start()
        try:
            capture.run()
        finally:
            database.close()


def _listen(source: BinaryIO, capture: Capture) -> None:
    """Take requests; the end of the input ends the capture."""
    for line in source:
        try:
            capture.ask(CaptureRequest.of_line(line))
        except ValueError:
            continue  # A newer engine may ask for what this process does not know.
    capture.end()


def _unexpected(error: Exception) -> InternalError:
    # Without its text, which may have a value or a password; the log of errors has the trace.
    import traceback

    traceback.print_exc()
    return CAPTURE_FAILED_UNEXPECTEDLY(exception=type(error).__name__)
