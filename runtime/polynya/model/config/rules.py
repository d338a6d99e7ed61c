"""Rules: changes of rows by patterns over schema, dataset, column and type (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.fields import Column, ColumnType, Expression, Frozen, Pattern, Prefix
from polynya.model.config.masks import Mask, SecretSetting
from polynya.model.patterns import any_text

#: Both stand for any text.
_WILDCARDS: Final = "%*"


def _patterns(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class _OneOrMorePatterns:
    """The JSON Schema of a list whose only item may stand alone."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: object) -> dict[str, object]:
        many: dict[str, object] = handler(core)  # type: ignore[operator]
        return {"anyOf": [many["items"], many]}


#: One pattern or several, of which one has to fit.
Patterns: TypeAlias = Annotated[
    tuple[Pattern, ...], BeforeValidator(_patterns), Field(min_length=1), _OneOrMorePatterns()
]


def fits(patterns: Iterable[str], text: str) -> bool:
    """Whether a text fits one of the patterns, in which `%` and `*` stand for any text."""
    return any(any_text(one, _WILDCARDS).fullmatch(text) is not None for one in patterns)


def is_literal(pattern: str) -> bool:
    """Whether a pattern stands for one text only."""
    return not set(pattern) & set(_WILDCARDS)


class RuleSelection(Frozen):
    """What a rule is for: all that fits every pattern. Case matters."""

    schema_: Patterns = Field(
        default=("*",), alias="schema", description="Schema of the views. Default: any."
    )
    dataset: Patterns = Field(
        default=("*",), description="Name of the dataset, without the prefix. Default: any."
    )
    column: Patterns = Field(
        default=("*",),
        description="Name of the column, as the rules before have made it. Default: any.",
    )
    type: Patterns = Field(
        default=("*",),
        description="Type of the column, such as `string` or `decimal*`, before the rules. "
        "Default: any.",
    )
    except_: Patterns | None = Field(
        default=None, alias="except", description="Columns that are left as they are."
    )

    def takes_dataset(self, schema: str, dataset: str) -> bool:
        """Whether the rule is for a dataset."""
        return fits(self.schema_, schema) and fits(self.dataset, dataset)

    @property
    def names_columns(self) -> bool:
        """Whether columns are chosen, which a rule for whole rows cannot use."""
        return bool(self.model_fields_set & {"column", "type", "except_"})


#: `redact` makes the value NULL.
ColumnMask: TypeAlias = Literal["redact"] | Mask

_OF_ROWS: Final = ("add", "filter")
_ACTIONS: Final = ("rename", "prefix", "suffix", "case", "type", "add", "drop", "mask", "filter")


class TransformationRule(Frozen):
    """One change of the rows of datasets or of their columns; it has one action."""

    when: RuleSelection = Field(
        default_factory=RuleSelection,
        description="Which datasets and columns it is for. Default: all.",
    )
    rename: Column | None = Field(default=None, description="New name of the column.")
    prefix: Prefix | None = Field(
        default=None, min_length=1, description="Text to put before the name of each column."
    )
    suffix: Annotated[str, Field(pattern="^[A-Za-z0-9_]{1,32}$")] | None = Field(
        default=None, description="Text to put after the name of each column."
    )
    case: Literal["lower", "upper"] | None = Field(
        default=None, description="Write the name in small or in capital letters."
    )
    type: ColumnType | None = Field(
        default=None,
        description="Type of the column. A record with a value that does not fit it goes to "
        "quarantine.",
    )
    add: dict[Column, Expression] | None = Field(
        default=None,
        min_length=1,
        description="Columns to add, each with its Spark SQL expression over the columns of the "
        "source. A dataset that lacks one of them does not get the column.",
    )
    drop: Literal[True] | None = Field(
        default=None, description="Leave the column out of the table."
    )
    mask: ColumnMask | None = Field(
        default=None,
        description="Hide the value before anything is written: `redact` for NULL, "
        "`{hash: {key: …}}`, `{truncate: N}` or `{replace: VALUE}`.",
    )
    filter: Expression | None = Field(
        default=None,
        description="Spark SQL condition over the columns of the source; other events are left "
        "out and counted as filtered. Deletes of records and truncates stay.",
    )
    _place: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _has_one_action(self) -> TransformationRule:
        chosen = [name for name in _ACTIONS if getattr(self, name) is not None]
        message = fix = None
        if len(chosen) != 1:
            named = f"has {' and '.join(chosen)}" if chosen else "does nothing"
            message, fix = f"the rule {named}", f"write one of {', '.join(_ACTIONS)} in each rule"
        elif chosen[0] in _OF_ROWS and self.when.names_columns:
            message = f"`{chosen[0]}` is for rows, and `when` names columns"
            fix = "choose by `schema` and `dataset` only"
        elif isinstance(self.mask, Mask) and len(self.mask.chosen) != 1:
            message = "a mask has one of `hash`, `truncate` and `replace`"
            fix = "write `mask: redact` or, for example, `mask: {truncate: 3}`"
        if message is not None:
            raise PydanticCustomError(
                "polynya_value", "{message}", {"message": message, "fix": fix}
            )
        return self

    @property
    def action(self) -> str:
        """The name of what it does."""
        return next(name for name in _ACTIONS if getattr(self, name) is not None)

    @property
    def gives_name(self) -> bool:
        """Whether it gives columns another name."""
        return self.action in {"rename", "prefix", "suffix", "case"}

    @property
    def place(self) -> str:
        """`file:line:col` of it, "" before the project gave it one."""
        return self._place

    def at(self, place: str) -> TransformationRule:
        """The same rule with its place."""
        placed = self.model_copy()
        placed._place = place
        return placed

    def takes_column(self, name: str, kind: str) -> bool:
        """Whether the rule is for a column of a dataset that it is for."""
        when = self.when
        if when.except_ is not None and fits(when.except_, name):
            return False
        return fits(when.column, name) and fits(when.type, kind)

    def renamed(self, name: str) -> str:
        """The name that a column gets of it."""
        if self.rename is not None:
            return self.rename
        if self.case is not None:
            return name.lower() if self.case == "lower" else name.upper()
        return f"{self.prefix or ''}{name}{self.suffix or ''}"

    @property
    def hash_key(self) -> SecretSetting | None:
        """Where the key of its hash stands."""
        of_hash = self.mask.hash if isinstance(self.mask, Mask) else None
        return None if of_hash is None else of_hash.key

    @property
    def does(self) -> str:
        """What it does, in words without a secret."""
        match self.action:
            case "add":
                return "add " + ", ".join(f"{name} = {text}" for name, text in self.added.items())
            case "drop":
                return "drop"
            case "mask":
                return f"mask: {_mask_text(self.mask)}"
            case action:
                return f"{action}: {getattr(self, action)}"

    @property
    def added(self) -> dict[str, str]:
        """The columns that it adds, with their expressions."""
        return self.add or {}

    def __str__(self) -> str:
        """As a plan shows it, and a table remembers it."""
        when = self.when.model_dump(by_alias=True, exclude_defaults=True)
        chosen = ", ".join(f"{name} {'|'.join(texts)}" for name, texts in when.items())
        return f"{self.does} ({chosen})" if chosen else self.does


def _mask_text(mask: ColumnMask | None) -> str:
    if not isinstance(mask, Mask):
        return str(mask)
    if mask.hash is not None:
        return "hash"
    if mask.truncate is not None:
        return f"truncate {mask.truncate}"
    return f"replace {mask.replace!r}"
