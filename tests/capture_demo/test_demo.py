"""The demo in small: a bank at work is captured, and the tables are those of its database."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.servers import mariadb, postgresql
from tests.absent import absent
from tests.capture_demo.__main__ import BANKS, tell

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("database", BANKS)
def test_the_tables_are_those_of_the_database(database: str, tmp_path: Path) -> None:
    said: list[str] = []

    try:
        code = tell(tmp_path / "demo", BANKS[database], rows=20_000, kills=1, out=said.append)
    except (mariadb.UnavailableError, postgresql.UnavailableError) as error:
        absent(str(error))

    assert code == 0, "\n".join(said)
    assert said[-1].endswith("0 differences")
