"""Every covered conformance case through files and the CLI, in four arrival orders.

Each project holds all cases: each step lands one batch of every case and runs once, and whether it
applies alternates. `given` has a dataset per case; elsewhere cases of one shape share a dataset.
`given` is quick enough for every push; the other orders are in `make test-slow`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import covered
from tests.oracle.conformance import Group, groups, pack, quarantined
from tests.oracle.driver import CommandFailed, driver
from tests.oracle.pack import alternating
from tests.oracle.read_back import partition_counts

pytestmark = pytest.mark.spark
PROJECTS = {
    "as_given": (("given",), 0),
    "never_first": (("shuffled",), 0),
    "always_first": (("reversed", "single"), 1),
}
PROJECT_OF = {one: name for name, (several, _) in PROJECTS.items() for one in several}
# The variation whose cases have a dataset each; elsewhere cases of one shape share one.
ALONE = os.environ.get("POLYNYA_TEST_ALONE", "given")
MOMENTS = ("during", "live", "applied")
ORDERS = [pytest.param(one, marks=() if one == "given" else pytest.mark.slow) for one in VARIATIONS]


@dataclass
class Outcome:
    """Mismatches by (variation, moment, case), and where the tables are."""

    directory: Path
    found: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def check(
        self, variation: str, moment: str, several: list[Group], after: int | None = None
    ) -> None:
        """Query the views of the groups and note what differs, case by case."""
        whole = [group for group in several if group.view not in self.failed]
        results = driver().query(self.directory, [group.statement() for group in whole])
        answers = dict(zip([group.view for group in whole], results, strict=True))
        for group in several:
            if group.view not in answers:
                texts = [
                    f"{group.view}: {case.id}\n  {self.failed[group.view]}" for case in group.cases
                ]
            else:
                texts = group.mismatches(answers[group.view], after=after)
            for case in group.cases:
                own = [
                    text for text in texts if f": {case.id}\n" in text or ": row of no case" in text
                ]
                self.found.setdefault((variation, moment, case.id), []).extend(own)


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """Makes each project once, when it is first asked for."""
    return cache(lambda name: _outcome(name, tmp_path_factory.mktemp(name)))


def _outcome(name: str, directory: Path) -> Outcome:
    """One project, all its steps run, all its views compared."""
    variations, offset = PROJECTS[name]
    all_groups = {one: groups(one, alone=one == ALONE) for one in variations}
    outcome = Outcome(directory)
    landed = pack(outcome.directory, all_groups)

    def after(step: int) -> None:
        ready = [
            group
            for group in all_groups.get("given", ())
            if any(step + 1 in case.expected_after for case in group.cases)
        ]
        if ready:
            outcome.check("given", "during", ready, after=step + 1)

    landed.run(
        driver(), lambda step: alternating(step + offset), after=after, failed=outcome.failed
    )
    for moment, apply in (("live", "never"), ("applied", "always")):
        with suppress(CommandFailed):  # the datasets that failed before fail again
            driver().run_project(outcome.directory, apply)
        for one, several in all_groups.items():
            outcome.check(one, moment, list(several))
    return outcome


@pytest.mark.parametrize("case", [case.id for case in covered()])
@pytest.mark.parametrize("variation", ORDERS)
def test_case(projects: Callable[[str], Outcome], variation: str, case: str) -> None:
    """The expected rows, before and after apply, and after each batch where the case says so."""
    project = projects(PROJECT_OF[variation])
    found = {moment: project.found.get((variation, moment, case), []) for moment in MOMENTS}

    assert not any(found.values()), _text(found)


@pytest.mark.parametrize("variation", ORDERS)
def test_rows_without_key_or_sequence_are_in_quarantine(
    projects: Callable[[str], Outcome], variation: str
) -> None:
    project = projects(PROJECT_OF[variation])
    several = groups(variation, alone=variation == ALONE)

    counts = [
        partition_counts(project.directory, group.schema, group.name).get("quarantine", 0)
        for group in several
    ]

    assert sum(counts) == quarantined(several) > 0


def _text(found: Mapping[str, list[str]]) -> str:
    return "\n".join(f"{moment}: {text}" for moment, texts in found.items() for text in texts)
