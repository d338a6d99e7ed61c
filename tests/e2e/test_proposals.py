"""`init --from` keeps its word: a run makes of files what the command said."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.oracle.packs.driver import CommandDriver
from tests.proposal.cases import CASES, SPELLED, Case, lines

#: A record that no proposal saves.
DAMAGED = {
    "a line of totals": Case(
        "parts.csv", lines("id,qty", *(f"{n},{n}" for n in range(20)), "Total: 20 records"), 21
    ),
}
ALL = CASES | SPELLED | DAMAGED
#: Typed values, newer versions, quarantine.
CHOSEN = ("a comma before the fraction", "versions of records", "a line of totals")


def check(driver: CommandDriver, folder: Path, names: list[str]) -> None:
    """A project for all of the files, run once: each table has what was said of it."""
    for number, name in enumerate(names):
        place = folder / "in" / f"{chr(97 + number // 26)}{chr(97 + number % 26)}"
        place.mkdir(parents=True)
        (place / ALL[name].name).write_bytes(ALL[name].content)
    project = folder / "lake"
    made = driver.call("init", str(project), "--from", str(folder / "in"), "--json")
    said = {one["name"]: one for one in json.loads(made.output.splitlines()[-1])["datasets"]}

    ran = driver.call("run", "--once", "--json", "--project", str(project))

    assert (len(said), ran.code) == (len(names), 0), ran.errors
    rows = driver.query(project, [f"SELECT count(*) AS n FROM lake.{name}" for name in said])
    listed = driver.call("quarantine", "list", "--json", "--project", str(project)).output
    events = [json.loads(line) for line in listed.splitlines()]
    rejected = Counter(event["dataset"] for event in events if event["type"] == "quarantined")
    found = {
        name: (count[0]["n"], rejected[f"lake.{name}"])
        for name, count in zip(said, rows, strict=True)
    }
    assert found == {
        name: (one["copied"] - one["replaced"], sum(one["quarantined"].values()))
        for name, one in said.items()
    }


def test_a_run_copies_what_the_proposal_said(driver: CommandDriver, tmp_path: Path) -> None:
    check(driver, tmp_path, list(CHOSEN))


@pytest.mark.slow
def test_a_run_copies_every_kind_of_file(driver: CommandDriver, tmp_path: Path) -> None:
    check(driver, tmp_path, list(ALL))
