"""All planted bugs by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cluster.simulation.planted.bug import Bug
from tests.cluster.simulation.planted.commits import COMMITS
from tests.cluster.simulation.planted.knowing import KNOWING
from tests.cluster.simulation.planted.leading import LEADING
from tests.cluster.simulation.planted.leases import LEASES
from tests.cluster.simulation.planted.owning import OWNING
from tests.cluster.simulation.planted.requests import REQUESTS

_ALL = (*COMMITS, *LEASES, *OWNING, *LEADING, *KNOWING, *REQUESTS)
BUGS: Mapping[str, Bug] = {bug.name: bug for bug in _ALL}
