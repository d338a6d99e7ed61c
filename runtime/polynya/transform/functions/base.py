"""What a function of Polynya is: its name, its parameters, and how a call becomes Spark SQL.

A call is rewritten into native Spark expressions for the types that its arguments have. An argument
of another type, or one that makes no sense, counts as NULL: no value of a row raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.model.contract.identifiers import literal
from polynya.model.datatypes import STRING, DataType

#: What is short enough to be written several times: a column, a literal, a variable.
_SIMPLE: Final = re.compile(r"(`[^`]{1,80}`(\.`[^`]{1,80}`){0,3}|-?[\w.]{1,40}|'[^'\\]{0,40}')")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of Spark SQL and its type.

    `constant` is what a literal says, as text; None for what is computed.
    """

    sql: str
    kind: DataType
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an expression runs.

    Attributes:
        kinds: the types of fragments of Spark SQL there.
        works: whether a fragment without columns can be computed.
        row: SQL of a text that only this row has, the same on every run.
    """

    kinds: Callable[[Sequence[str]], Sequence[DataType]]
    works: Callable[[str], bool]
    row: str

    def typed(self, sql: str) -> Value:
        """A fragment with the type that it has here."""
        return Value(sql, self.kinds([sql])[0])


Build: TypeAlias = Callable[[Sequence[Value], Place], Value]


@dataclass(frozen=True, slots=True)
class Example:
    """A call, and what it gives, as JSON."""

    call: str
    gives: str


@dataclass(frozen=True, slots=True)
class Function:
    """A line of the table of functions.

    Attributes:
        name: in small letters.
        family: the part of the reference that it stands in.
        parameters: names; `'x'` takes a literal only, `x?` may be left out, `x+` takes one or more.
        about: what it gives and its edge cases, in sentences.
        build: makes the SQL of a call; None for a function that cannot be called here, or is a
            header column.
        examples: tested, and shown in the reference.
        written: the name as a call has it, with its qualifier where it needs one.
        header: the header column of messages that a call stands for, whatever its arguments.
        by_place: what it gives depends on the place of the record in the landing zone.
    """

    name: str
    family: str
    parameters: tuple[str, ...]
    about: str
    build: Build | None
    examples: tuple[Example, ...]
    written: str = ""
    header: str | None = None
    by_place: bool = False

    @property
    def is_callable(self) -> bool:
        """Whether an expression may call it."""
        return self.build is not None or self.header is not None

    @property
    def signature(self) -> str:
        """As people read it: `substring(text, start[, end])`."""
        text = ""
        for index, parameter in enumerate(self.parameters):
            shown = parameter.rstrip("?+") + (", …" if parameter.endswith("+") else "")
            comma = ", " if index else ""
            text += f"[{comma}{shown}]" if parameter.endswith("?") else f"{comma}{shown}"
        return f"{self.written}({text})"

    @property
    def fewest(self) -> int:
        """How many arguments a call has at least."""
        return sum(not one.endswith("?") for one in self.parameters)

    @property
    def most(self) -> int | None:
        """How many arguments a call has at most; None without a limit."""
        many = any(one.endswith("+") for one in self.parameters)
        return None if many else len(self.parameters)

    def parameter(self, index: int) -> str:
        """The parameter that takes an argument."""
        return self.parameters[min(index, len(self.parameters) - 1)]


def function(
    name: str,
    parameters: str,
    build: Build | None,
    about: str,
    *examples: str,
    header: str | None = None,
    by_place: bool = False,
) -> Function:
    """A line of the table, without its family.

    `parameters` are divided by blanks. `examples` are `call -> JSON`.
    """
    pairs = (example.split(" -> ") for example in examples)
    shown = tuple(Example(call, gives) for call, gives in pairs)
    text, names = " ".join(about.split()), tuple(parameters.split())
    return Function(name, "", names, text, build, shown, header=header, by_place=by_place)


def null(kind: DataType = STRING) -> Value:
    """NULL of a type."""
    return Value(f"CAST(NULL AS {kind})", kind)


def text_of(value: str) -> Value:
    """A text that is known here."""
    return Value(literal(value), STRING, value)


def is_simple(sql: str) -> bool:
    """Whether SQL is a column, a literal or a variable: short, and whole wherever it stands."""
    return _SIMPLE.fullmatch(sql) is not None


def let(tag: str, value: Value, body: Callable[[Value], str]) -> str:
    """SQL that uses a value several times but computes, and writes, it once.

    `tag` differs between the values of one function. The name of the variable is one that no
    column has.
    """
    if is_simple(value.sql):
        return body(value)
    variable = f"`|{tag}`"
    return f"transform(array({value.sql}), {variable} -> {body(Value(variable, value.kind))})[0]"


def item(tag: str, kind: DataType) -> Value:
    """The variable that stands for an element of an array in a lambda."""
    return Value(f"`|{tag}`", kind)
