"""Full extracts through files and the CLI: every conformance case, and random ones."""

from __future__ import annotations

import pytest

from tests.oracle.packs.driver import Driver
from tests.oracle.packs.extracts import drawn_extracts, extract_cases
from tests.oracle.packs.pack import Pack
from tests.oracle.values import bag

pytestmark = pytest.mark.spark
CASES = {case.id: case for case in (*extract_cases(), drawn_extracts(1, 6))}
NAMES = {name: f"e{number:02d}" for number, name in enumerate(CASES)}


@pytest.fixture(scope="module")
def mismatches(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What differs in each case; its first half lands before the first run, the rest after it."""
    directory = tmp_path_factory.mktemp("extracts")
    landings = []
    for name, case in CASES.items():
        count = len(case.extracts)
        steps = [int(number >= count / 2) for number in range(count)]
        landings.append(case.landing("shop", NAMES[name], steps))
    Pack(directory, landings).run(driver, lambda _: "policy")
    pairs = {name: case.statements(f"shop.{NAMES[name]}") for name, case in CASES.items()}
    results = iter(driver.query(directory, [text for pair in pairs.values() for text in pair]))
    return {name: CASES[name].mismatches([next(results), next(results)]) for name in pairs}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_case(mismatches: dict[str, str], name: str) -> None:
    assert mismatches[name] == ""


def test_current_of_the_public_case() -> None:
    """The reference that Current is compared with is the published one."""
    case = CASES["DBX-5-snapshot-scd2"]
    open_rows = [row[:2] for row in case.rows() if row[3] is None]

    assert case.current is not None
    assert bag(open_rows) == bag(case.current)
