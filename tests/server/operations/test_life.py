"""A whole life of a project through the API, in real processes with Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.commands import run_command_line
from polynya.client import Operation, PolynyaClient
from polynya.server.operations.verbs import (
    MigrateParameters,
    NoParameters,
    ReloadParameters,
    ReplayParameters,
    RunParameters,
    VerifyParameters,
)
from tests.server.operations.test_client import served


def done(
    client: PolynyaClient, action: str, parameters: NoParameters | None = None
) -> tuple[Operation, list[dict[str, Any]]]:
    """The end of an operation, and what its command said."""
    lines: list[dict[str, Any]] = []
    end = client.start(action, parameters)
    for event in client.events(end.id):
        if isinstance(event, Operation):
            end = event
        else:
            lines.append(dict(event))
    return end, lines


@pytest.mark.spark
@pytest.mark.slow
def test_validate_plan_migrate_run_replay_and_reload_through_the_api(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    assert run_command_line(["init", str(root)]) == 0
    good = (root / "landing" / "users" / "0001.json").read_text().splitlines()
    without_key = {key: one for key, one in json.loads(good[0]).items() if key != "userId"}
    (root / "landing" / "users" / "0002.json").write_text(json.dumps(without_key) + "\n")

    with served(root) as url:
        client = PolynyaClient(url)
        assert done(client, "validate")[0].exit_code == 0
        plan, _ = done(client, "plan")
        assert (plan.status, plan.exit_code) == ("succeeded", 3)
        refused, said = done(client, "migrate")
        assert refused.status == "failed", said
        migrated, said = done(client, "migrate", MigrateParameters(yes=True))
        assert migrated.status == "succeeded", said
        ran, said = done(client, "run", RunParameters(once=True, apply="always"))
        assert ran.status == "succeeded", said
        assert any(line.get("rows_quarantined") == 1 for line in said), said
        replayed, said = done(client, "quarantine-replay", ReplayParameters(all=True))
        # The record still has no key: nothing was replayed, and it stays.
        assert replayed.exit_code in {0, 1}, said
        whole = ReloadParameters(task="users", files="0001.json")
        reloaded, said = done(client, "reload", whole)
        assert reloaded.status == "succeeded", said
        verified, said = done(client, "verify", VerifyParameters())
        assert verified.status == "succeeded", said
