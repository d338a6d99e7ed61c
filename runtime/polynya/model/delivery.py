"""How replication services write their files: settings of `landing` for `dms` and `replicate`."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import Field, StringConstraints

from polynya.model.fields import Column, Frozen, RelativePath

DEFAULT_DELIMITER: Final = ","

#: One character that cannot be part of a line end or a quote.
Delimiter: TypeAlias = Annotated[str, StringConstraints(pattern=r'^[^"\r\n\x00]$')]
#: What a field holds instead of a value.
Marker: TypeAlias = Annotated[str, StringConstraints(max_length=64, pattern=r'^[^"\r\n\x00]*$')]


class Delivery(Frozen):
    """What a replication service was told about its files. None means the service's default."""

    header: bool | None = Field(
        default=None,
        description="For `dms` and `replicate`: whether CSV files begin with a line of column "
        "names. Without one, `columns` of a `dms` dataset names them in order; `replicate` has "
        "them in its `.dfm` files. Default: `true`.",
    )
    delimiter: Delimiter | None = Field(
        default=None,
        description="For `dms` and `replicate`: the character between the fields of CSV files. "
        "What a `.dfm` file says wins. Default: `,`.",
    )
    null_value: Marker | None = Field(
        default=None,
        description="For `dms` and `replicate`: what an unquoted CSV field holds that is NULL; a "
        "quoted one is always text. Write it in quotes. What a `.dfm` file says wins. Default: "
        'nothing, so that an empty field is NULL and `""` the empty text.',
    )
    timestamp_column: Column | None = Field(
        default=None,
        description="For `dms`: the column with the time of the commit (`TimestampColumnName`). "
        "It orders the changes, then file name and row do; and it becomes `hdr__timestamp`.",
    )
    cdc_path: RelativePath | None = Field(
        default=None,
        description="For `dms`: folder below `path` whose folders hold the files of changes "
        "(`CdcPath`). Default: they stand beside those of the full load.",
    )
    unsent_value: Marker | None = Field(
        default=None,
        description="For `dms`: what a CSV field holds whose column the source did not log "
        "(`CsvNoSupValue`); the column keeps its value.",
    )

    @property
    def has_header(self) -> bool:
        """Whether CSV files begin with a line of column names."""
        return self.header is not False


#: The settings by the formats that take them.
DELIVERY_SETTINGS: Final = {
    "dms": frozenset(Delivery.model_fields),
    "replicate": frozenset({"header", "delimiter", "null_value"}),
}
