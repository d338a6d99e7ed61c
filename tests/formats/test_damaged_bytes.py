"""Whatever bytes a file holds: reading it ends in rows and rejections, never in an exception."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable

import fastavro
import pytest

from polynya.formats.debezium.envelope import Flattening
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from polynya.model.config.settings import Delivery
from tests.formats.debezium.builders import an_event, capture, read_capture, with_schema
from tests.formats.helpers import a_dataset, json_lines, read
from tests.formats.test_compression import CODECS

_TRIES = 60
_AVRO_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")
_DELIVERIES = (
    Delivery(delimiter=";", escape="\\", comment="#"),
    Delivery(delimiter=";", quote="'", null_value="\\N", encoding="windows-1252"),
    Delivery(delimiter=";", header=False, encoding="utf-16"),
)
_ADDED = {"__op": "u", "__table": "t", "__schema": "w", "__lsn": 5, "__deleted": "false"}
_SCOPES = (
    DebeziumScope(default=TableSettings(keys=("id",))),
    DebeziumScope(flattening=Flattening(), default=TableSettings(keys=("id",))),
)


def _damaged(content: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, taken out, or the end cut off."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 2, 30))):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                del data[at : at + chance.randrange(20)]
            case 1:
                del data[at + 1 :]
            case _:
                data[at] = chance.randrange(256)
        data = data or bytearray(b"\0")
    return bytes(data)


def _avro(codec: str) -> bytes:
    fields = [{"name": name, "type": "int"} for name in ("id", "n")]
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields += [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": ["null", price]},
        *({"name": name, "type": ["null", "string"]} for name in _ADDED if name != "__lsn"),
        {"name": "__lsn", "type": "long"},
    ]
    row = {"id": 1, "n": 1, "at": 1, "price": b"\1", **_ADDED}
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "R", "fields": fields}, [row] * 20, codec=codec)
    return out.getvalue()


@pytest.mark.parametrize("codec", _AVRO_CODECS)
def test_avro(codec: str) -> None:
    chance, whole = random.Random(codec), _avro(codec)
    for _ in range(_TRIES):
        content = _damaged(whole, chance)
        read(content, a_dataset("avro"))
        for scope in _SCOPES:
            read_capture(content, scope)


@pytest.mark.parametrize(("name", "compress"), CODECS.items(), ids=CODECS)
def test_archives(name: str, compress: Callable[[bytes], bytes]) -> None:
    chance, whole = random.Random(name), compress(json_lines(*[{"id": 1, "n": 1}] * 300))
    for _ in range(_TRIES):
        read({name: _damaged(whole, chance)})


@pytest.mark.parametrize("delivery", _DELIVERIES)
def test_csv(delivery: Delivery) -> None:
    text = 'id;n;x\n1;1;"a;""b"\n#c\n2;1;\\N\n3;1;\'q;q\'\n4;1;"x\ny"\n'
    chance, whole = random.Random(1), text.encode(delivery.encoding or "utf-8")
    dataset = a_dataset("csv", delivery=delivery, columns={"id": "int", "n": "int", "x": "string"})
    for _ in range(_TRIES):
        read(_damaged(whole, chance), dataset)


@pytest.mark.parametrize("scope", _SCOPES, ids=["envelopes", "flattened"])
def test_events_with_any_value_anywhere(scope: DebeziumScope) -> None:
    odd = [None, {}, [], {"a": 1}, [1], "", -1, 1.5, True, 10**30, [["a"]]]
    row = {"id": 1, "v": "x", **_ADDED}
    whole = [
        with_schema(an_event("u", row, key={"id": 1}), dict.fromkeys(row, "string")),
        an_event("d", before=row, headers=[["__debezium.oldkey", '{"id": 2}'], ["__op", "d"]]),
        {"key": {"id": 1}, "value": row, "headers": {"__op": "d"}},
        row,
    ]
    chance = random.Random(1)
    for _ in range(_TRIES * 10):
        event = json.loads(json.dumps(chance.choice(whole)))
        holder, name = chance.choice(list(_spots(event)))
        holder[name] = chance.choice(odd)
        read_capture(capture(event, *whole), scope)


def _spots(value: object) -> list[tuple[dict[str, object], str]]:
    """Every place of every object inside a value."""
    if isinstance(value, list):
        return [spot for one in value for spot in _spots(one)]
    if not isinstance(value, dict):
        return []
    return [(value, name) for name in value] + _spots(list(value.values()))
