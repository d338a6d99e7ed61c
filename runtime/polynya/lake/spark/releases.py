"""Java objects that Python no longer needs, released many at a time.

py4j sends Java a request for each such object and waits for its answer, in one thread. A small step
leaves eighty of them, and around each request this thread competes with the steps for Python's
interpreter lock: 45 µs of the processor for an object, 2 µs when hundreds share a request.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.spark import api

if TYPE_CHECKING:
    from polynya.lake.spark.api import JavaClient, SparkSession

log = logging.getLogger(__name__)

#: Seconds between two looks for objects to release.
_PAUSE_SECONDS: Final = 0.25
#: Objects of one request. Its answers, four bytes for each, fit into the buffers of a socket.
_AT_ONCE: Final = 500
#: Forget one object, in the protocol of py4j.
_REQUEST: Final = "m\nd\n{}\ne\n"


class _Released(deque[Any]):
    """Takes the place of `finalizer_deque`: pairs of a client and the id of an object."""


def release_together(spark: SparkSession) -> None:
    """Let the session release its objects together from now on."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    before = getattr(client, "finalizer_deque", None)
    if before is None or isinstance(before, _Released):
        return
    client.finalizer_deque = released = _Released()
    thread = threading.Thread(target=_release, args=(released,), name="releases", daemon=True)
    thread.start()
    # py4j's thread releases what it still has, and ends.
    before.appendleft(api.SHUTDOWN_FINALIZER_WORKER)


def _release(released: _Released) -> None:
    """Release what comes until the gateway shuts down."""
    while True:
        time.sleep(_PAUSE_SECONDS)
        while released:
            taken = [released.pop() for _ in range(min(len(released), _AT_ONCE))]
            pairs = [one for one in taken if one != api.SHUTDOWN_FINALIZER_WORKER]
            if pairs:
                _forget(pairs[0][0], [target for _, target in pairs])
            if len(pairs) < len(taken):
                return


def _forget(client: JavaClient, targets: list[str]) -> None:
    try:
        connection = client._get_connection()
    except Exception:
        log.debug("no connection to release objects with", exc_info=True)
        return
    try:
        connection.socket.sendall("".join(map(_REQUEST.format, targets)).encode())
        for _ in targets:
            connection.stream.readline()
    except Exception:
        # Answers may be outstanding, so no other request may use it.
        connection.close()
        log.debug("%d objects were not released", len(targets), exc_info=True)
    else:
        client._give_back_connection(connection)
