"""Every conformance case with an action of maintenance taken on a table after each apply.

`expire_rows` is not among them: it removes rows, and `tests/lake/maintenance/test_retention.py`
holds which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.apply.apply import Applier, ApplyResult
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.orphans import remove_orphan_files
from polynya.lake.table.dataset import DatasetTable
from tests.e2e.test_conformance import MOMENTS, _outcome
from tests.e2e.test_conformance import Outcome as Found
from tests.lab.twins import rewrite_all
from tests.lake.maintenance.worn import ACTIONS
from tests.oracle.cases import covered
from tests.oracle.packs.driver import Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _remove_orphans(table: DatasetTable, _now: datetime) -> Sequence[ActionOutcome]:
    """As in nine days: whatever no snapshot has is old enough."""
    (Path(str(table.table.java.location())) / "data" / "lost.parquet").write_bytes(b"nobody")
    return [remove_orphan_files(table, limits=ActionLimits(datetime.now(UTC) + timedelta(days=9)))]


def _taken(action: str) -> Callable[[DatasetTable, datetime], Sequence[ActionOutcome]]:
    return lambda table, _now: [ACTIONS[action](table)]


AFTER_APPLIES: dict[str, Callable[[DatasetTable, datetime], Sequence[ActionOutcome]]] = {
    "rewrites": rewrite_all,
    "remove_orphan_files": _remove_orphans,
    **{one: _taken(one) for one in ("rewrite_manifests", "expire_snapshots", "compute_statistics")},
}


@pytest.fixture(scope="module", params=AFTER_APPLIES)
def project(
    request: pytest.FixtureRequest, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Found:
    """All cases in one project, as given; no apply without the action."""
    apply, act = Applier.apply, AFTER_APPLIES[request.param]
    done: list[int] = []

    def then_maintained(
        applier: Applier, target: DatasetTable, *parts: Any, **how: Any
    ) -> ApplyResult:
        result = apply(applier, target, *parts, **how)
        done.extend(one.files_removed + one.files_added for one in act(target, how["now"]))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Applier, "apply", then_maintained)
        directory: Path = tmp_path_factory.mktemp("maintained")
        outcome = _outcome("as_given", Found(driver, directory))
    assert sum(done) > 0, "there was nothing to do"
    return outcome


@pytest.mark.parametrize("case", [case.id for case in covered()])
def test_case(project: Found, case: str) -> None:
    found = {moment: project.found.get(("given", moment, case), []) for moment in MOMENTS}

    assert not any(found.values()), found
