"""The project of the demo: two landings, and of each an append-only table and a merged one."""

from __future__ import annotations

from pathlib import Path

SCHEMA = "demo"
STREAM = "clicks"
SOURCES = ("kafka", "kinesis")

PROJECT = """\
apiVersion: polynya/v1
kind: project
name: streams
targets:
  local: {landing: landing, warehouse: warehouse}
"""
KAFKA = """\
apiVersion: polynya/v1
kind: streaming_landing
name: kafka
source:
  kafka:
    bootstrap_servers: BROKER
    topics: [clicks]
    # A broker that is gone is to be noticed soon.
    properties: {default.api.timeout.ms: "10000", request.timeout.ms: "5000"}
interval: 1s
"""
KINESIS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: kinesis
source:
  kinesis: {streams: [clicks], region: REGION, endpoint: "ENDPOINT"}
interval: 1s
"""
#: A row for each item of an order, never changed.
LINES = """\
apiVersion: polynya/v1
kind: streaming_transform
name: SOURCE_lines
from: SOURCE
schema: demo
mode: append_only
columns:
  - {name: n, expression: "n", type: bigint}
  - {name: user_id, expression: "user.id", type: bigint}
  - {name: city, expression: "to_upper(trim(user.address.city))"}
  - {name: line, expression: "ordinal(items[])"}
  - {name: sku, expression: "items[].sku"}
  - {name: qty, expression: "items[].qty", type: int}
where: "type = 'order'"
except_columns: [type, at, user]
"""
#: A row for each user, with all that it was before.
USERS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: SOURCE_users
from: SOURCE
schema: demo
mode: merge
columns:
  - {name: user_id, expression: "user.id", type: bigint, key: 1}
  - {name: city, expression: "to_upper(trim(user.address.city))"}
  - {name: n, expression: "n", type: bigint}
nested: expand
where: "not_equal_to(type, 'ping')"
soft_delete: "type = 'unsubscribe'"
timestamp: at
except_columns: [type, at, items]
history: true
partition_by: ["bucket(4, user_id)"]
"""


def write(folder: Path, broker: str, endpoint: str, region: str) -> None:
    """Write the project file and the files of the six tasks."""
    (folder / "landing").mkdir(parents=True)
    (folder / "tasks").mkdir()
    (folder / "polynya.yml").write_text(PROJECT, "utf-8")
    landings = {
        "kafka": KAFKA.replace("BROKER", broker),
        "kinesis": KINESIS.replace("REGION", region).replace("ENDPOINT", endpoint),
    }
    for source, text in landings.items():
        _task(folder, source, text)
        _task(folder, f"{source}_lines", LINES.replace("SOURCE", source))
        _task(folder, f"{source}_users", USERS.replace("SOURCE", source))


def _task(folder: Path, name: str, text: str) -> None:
    (folder / "tasks" / f"{name}.yml").write_text(text, "utf-8")
