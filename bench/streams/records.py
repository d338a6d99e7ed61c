"""The messages: JSON objects of 20 fields, one of them nested, made by Spark or one by one."""

from __future__ import annotations

import json
from typing import Any, Final

from polynya.lake.spark.api import SparkSession

#: The same fields as Spark declares them, for `from_json`.
DDL: Final = (
    "id BIGINT, type STRING, user_id BIGINT, session STRING, at STRING, url STRING, "
    "referrer STRING, agent STRING, country STRING, city STRING, language STRING, ip STRING, "
    "amount DOUBLE, currency STRING, quantity INT, duration_ms BIGINT, is_new BOOLEAN, "
    "score DOUBLE, campaign STRING, "
    "device STRUCT<os: STRING, version: STRING, width: INT, height: INT>"
)
PARTITIONS: Final = 4
_WORDS: Final = ("blue", "green", "amber", "violet", "crimson", "teal", "silver", "copper")
_FIELDS: Final = (
    "id",
    f"element_at({{words}}, 1 + CAST(id % {len(_WORDS)} AS INT)) AS type",
    "id * 7919 % 100003 AS user_id",
    "md5(CAST(id AS STRING)) AS session",
    "date_format(timestamp_millis(1760000000000 + id * 7), \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\") AS at",
    "concat('https://shop.example/items/', id % 5000, '?page=', id % 17) AS url",
    "IF(id % 3 = 0, NULL, concat('https://search.example/?q=', id % 1000)) AS referrer",
    "concat('Mozilla/5.0 (X11; Linux x86_64) Chrome/', 100 + id % 40) AS agent",
    "element_at(array('DE', 'FR', 'IT', 'ES', 'PL'), 1 + CAST(id % 5 AS INT)) AS country",
    "concat('city-', id % 300) AS city",
    "element_at(array('de', 'fr', 'it', 'es', 'pl'), 1 + CAST(id % 5 AS INT)) AS language",
    "concat('10.', id % 200, '.', id % 250, '.', id % 240) AS ip",
    "CAST(id % 100000 AS DOUBLE) / 4 AS amount",
    "'EUR' AS currency",
    "CAST(id % 9 AS INT) AS quantity",
    "id * 31 % 60000 AS duration_ms",
    "id % 2 = 0 AS is_new",
    "CAST(id % 1000 AS DOUBLE) / 8 AS score",
    "concat('campaign-', id % 50) AS campaign",
    """named_struct('os', IF(id % 2 = 0, 'linux', 'android'), 'version', concat('1', id % 5),
    'width', CAST(1000 + id % 9 AS INT), 'height', CAST(700 + id % 7 AS INT)) AS device""",
)


def fill(spark: SparkSession, address: str, topic: str, count: int) -> None:
    """Send the messages with the ids from 0 to before `count`, by turns to all partitions."""
    words = "array(" + ", ".join(f"'{word}'" for word in _WORDS) + ")"
    fields = [field.replace("{words}", words) for field in _FIELDS]
    rows = spark.range(0, count, 1, PARTITIONS).selectExpr(*fields)
    message = "to_json(struct(*), map('ignoreNullFields', 'false')) AS value"
    sent = rows.selectExpr(message, f"CAST(id % {PARTITIONS} AS INT) AS partition")
    options = {"kafka.bootstrap.servers": address, "kafka.linger.ms": "50", "topic": topic}
    sent.write.format("kafka").options(**options).save()


def message(number: int) -> str:
    """One message like those, without a query."""
    values: dict[str, Any] = {
        "id": number,
        "type": _WORDS[number % len(_WORDS)],
        "user_id": number * 7919 % 100_003,
        "session": f"{number * 2654435761 % 2**64:032x}",
        "at": f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "url": f"https://shop.example/items/{number % 5000}?page={number % 17}",
        "referrer": None if number % 3 == 0 else f"https://search.example/?q={number % 1000}",
        "agent": f"Mozilla/5.0 (X11; Linux x86_64) Chrome/{100 + number % 40}",
        "country": ("DE", "FR", "IT", "ES", "PL")[number % 5],
        "city": f"city-{number % 300}",
        "language": ("de", "fr", "it", "es", "pl")[number % 5],
        "ip": f"10.{number % 200}.{number % 250}.{number % 240}",
        "amount": number % 100_000 / 4,
        "currency": "EUR",
        "quantity": number % 9,
        "duration_ms": number * 31 % 60_000,
        "is_new": number % 2 == 0,
        "score": number % 1000 / 8,
        "campaign": f"campaign-{number % 50}",
        "device": {
            "os": "linux" if number % 2 == 0 else "android",
            "version": f"1{number % 5}",
            "width": 1000 + number % 9,
            "height": 700 + number % 7,
        },
    }
    return json.dumps(values, separators=(",", ":"))


def mixed(number: int) -> str:
    """The same of a hard stream: 4 % of the messages are broken, 0.4 % have 0.5 to 1 MB.

    The broken ones end too early.
    """
    text = message(number)
    if number % 25 == 7:
        return text[: len(text) // 2]
    if number % 250 == 3:
        size = 500_000 + number * 7919 % 490_000
        return f'{text[:-1]},"page":"{"x" * size}"}}'
    return text
