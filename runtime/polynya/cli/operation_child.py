"""A command that the API server started: it ends with the server, and says on disk how it ended.

What nobody can see or cancel must not go on, and the server may be killed at any moment.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final

from polynya.cli.exit_codes import ExitCode

#: Folder of the operation, and the server that it ends with. Children do not inherit them.
FOLDER: Final = "POLYNYA_OPERATION"
SERVER: Final = "POLYNYA_OPERATION_SERVER"
_SECONDS: Final = 0.5


def recorded(command: Callable[[], int], environment: MutableMapping[str, str]) -> int:
    """Run a command; as an operation, note the process before it and its exit code after it."""
    folder, server = environment.pop(FOLDER, ""), environment.pop(SERVER, "")
    if not folder or not server.isdecimal():
        return command()
    # Start-up time: only operations need it.
    from polynya.server.operations.records import OperationFolder

    record = OperationFolder(Path(folder))
    record.note_process(os.getpid())
    # After the note: a server that starts meanwhile either sees this process, or it ends here.
    if os.getppid() != int(server):
        return ExitCode.INTERRUPTED
    threading.Thread(
        target=_end_with, args=(int(server), record.note_stopped), name="server", daemon=True
    ).start()
    code = command()
    record.note_exit(code)
    return code


def _end_with(server: int, note_stopped: Callable[[], None]) -> None:
    while os.getppid() == server:
        time.sleep(_SECONDS)
    # Some commands end with 0 when they are asked to stop: that is not the end of their work.
    note_stopped()
    os.kill(os.getpid(), signal.SIGTERM)
