"""Starts `polynya` with a shorter lease, or without the fence. No setting does either.

`python -m tests.cluster_faults.launcher LEASE_SECONDS on|off ARGUMENT...`: all times of the
protocol are shortened in proportion to the lease. With the fence off a commit is made whatever has
become of the table since its step began: the control arm, which has to fail.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import Any

from polynya.cli.main import main
from polynya.cluster.coordination import member
from polynya.cluster.coordination.standing import Pace
from polynya.lake.iceberg import commit


def quicker(lease_seconds: float) -> Pace:
    """The pace of the protocol with this lease."""
    pace = Pace()
    times = ("turn", "renew", "ttl", "hand_off", "balance", "soon")
    part = lease_seconds / pace.ttl
    return replace(pace, **{name: getattr(pace, name) * part for name in times})


def _unfenced(table: Any, delta: Any, step: Any) -> None:
    """In place of the validation of a commit."""
    del table, delta, step


if __name__ == "__main__":
    _, lease, fence, *arguments = sys.argv
    vars(member)["Pace"] = partial(quicker, float(lease))
    if fence == "off":
        vars(commit)["_validate"] = _unfenced
    sys.argv = ["polynya", *arguments]
    sys.exit(main())
