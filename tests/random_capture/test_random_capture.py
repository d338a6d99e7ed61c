"""A database that changes at random is captured under kills: nothing is wrong in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.servers import mariadb, postgresql
from tests.absent import absent
from tests.random_capture.__main__ import SOURCES, run
from tests.random_capture.walk import walk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize("database", SOURCES)
def test_tables_and_history_are_those_of_the_source(
    database: str, seed: str, tmp_path: Path
) -> None:
    said: list[str] = []

    try:
        wrong = run(tmp_path, SOURCES[database], seed=seed, minutes=2, say=said.append)
    except (mariadb.UnavailableError, postgresql.UnavailableError) as error:
        absent(str(error))

    print(*said, sep="\n")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("database", SOURCES)
def test_each_type_is_the_same_on_both_sides_and_compare_finds_it_so(
    database: str, tmp_path: Path
) -> None:
    try:
        wrong = walk(tmp_path, SOURCES[database], seed="1")
    except (mariadb.UnavailableError, postgresql.UnavailableError) as error:
        absent(str(error))

    assert not wrong, "\n".join(wrong)
