"""Masks of rules: values of a column before they are written, and records that show none.

| mask | value | type |
|---|---|---|
| redact | NULL | that of the column |
| hash | HMAC-SHA256 of the value's text, 64 hex digits | string |
| truncate | the first characters | string |
| replace | one constant, also for NULL | that of the constant |

They are computed here and not by Spark, so the key of a hash stands in no plan, and both engines
give one result. The text of a value is that of the masks of captures: numbers are plain and without
trailing zeros. NULL stays NULL, except with `replace`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Final, TypeAlias

import pyarrow as pa

from polynya.formats.batch import DatasetBatch
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapped_values import Typed, nulls_of
from polynya.model.config.masks import Mask, SecretSetting
from polynya.model.config.rules import TransformationRule
from polynya.model.error_catalogue.configuration import MASK_NOT_POSSIBLE
from polynya.model.names import shown
from polynya.model.promotion import widen
from polynya.model.types import BIGINT, BOOLEAN, DOUBLE, STRING, DataType, Void
from polynya.transform.rules import unfit_type

#: Gives the key of a hash.
Secrets: TypeAlias = Callable[[SecretSetting], bytes]

#: What quarantine has instead of the text of a record.
WITHHELD: Final = b"(not kept: columns of the dataset are masked)"
_ERROR_WITHHELD: Final = "not shown, since columns of the dataset are masked"


def no_secrets(_: SecretSetting) -> bytes:
    """For callers whose datasets have no hash."""
    raise AssertionError("nothing here gives a key")


@dataclass(frozen=True, slots=True)
class RuleMasks:
    """The masks of the columns of a table.

    Attributes:
        table: its name, for errors.
        rules: by the name of the column.
    """

    table: str
    rules: Mapping[str, TransformationRule]
    secrets: Secrets = field(default=no_secrets, repr=False)

    def refuse_keys(self, keys: tuple[str, ...]) -> None:
        """Raise ConfigError POLYNYA-CFG-076 for a key with another mask than a hash."""
        for name in keys:
            rule = self.rules.get(name)
            if rule is not None and rule.hash_key is None:
                reason = f"it is a key, which `{rule.does}` would not keep apart"
                raise self._not_possible(name, rule, reason, "use `hash`")

    def masked(self, name: str, column: Typed, stored: DataType | None) -> Typed:
        """A column as it is written; `stored` is its type in the table, None for a new one.

        Raises:
            ConfigError: POLYNYA-CFG-076, the mask does not take the type, or gives another type
                than the table has.
            DependencyError, OperationError: the key of a hash cannot be read.
        """
        rule = self.rules[name]
        if not isinstance(column.kind, Void) and (unfit := unfit_type(rule, column.kind)):
            raise self._not_possible(name, rule, *unfit)
        made = self._made(rule, column)
        if stored is None or isinstance(stored, Void) or stored == made.kind:
            return made
        if rule.mask == "redact" or isinstance(made.kind, Void):
            return nulls_of(stored, len(made.array))
        target = widen(stored, made.kind)
        if target is None:
            raise self._not_possible(
                name,
                rule,
                f"the table has it as {stored}, and the mask makes {made.kind}",
                "give the column a new name by a rule before, or the dataset a new `name`",
            )
        return Typed(made.array.cast(arrow_type(target)), target)

    def _made(self, rule: TransformationRule, column: Typed) -> Typed:
        mask = rule.mask
        if not isinstance(mask, Mask):
            return nulls_of(column.kind, len(column.array))
        if mask.hash is not None:
            key = self.secrets(mask.hash.key)
            return _texts(column, lambda text: _hashed(key, text))
        if mask.truncate is not None:
            length = mask.truncate
            return _texts(column, lambda text: str(text)[:length])
        if mask.replace is None:
            return nulls_of(column.kind, len(column.array))
        kind = _KINDS[type(mask.replace)]
        value = pa.scalar(mask.replace, arrow_type(kind))
        return Typed(pa.repeat(value, len(column.array)), kind)

    def _not_possible(
        self, column: str, rule: TransformationRule, reason: str, fix: str
    ) -> Exception:
        return MASK_NOT_POSSIBLE(
            where=rule.place, dataset=self.table, column=shown(column), reason=reason, fix=fix
        )


_KINDS: Final[Mapping[type, DataType]] = {
    str: STRING, bool: BOOLEAN, int: BIGINT, float: DOUBLE
}  # fmt: skip


def _texts(column: Typed, hidden: Callable[[str | bytes], str]) -> Typed:
    values = (None if value is None else hidden(_text(value)) for value in column.array.to_pylist())
    return Typed(pa.array(values, pa.string()), STRING)


def _text(value: object) -> str | bytes:
    match value:
        case bytes() | str():
            return value
        case bool():
            return "true" if value else "false"
        case Number():
            text = format(value, "f")
            plain = text.rstrip("0").rstrip(".") if "." in text else text
            return "0" if plain in {"-0", ""} else plain
        case datetime():
            # One text for an instant, whatever the zone of the session.
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return moment.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _hashed(key: bytes, text: str | bytes) -> str:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def withheld(batch: DatasetBatch) -> DatasetBatch:
    """The batch whose records go to quarantine without their text, by their place only.

    What an error of a reader says may quote a value, too.
    """
    rejected = tuple(
        replace(record, raw=WITHHELD, error=_ERROR_WITHHELD) for record in batch.rejected
    )
    place = batch.rows.column_names.index("__raw")
    nulls = pa.nulls(batch.rows.num_rows, pa.binary())
    rows = batch.rows.set_column(place, "__raw", nulls)
    return replace(batch, rows=rows, rejected=rejected, raw_of=lambda _, __: WITHHELD)
