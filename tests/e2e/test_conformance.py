"""Every covered conformance case through files and the CLI, in four arrival orders.

Two projects hold all cases: each step lands one batch of every case and runs once, and whether it
applies alternates. `given` has a dataset per case; elsewhere cases of one shape share a dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.oracle.cases import covered
from tests.oracle.conformance import Group, groups, pack, quarantined
from tests.oracle.driver import driver
from tests.oracle.pack import alternating
from tests.oracle.read_back import partition_counts

pytestmark = pytest.mark.spark
PROJECTS = {"never_first": (("given", "shuffled"), 0), "always_first": (("reversed", "single"), 1)}
BOTH = pytest.mark.parametrize(
    ("project", "variation"), [(p, v) for p, (names, _) in PROJECTS.items() for v in names],
    indirect=["project"])
MOMENTS = ("during", "live", "applied")


@dataclass
class Outcome:
    """Mismatches by (variation, moment, case), and where the tables are."""

    directory: Path
    found: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def check(self, variation: str, moment: str, several: list[Group],
              after: int | None = None) -> None:
        """Query the views of the groups and note what differs, case by case."""
        results = driver().query(self.directory, [group.statement() for group in several])
        for group, rows in zip(several, results, strict=True):
            for case in group.cases:
                own = [text for text in group.mismatches(rows, after=after)
                       if f": {case.id}\n" in text or ": row of no case" in text]
                self.found.setdefault((variation, moment, case.id), []).extend(own)


@pytest.fixture(scope="session")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One project, all its steps run, all its views compared."""
    variations, offset = PROJECTS[request.param]
    all_groups = {name: groups(name, alone=name == "given") for name in variations}
    outcome = Outcome(tmp_path_factory.mktemp(request.param))
    landed = pack(outcome.directory, all_groups)

    def after(step: int) -> None:
        ready = [group for group in all_groups.get("given", ())
                 if step + 1 in group.cases[0].expected_after]
        if ready:
            outcome.check("given", "during", ready, after=step + 1)

    landed.run(driver(), lambda step: alternating(step + offset), after=after)
    if alternating(landed.steps - 1 + offset) == "always":  # leave something pending
        pytest.fail("the last step must leave pending changes for the live check")
    for moment in ("live", "applied"):
        if moment == "applied":
            driver().run_project(outcome.directory, "always")
        for name, several in all_groups.items():
            outcome.check(name, moment, list(several))
    return outcome


@BOTH
@pytest.mark.parametrize("case", [case.id for case in covered()])
def test_case(project: Outcome, variation: str, case: str) -> None:
    """The expected rows, before and after apply, and after each batch where the case says so."""
    found = {moment: project.found.get((variation, moment, case), []) for moment in MOMENTS}

    assert not any(found.values()), _text(found)


@BOTH
def test_rows_without_key_or_sequence_are_in_quarantine(project: Outcome, variation: str) -> None:
    several = groups(variation, alone=variation == "given")

    counts = [partition_counts(project.directory, group.schema, group.name).get("quarantine", 0)
              for group in several]

    assert sum(counts) == quarantined(several) > 0


def _text(found: Mapping[str, list[str]]) -> str:
    return "\n".join(f"{moment}: {text}" for moment, texts in found.items() for text in texts)
