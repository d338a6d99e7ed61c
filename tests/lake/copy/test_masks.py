"""Masks hide values before a batch is written; what is set aside shows none either."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from polynya.capture.masks import HashMask, masker
from polynya.formats.batch import DatasetBatch
from polynya.formats.debezium.envelope import Unsent
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapped_values import Typed
from polynya.lake.copy.mapping import Before, mapped_batch
from polynya.lake.copy.masks import WITHHELD, RuleMasks, withheld
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.rules import TransformationRule
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import ConfigError
from polynya.model.types import BIGINT, STRING, DataType, parse_type
from tests.lake.copy.batches import read

HASH = {"hash": {"key": {"env": "KEY"}}}
CANARY = "canary@example.org"


def of_rules(*rules: dict[str, Any], **own: Any) -> ResolvedDataset:
    """A JSON dataset with rules."""
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1", "kind": "storage", "name": "t", "schema": "s",
            "landing": {"path": "in", "format": "json"}, "rules": rules,
            "datasets": [{"name": "t", "mode": "append_only", **own}],
        }
    )  # fmt: skip
    return resolved(task, task.datasets[0])


def copied(dataset: ResolvedDataset, *records: dict[str, Any]) -> DatasetBatch:
    """What is written of records; Spark is not asked."""
    batch = withheld(read(dataset, records))
    return mapped_batch(batch, dataset, Before({}, {}), _no_session, lambda _: b"k")


def _no_session() -> Any:
    raise AssertionError("only paths are mapped")


def values(batch: DatasetBatch) -> list[dict[str, Any]]:
    """The rows in the columns of the table."""
    rows: list[dict[str, Any]] = batch.rows.select(list(batch.schema)).to_pylist()
    return rows


def masked(mask: Any, value: Any, kind: DataType) -> Any:
    """What a mask makes of a value."""
    rule = TransformationRule.model_validate({"mask": mask})
    column = Typed(pa.array([value, None], arrow_type(kind)), kind)
    made = RuleMasks("t", {"c": rule}, lambda _: b"k").masked("c", column, None)
    return made.array.to_pylist()


def test_each_mask_hides_its_column_and_the_order_of_columns_stays() -> None:
    dataset = of_rules(
        {"when": {"column": "mail"}, "mask": HASH},
        {"when": {"column": "name"}, "mask": {"truncate": 1}},
        {"when": {"column": "age"}, "mask": "redact"},
        {"when": {"column": "note"}, "mask": {"replace": "-"}},
    )
    record = {"id": 1, "mail": CANARY, "name": "Ann", "age": 30, "note": None}
    (row,) = values(copied(dataset, record))
    assert list(row) == ["id", "mail", "name", "age", "note"]
    assert row | {"mail": ""} == {"id": 1, "mail": "", "name": "A", "age": None, "note": "-"}
    assert len(row["mail"]) == 64


def test_a_column_that_appears_later_is_masked_when_it_appears() -> None:
    dataset = of_rules({"when": {"column": "*mail"}, "mask": "redact"})
    assert values(copied(dataset, {"id": 1})) == [{"id": 1}]
    later = copied(dataset, {"id": 2, "work_mail": CANARY})
    assert values(later) == [{"id": 2, "work_mail": None}]


@pytest.mark.parametrize(
    ("value", "kind", "schema"),
    [
        (CANARY, STRING, {"type": "string"}),
        (7, BIGINT, {"type": "int64"}),
        (True, parse_type("boolean"), {"type": "boolean"}),
    ],
)
def test_a_hash_is_that_of_a_capture_with_the_same_key(
    value: Any, kind: DataType, schema: dict[str, Any]
) -> None:
    of_capture = masker(HashMask(b"k"), schema, Unsent("not sent"))
    assert of_capture is not None
    assert masked(HASH, value, kind) == [of_capture(value), None]


def test_values_that_are_equal_have_one_hash() -> None:
    small, large = parse_type("decimal(9,1)"), parse_type("decimal(20,4)")
    of_decimal = masked(HASH, Decimal("1.5"), small)
    assert of_decimal == masked(HASH, Decimal("1.5000"), large) == masked(HASH, "1.5", STRING)
    assert masked(HASH, date(2026, 1, 2), parse_type("date")) == masked(HASH, "2026-01-02", STRING)
    moment = datetime(2026, 1, 2, 3, tzinfo=UTC)
    of_time = masked(HASH, moment, parse_type("timestamp"))
    assert of_time == masked(HASH, "2026-01-02T03:00:00.000000+00:00", STRING)


def test_a_type_that_the_mask_does_not_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="`hash` does not take double"):
        masked(HASH, 1.5, parse_type("double"))


def test_a_mask_does_not_change_the_type_that_a_table_has() -> None:
    rule = TransformationRule.model_validate({"mask": HASH})
    masks = RuleMasks("t", {"c": rule}, lambda _: b"k")
    with pytest.raises(ConfigError, match="the table has it as bigint"):
        masks.masked("c", Typed(pa.array([1]), BIGINT), BIGINT)


def test_a_record_that_is_set_aside_keeps_its_place_and_not_its_text() -> None:
    """Whether the reader refuses it or the mapping does."""
    dataset = of_rules(
        {"when": {"column": "mail"}, "mask": "redact"},
        columns={"size": "int", "mail": "string"},
    )
    batch = copied(dataset, {"mail": CANARY, "size": 1}, {"mail": CANARY, "size": CANARY})
    (rejected,) = batch.rejected
    assert (rejected.offset, rejected.rule, rejected.raw) == (1, "bad_value", WITHHELD)
    assert CANARY not in rejected.error
    assert CANARY.encode() not in b"".join(
        batch.with_raw(pa.array([True] * batch.rows.num_rows)).column("__raw").to_pylist()
    )
    assert CANARY not in str(values(batch))
