"""Every covered conformance case through files and commands, in four arrival orders.

Each project holds all cases: each step lands one batch of every case and runs once, and whether it
applies alternates. Cases of one shape share a dataset; in `alone` each case has its own. `given` is
for every push, the others are in `make test-slow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.oracle.cases import covered
from tests.oracle.packs.conformance import Group, groups, pack, quarantined
from tests.oracle.packs.driver import CommandFailed, Driver
from tests.oracle.packs.pack import alternating
from tests.oracle.packs.read_back import partition_counts

pytestmark = pytest.mark.spark
PROJECTS = {
    "as_given": (("given",), 0),
    "each_alone": (("alone",), 0),
    "never_first": (("shuffled",), 0),
    "always_first": (("reversed", "single"), 1),
}
PROJECT_OF = {one: name for name, (several, _) in PROJECTS.items() for one in several}
AS_GIVEN = {"given", "alone"}
MOMENTS = ("during", "live", "applied")
ORDERS = [pytest.param(one, marks=() if one == "given" else pytest.mark.slow) for one in PROJECT_OF]


@dataclass
class Outcome:
    """Mismatches by (variation, moment, case), and where the tables are."""

    driver: Driver
    directory: Path
    found: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def check(
        self, variation: str, moment: str, several: list[Group], after: int | None = None
    ) -> None:
        """Query the views of the groups and note what differs, case by case."""
        whole = [group for group in several if group.view not in self.failed]
        results = self.driver.query(self.directory, [group.statement() for group in whole])
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


def groups_of(variation: str) -> list[Group]:
    """The datasets of a variation; `alone` arrives as given."""
    return groups("given", alone=True) if variation == "alone" else groups(variation, alone=False)


@pytest.fixture(scope="session")
def projects(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """Makes each project once, when it is first asked for."""
    return cache(lambda name: _outcome(name, Outcome(driver, tmp_path_factory.mktemp(name))))


def _outcome(name: str, outcome: Outcome) -> Outcome:
    """One project, all its steps run, all its views compared."""
    variations, offset = PROJECTS[name]
    all_groups = {one: groups_of(one) for one in variations}
    driver = outcome.driver
    landed = pack(outcome.directory, all_groups)

    def after(step: int) -> None:
        for one in AS_GIVEN & all_groups.keys():
            ready = [
                group
                for group in all_groups[one]
                if any(step + 1 in case.expected_after for case in group.cases)
            ]
            if ready:
                outcome.check(one, "during", ready, after=step + 1)

    landed.run(driver, lambda step: alternating(step + offset), after=after, failed=outcome.failed)
    for moment, apply in (("live", "never"), ("applied", "always")):
        with suppress(CommandFailed):  # the datasets that failed before fail again
            driver.run_project(outcome.directory, apply)
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
    several = groups_of(variation)

    counts = [
        partition_counts(project.directory, group.schema, group.name).get("quarantine", 0)
        for group in several
    ]

    assert sum(counts) == quarantined(several) > 0


def _text(found: Mapping[str, list[str]]) -> str:
    return "\n".join(f"{moment}: {text}" for moment, texts in found.items() for text in texts)
