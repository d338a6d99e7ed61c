"""`polynya agent status` of a node that shares work, from the file that its agent wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main

SHARING: dict[str, Any] = {
    "state": "ready", "leader": "n2.bb", "leading": False, "units": 1, "nodes": 2,
    "troubles": [], "stream_trouble": None,
}  # fmt: skip
CONFIGURATION = {
    "revision": "abc", "identity": "abc", "edited": [], "errors": [], "unread": None,
    "unused": [], "elsewhere": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("frozen", "said"),
    [
        (
            {"by": "kim", "since": "2026-01-01T00:00:00+00:00", "reason": "audit"},
            "by kim since 2026-01-01 00:00:00 UTC: audit",
        ),
        ({"by": "kim", "since": "2026-01-01T00:00:00+00:00", "reason": ""}, "by kim since 2026"),
        # As the version before wrote it.
        ({"by": "kim", "reason": "audit"}, "by kim: audit"),
    ],
)
def test_a_frozen_cluster_is_shown_with_who_since_when_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], frozen: dict[str, str], said: str
) -> None:
    backlog = {"files": 0, "bytes": 0, "seconds": 0.0, "oldest_seconds": 0.0}
    report = {
        "at": datetime.now(UTC).isoformat(), "node": "n1", "state": "running", "tasks": {},
        "configuration": CONFIGURATION, "backlog": backlog, "sharing": SHARING | {"frozen": frozen},
    }  # fmt: skip
    (tmp_path / "state.json").write_text(json.dumps(report))

    assert main(["agent", "status", "--work", str(tmp_path)]) == 0

    assert f"  frozen         {said}" in capsys.readouterr().out
