"""The expressions of a mapping, and the one array whose elements become rows.

`items[]` in an expression is an element of the array `items`; each element becomes a row. An array
path has one step per array: `orders[].lines[]` are the lines of all orders. Each element is
computed as a column of its own, so that the rest of the expression stays a plain expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.expressions import INVALID_ARRAY_PATH, TWO_ARRAYS_MAKE_ROWS
from polynya.model.names import quote, shown
from polynya.transform.expressions import expression_columns
from polynya.transform.parsing import refuse

#: Columns that no record has: the element of each step and its number, from 1.
_ELEMENT: Final = "|element"
_ORDINAL: Final = "|ordinal"
_WORD: Final = re.compile(r"[^\W\d]\w*")
_PAIR: Final = re.compile(r"\[\s*\]")
_CALL: Final = "ordinal"


def element_column(depth: int) -> str:
    """The column of the elements of a step, counted from 1."""
    return f"{_ELEMENT}{depth}"


def ordinal_column(depth: int) -> str:
    """The column of their numbers."""
    return f"{_ORDINAL}{depth}"


@dataclass(frozen=True, slots=True)
class ArrayPath:
    """Where the elements are: for each array the names that lead to it.

    The names of the first step begin at the record, those of another one at an element of the step
    before. A step without a name is an array in an array.
    """

    steps: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """As it is written."""
        text = ""
        for step in self.steps:
            dot = "." if text and step else ""
            text += f"{dot}{'.'.join(step)}[]"
        return text

    def leads_to(self, other: ArrayPath) -> bool:
        """Whether the other path continues from here, or ends here too."""
        return other.steps[: len(self.steps)] == self.steps


@dataclass(frozen=True, slots=True)
class Flat:
    """An expression with its elements as columns, and the array paths that it names."""

    text: str
    paths: tuple[ArrayPath, ...] = ()


def columns_read(text: str) -> frozenset[str]:
    """The top-level columns that an expression reads; raises ConfigError like its check."""
    flat = flattened(text)
    made = {element_column(len(path.steps)) for path in flat.paths}
    made |= {ordinal_column(len(path.steps)) for path in flat.paths}
    named = expression_columns(flat.text) - made
    return named | {path.steps[0][0] for path in flat.paths}


def flattened(text: str, where: str | None = None) -> Flat:
    """The expression without `[]`. Raises ConfigError POLYNYA-EXP-008 where that ends no path."""
    if not _PAIR.search(text):
        return Flat(text)
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        # The check of the expression says what is wrong.
        return Flat(text)
    parts: list[str] = []
    paths: list[ArrayPath] = []
    written, index = 0, 0
    while index < len(tokens):
        chain = _chain(tokens, index)
        if chain is None:
            if _is_pair(tokens, index):
                raise refuse(
                    INVALID_ARRAY_PATH, "`[]` has no path of names before it", where,
                    tokens[index].start,
                )  # fmt: skip
            index += 1
            continue
        first, last, made = _place(tokens, index, chain, where)
        parts += [text[written : tokens[first].start], made]
        written, index = tokens[last].end + 1, last + 1
        paths.append(chain.path)
    return Flat("".join([*parts, text[written:]]), tuple(dict.fromkeys(paths)))


@dataclass(frozen=True, slots=True)
class _Chain:
    """An array path with the names after it; `last` is its last token."""

    path: ArrayPath
    names: tuple[str, ...]
    last: int


def _chain(tokens: Sequence[Token], first: int) -> _Chain | None:
    """The array path that begins at a token; None when there is none."""
    if not _is_name(tokens, first) or (first and tokens[first - 1].token_type == TokenType.DOT):
        return None
    closed: list[tuple[str, ...]] = []
    names, index = [tokens[first].text], first + 1
    while index + 1 < len(tokens):
        if _is_pair(tokens, index):
            closed.append(tuple(names))
            names = []
        elif tokens[index].token_type == TokenType.DOT and _is_name(tokens, index + 1):
            names.append(tokens[index + 1].text)
        else:
            break
        index += 2
    return _Chain(ArrayPath(tuple(closed)), tuple(names), index - 1) if closed else None


def _is_pair(tokens: Sequence[Token], index: int) -> bool:
    kinds = [token.token_type for token in tokens[index : index + 2]]
    return kinds == [TokenType.L_BRACKET, TokenType.R_BRACKET]


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.token_type == TokenType.IDENTIFIER:
        return True
    return token.token_type != TokenType.STRING and _WORD.fullmatch(token.text) is not None


def _place(
    tokens: Sequence[Token], first: int, chain: _Chain, where: str | None
) -> tuple[int, int, str]:
    """The tokens from which to which a path, or the call of its number, stands; what stands there.

    Raises ConfigError for the ordinal of something that is not an element.
    """
    depth = len(chain.path.steps)
    before = [token.text.lower() for token in tokens[max(first - 2, 0) : first]]
    if before != [_CALL, "("]:
        names = "".join(f".{quote(name)}" for name in chain.names)
        return first, chain.last, quote(element_column(depth)) + names
    end = chain.last + 1
    closed = end < len(tokens) and tokens[end].token_type == TokenType.R_PAREN
    if chain.names or not closed:
        path = str(chain.path)
        raise refuse(
            INVALID_ARRAY_PATH, f"`{_CALL}` takes an array path only, such as {shown(path)}", where,
            tokens[first].start,
        )  # fmt: skip
    return first - 2, end, quote(ordinal_column(depth))


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a mapping computes of each record.

    `columns` by name of the column; `where`, `truncates` and `deletes` are conditions. `array` is
    the path whose elements are rows, None where a record is one.
    """

    columns: Mapping[str, Flat]
    where: Flat | None = None
    truncates: Flat | None = None
    deletes: Flat | None = None
    array: ArrayPath | None = None

    @property
    def texts(self) -> list[Flat]:
        """All that is computed."""
        conditions = (self.where, self.truncates, self.deletes)
        return [
            *self.columns.values(),
            *(condition for condition in conditions if condition is not None),
        ]


def mapped(dataset: ResolvedDataset) -> Mapped:
    """What the mapping of a dataset computes. Raises ConfigError as its check does."""
    mapping, events = dataset.mapping, dataset.events
    columns = {
        column.name: flattened(column.expression, f"{dataset.name}, column {column.name}")
        for column in mapping.columns
    }
    where, truncates, deletes = (
        None if text is None else flattened(text, dataset.name)
        for text in (mapping.where, events.apply_as_truncates, events.apply_as_deletes)
    )
    places = [(f"{dataset.name}, column {name}", flat) for name, flat in columns.items()]
    rest = [where, truncates, deletes]
    places += [(dataset.name, flat) for flat in rest if flat is not None]
    return Mapped(columns, where, truncates, deletes, array_of(places))


def array_of(places: Iterable[tuple[str, Flat]]) -> ArrayPath | None:
    """The path that all expressions share, given with their places.

    Raises ConfigError POLYNYA-MAP-001 for two that do not lead to each other.
    """
    longest: ArrayPath | None = None
    first = ""
    for where, flat in places:
        for path in flat.paths:
            if longest is None or longest.leads_to(path):
                longest, first = path, where
            elif not path.leads_to(longest):
                raise TWO_ARRAYS_MAKE_ROWS(where=where, path=path, other=longest, place=first)
    return longest
