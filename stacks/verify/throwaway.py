"""The throw-away stage and its project: like a stage of yours, beside it, with names of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stacks.settings.cluster_checks import PROJECT
from stacks.settings.stage import StageConfig

NAME: Final = "verify"
"""Of the stage; its stacks are called `polynya-verify-…`."""

GROUP: Final = f"polynya-{NAME}-main"
EXAMPLE: Final = PROJECT / "examples" / "bank"
EDITED: Final = f"{NAME}_shop.logins"
_KEPT: Final = ("account", "region", "network", "stream", "quotas", "machine_images")
_TABLES: Final = {"accounts": f"{NAME}_bank.accounts", "lines": f"{NAME}_bank.lines"}
#: The mart reads views by names that the stage does not have.
_TASKS: Final = ("bank.yml", "users.yml")
_DATASET: Final = """\
  - name: logins
    path: "*.json"
    keys: [userId, sequenceNum]
    sequence_by: [sequenceNum]
"""


def throwaway_stage(like: StageConfig) -> dict[str, Any]:
    """The stage file: place, network and quotas of a stage, one small cluster, data that may go.

    What the other stage brought along, such as buckets of others, is left alone.
    """
    written = like.model_dump(mode="json", exclude_unset=True)
    kept: dict[str, Any] = {key: written[key] for key in _KEPT if key in written}
    kept.get("stream", {}).pop("existing_arn", None)
    architecture = like.clusters[0].architecture.value if like.clusters else "arm64"
    cluster = {
        "name": "main",
        "strategy": "low_cost",
        "maximum": 1,
        "target": NAME,
        "architecture": architecture,
    }
    return {
        "apiVersion": "polynya/v1",
        "kind": "stage",
        "name": NAME,
        **kept,
        "catalog": {"databases": [f"{NAME}_bank", f"{NAME}_shop"]},
        "clusters": [cluster],
        "remove_data": True,
    }


def write_stage(like: StageConfig, folder: Path) -> StageConfig:
    """Write the stage file into a folder of its own, as `app.py` reads it."""
    described = throwaway_stage(like)
    stage = StageConfig.model_validate(described)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.json").write_text(_written(described), "utf-8")
    return stage


def write_project(
    folder: Path, storage: dict[str, str], *, region: str, endpoint: str | None
) -> Path:
    """Copy the example project, with the target and the schemas of the throw-away stage."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tasks").mkdir(parents=True)
    target = {
        "landing": f"s3://{storage['LandingBucketName']}",
        "warehouse": f"s3://{storage['WarehouseBucketName']}/tables",
        "config": f"s3://{storage['ConfigurationBucketName']}/project",
        "catalog": "glue",
        "aws": {"region": region, **({"endpoint": endpoint} if endpoint else {})},
    }
    head = {"apiVersion": "polynya/v1", "kind": "project", "name": "bank"}
    text = _written({**head, "targets": {NAME: target}})
    (folder / "polynya.json").write_text(text, "utf-8")
    for name in _TASKS:
        task = EXAMPLE / "tasks" / name
        text = task.read_text("utf-8").replace("\nschema: ", f"\nschema: {NAME}_")
        (folder / "tasks" / task.name).write_text(text, "utf-8")
    return folder


def captures() -> Iterator[tuple[str, bytes]]:
    """Key and content of each file of the demo capture."""
    landing = EXAMPLE / "landing"
    for path in sorted(landing.rglob("*")):
        if path.is_file():
            yield path.relative_to(landing).as_posix(), path.read_bytes()


def expected_rows() -> dict[str, int]:
    """Rows of each view at the source, which was asked itself."""
    truth = EXAMPLE / "source_truth"
    return {
        view: len((truth / f"{name}.jsonl").read_text("utf-8").splitlines())
        for name, view in _TABLES.items()
    }


def edited_task(folder: Path) -> bytes:
    """The task `users` with one more dataset."""
    return ((folder / "tasks" / "users.yml").read_text("utf-8") + _DATASET).encode()


def one_more() -> tuple[str, bytes]:
    """Key and content of a file that lands after the interruption: one new record."""
    row = {"userId": 901, "name": "Ana", "city": "Puebla", "operation": "INSERT",
           "sequenceNum": 901, "eventTime": "2026-01-01T00:10:00Z"}  # fmt: skip
    return "users/0005.json", json.dumps(row).encode() + b"\n"


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
