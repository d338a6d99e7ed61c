"""Files that are damaged at random: a proposal that accounts for each record, or a clear error."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from polynya.model.errors import ConfigError
from polynya.proposal.csv_layout import sniffed
from polynya.proposal.proposal import proposed
from polynya.proposal.samples import found_files

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
ROWS = [{"id": n, "name": f'a "{n}", b', "at": f"2026-01-0{n}T00:00:00Z"} for n in range(1, 9)]
CSV = "# note\nid;name;at;price\n" + "".join(
    f'{row["id"]};"x\ny";{row["at"]};1.234,5{row["id"]}\n' for row in ROWS
)
TEXTS = (
    CSV.encode(),
    CSV.encode("utf-16"),
    "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    json.dumps({"count": 8, "results": ROWS}, indent=1).encode(),
    json.dumps(ROWS).encode(),
)
PIECES = (b'"', b"'", b"\n", b"\r", b";", b",", b"\0", b"\xff", b"#", b"\\", b"{", b"]", b"1e999")


def damaged(choice: random.Random) -> bytes:
    """A text with a few bytes more or less."""
    content = bytearray(choice.choice(TEXTS))
    for _ in range(choice.randint(1, 6)):
        at = choice.randrange(len(content) + 1)
        if choice.random() < 0.5:
            content[at:at] = choice.choice(PIECES) * choice.choice((1, 1, 3, 5000))
        else:
            del content[at : at + choice.choice((1, 7, 100))]
    return bytes(content)


@pytest.mark.parametrize("number", range(40))
def test_damaged_files(tmp_path: Path, number: int) -> None:
    (tmp_path / "a.dat").write_bytes(damaged(random.Random(f"{SEED} {number}")))
    found = found_files(str(tmp_path / "a.dat"))

    try:
        made = proposed(found, found.families[0], "lake")
    except ConfigError as error:
        assert error.code == "POLYNYA-CLI-005"
        return

    outcome = made.outcome
    assert outcome.copied > 0
    assert outcome.copied + sum(outcome.quarantined.values()) == outcome.records


def test_the_sniffer_proposes_a_dialect() -> None:
    found = sniffed(b"a;b\n1;2\n")

    assert found is not None
    assert (found.delimiter, found.has_header) == (";", True)
