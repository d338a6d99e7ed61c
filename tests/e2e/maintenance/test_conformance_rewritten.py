"""Every conformance case with all files of a table written again after each apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.lake.apply.applier import Applier, ApplyResult
from polynya.lake.table.dataset import DatasetTable
from tests.e2e.test_conformance import MOMENTS, Outcome, _outcome
from tests.lab.twins import rewrite_all
from tests.oracle.cases import covered
from tests.oracle.packs.driver import Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def project(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All cases in one project, as given; no apply without a rewrite."""
    apply = Applier.apply
    gone: list[int] = []

    def then_rewritten(
        applier: Applier, target: DatasetTable, *parts: Any, **how: Any
    ) -> ApplyResult:
        result = apply(applier, target, *parts, **how)
        gone.extend(one.files_removed for one in rewrite_all(target, how["now"]))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Applier, "apply", then_rewritten)
        directory: Path = tmp_path_factory.mktemp("rewritten")
        outcome = _outcome("as_given", Outcome(driver, directory))
    assert sum(gone) > 0, "there was nothing to write again"
    return outcome


@pytest.mark.parametrize("case", [case.id for case in covered()])
def test_case(project: Outcome, case: str) -> None:
    found = {moment: project.found.get(("given", moment, case), []) for moment in MOMENTS}

    assert not any(found.values()), found
