"""The figures of the pages are those that the code computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import costs, strategies

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("main", "page"), [(costs.main, "deploy.md"), (strategies.main, "cluster.md")]
)
def test_the_page_has_every_line_of_the_table(
    main: object, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main()  # type: ignore[operator]

    _, *rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) >= 5
    text = (DOCS / page).read_text()
    assert [row for row in rows if row not in text] == []
