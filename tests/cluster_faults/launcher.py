"""Starts `polynya` with a shorter lease, without the fence, or as a later version would be.

No setting does any of it: names of the program are replaced, and a name that has gone is an error.
`python -m tests.cluster_faults.launcher LEASE_SECONDS on|off ARGUMENT...`: all times of the
protocol are shortened in proportion to the lease. With the fence off a commit is made whatever has
become of the table since its step began: the control arm, which has to fail. With the variable
VERSION the process says more than this version does, in all objects of the cluster and records of
the stream that it writes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from polynya.cli.main import main
from polynya.cluster import member_thread
from polynya.cluster.coordination import member
from polynya.cluster.coordination.documents import Document
from polynya.cluster.coordination.member_state import CoordinationPace
from polynya.cluster.gossip import records
from polynya.lake.iceberg import commit
from tests.cluster.later_version import object_with_more, record_with_more

#: The environment variable that makes it a later version, which it names.
VERSION: Final = "CLUSTER_FAULTS_VERSION"


def quicker(lease_seconds: float) -> CoordinationPace:
    """The pace of the protocol with this lease."""
    pace = CoordinationPace()
    times = ("turn", "renew", "ttl", "hand_off", "balance", "soon")
    part = lease_seconds / pace.ttl
    return replace(pace, **{name: getattr(pace, name) * part for name in times})


def _unfenced(table: Any, delta: Any, step: Any) -> None:
    """In place of the validation of a commit."""
    del table, delta, step


def _say_more(version: str) -> None:
    """Be of a later version from now on."""
    as_object, as_record = Document.encoded, records._bytes

    def encoded(self: Document) -> bytes:
        return object_with_more(as_object(self))

    Document.encoded = encoded  # type: ignore[method-assign]
    patch.object(records, "_bytes", lambda value: record_with_more(as_record(value))).start()
    patch.object(member_thread, "__version__", version).start()


if __name__ == "__main__":
    _, lease, fence, *arguments = sys.argv
    patch.object(member, "CoordinationPace", partial(quicker, float(lease))).start()
    if fence == "off":
        patch.object(commit, "_validate", _unfenced).start()
    if later := os.environ.get(VERSION):
        _say_more(later)
    sys.argv = ["polynya", *arguments]
    sys.exit(main())
