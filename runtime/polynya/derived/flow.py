"""A flow becomes one SELECT in Spark's SQL: a common table expression for each of its steps.

The columns of every step are followed from the tables on, so that an error is found at the step,
before anything is read. Types are followed as far as they are plain; Spark's analyser has the last
word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.derived import joins, processors
from polynya.derived.schema import DerivedInput, FlowSchema, schema_of_input
from polynya.derived.steps import (
    FlowRelation,
    FlowStepResult,
    FlowStepScope,
    Lines,
    Place,
    indented,
    select,
)
from polynya.model.config.flow import (
    MAX_STEPS,
    AggregateStep,
    CleanseStep,
    DedupeStep,
    DeriveStep,
    ExplodeStep,
    FillMissingStep,
    FilterStep,
    FlowStep,
    JoinStep,
    LookupStep,
    PivotStep,
    Processor,
    RenameStep,
    SelectStep,
    UnionStep,
    UnpivotStep,
    WindowStep,
)
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.flows import (
    FLOW_INPUT_UNKNOWN,
    FLOW_RESULT_NAME,
    FLOW_STEP_NAME_TAKEN,
    FLOW_STEP_UNUSED,
    FLOW_TOO_LARGE,
)
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.names import column_problem, folded, quote, quote_path, shown

MAX_COLUMNS: Final = 5_000
MAX_CHARACTERS: Final = 1_000_000
MAX_READINGS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """A step of a flow as it runs.

    Attributes:
        name: what it is called in the SQL.
        processor: which one it is.
        reads: the steps and tables that it reads, by their names.
        columns: its columns in order, with their types in Spark's spelling; None for a type that
            only Spark's analyser tells.
        keys: sets of columns that tell its rows apart; without a column, at most one row.
        sql: its query, over the names of what it reads.
    """

    name: str
    processor: str
    reads: tuple[str, ...]
    columns: Mapping[str, str | None]
    keys: tuple[tuple[str, ...], ...]
    sql: str


@dataclass(frozen=True, slots=True)
class CompiledFlow:
    """A flow as one query.

    Attributes:
        sql: one SELECT in Spark's SQL, with a common table expression for each step.
        steps: the steps in order; the last one is the result.
        inputs: the tables that it reads.
    """

    sql: str
    steps: tuple[CompiledStep, ...]
    inputs: tuple[DerivedInput, ...]

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The columns of the result in order, as those of a step."""
        return self.steps[-1].columns


@dataclass(frozen=True, slots=True)
class _Source:
    """Something that a step can read; `readings` is how often it reads tables."""

    relation: FlowRelation
    readings: int
    step: int | None = None


def compile_flow(
    steps: Sequence[FlowStep], inputs: Mapping[str, DerivedInput], where: Place
) -> CompiledFlow:
    """Return the query of a flow, and the columns of its steps.

    Args:
        steps: the flow.
        inputs: the tables that it may read, by any name.
        where: `file:line:col` of a path below the flow, such as `(2, "filter", "condition")`.

    Raises:
        ConfigErrors: everything that is wrong: POLYNYA-TRF-040 to -054, and what expressions raise.
            A step that reads a wrong one is not looked at.
    """
    if len(steps) > MAX_STEPS:
        raise ConfigErrors([FLOW_TOO_LARGE(where=where(()), limit=f"{MAX_STEPS} steps")])
    return _Compiler(steps, inputs, where).compiled()


def tables_read(steps: Sequence[FlowStep]) -> dict[str, NodePath] | None:
    """The tables that a flow names, as it writes them, each with the path of its first place.

    None if its first step reads the only one there is. A name that an earlier step has is that
    step.
    """
    found: dict[str, NodePath] = {}
    named: set[str] = set()
    for number, step in enumerate(steps):
        for keys, name in _reads(step.settings):
            if name is None and not number:
                return None
            if name is not None and folded(name) not in named:
                found.setdefault(name, (number, step.processor, *keys))
        if step.settings.as_ is not None:
            named.add(folded(step.settings.as_))
    return found


def steps_behind(steps: Sequence[FlowStep | None], number: int) -> list[int]:
    """The numbers of a step and of those before it that it needs, in order.

    None is a step that is not known: of those before it none is followed.
    """
    found: set[int] = set()
    pending = [number]
    while pending:
        place = pending.pop()
        step = steps[place]
        if place in found:
            continue
        found.add(place)
        for _, name in _reads(step.settings) if step is not None else ():
            if name is None:
                pending += [place - 1] if place else []
                continue
            named = [
                one
                for one in range(place)
                if (other := steps[one]) is not None
                and other.settings.as_ is not None
                and folded(other.settings.as_) == folded(name)
            ]
            pending += named[-1:]
    return sorted(found)


class _Compiler:
    def __init__(
        self, steps: Sequence[FlowStep], inputs: Mapping[str, DerivedInput], where: Place
    ) -> None:
        self._steps = steps
        self._where = where
        self._errors: list[ConfigError] = []
        self._tables = {
            one.name: _Source(
                FlowRelation(one.name, (quote_path(*one.name.split(".")),), schema_of_input(one)), 1
            )
            for one in inputs.values()
        }
        self._inputs = {one.name: one for one in inputs.values()}
        self._aliases = {folded(name): one.name for name, one in inputs.items()}
        #: Numbers of steps so far by their folded names.
        self._named: dict[str, int] = {}
        #: None for a step with an error.
        self._made: list[_Source | None] = []
        self._read: set[int] = set()
        self._used: dict[str, None] = {}

    def compiled(self) -> CompiledFlow:
        names = self._names()
        results: list[CompiledStep] = []
        queries: list[Lines] = []
        size = 0
        for number, (step, name) in enumerate(zip(self._steps, names, strict=True)):
            made = self._step(number, step, name)
            source = None
            if made is not None:
                result, sources = made
                results.append(_compiled_step(name, step, result, sources))
                queries.append(result.lines)
                size += sum(map(len, result.lines))
                readings = sum(one.readings for one in sources)
                self._limits(number, step, result.schema, readings, size)
                lines = (quote(name),)
                source = _Source(FlowRelation(name, lines, result.schema), readings, number)
            self._made.append(source)
            if step.settings.as_ is not None:
                self._named[folded(name)] = number
        self._unused(names)
        self._result_names(names[-1])
        if self._errors:
            raise ConfigErrors(self._errors)
        inputs = tuple(self._inputs[name] for name in self._used)
        return CompiledFlow(_query(results, queries), tuple(results), inputs)

    def _names(self) -> list[str]:
        """What each step is called in the SQL: its `as`, else its processor and number."""
        taken = {part: name for name in self._tables for part in _parts(name)}
        for number, step in enumerate(self._steps):
            name = step.settings.as_
            if name is None:
                continue
            other = taken.get(folded(name))
            if other is not None:
                self._errors.append(
                    FLOW_STEP_NAME_TAKEN(
                        where=self._where((number, step.processor, "as")),
                        step=f"step {number + 1}",
                        name=shown(name),
                        other=other if other.startswith("step ") else f"the table {shown(other)}",
                    )
                )
            taken[folded(name)] = f"step {number + 1}"
        names = []
        for number, step in enumerate(self._steps):
            name = step.settings.as_ or f"{step.processor}_{number + 1}"
            while step.settings.as_ is None and folded(name) in taken:
                name += "_"
            names.append(name)
        return names

    def _step(
        self, number: int, step: FlowStep, name: str
    ) -> tuple[FlowStepResult, list[_Source]] | None:
        """A step and what it reads; None if it, or something that it reads, is wrong."""
        settings, processor = step.settings, step.processor
        label = (
            f"step {shown(name)}"
            if settings.as_ is not None
            else f"step {number + 1} (`{processor}`)"
        )
        scope = FlowStepScope((number, processor), label, self._where)
        sources = [self._source(number, scope, written, keys) for keys, written in _reads(settings)]
        sound = [source for source in sources if source is not None]
        result = None
        if len(sound) == len(sources):
            result = _result(scope, settings, [source.relation for source in sound])
        self._errors += scope.errors
        return None if result is None or scope.errors else (result, sound)

    def _source(
        self, number: int, scope: FlowStepScope, written: str | None, keys: NodePath
    ) -> _Source | None:
        """What a step reads; None if it is unknown or wrong."""
        if written is None:
            if number > 0:
                self._read.add(number - 1)
                return self._made[number - 1]
            if len(self._tables) == 1:
                return self._table(next(iter(self._tables)))
            scope.errors.append(
                FLOW_INPUT_UNKNOWN(
                    "the first step does not say which table it reads",
                    where=scope.where(),
                    fix=f"add `input`: {', '.join(sorted(self._tables)) or 'a table of `from`'}",
                )
            )
            return None
        name = folded(written)
        if name in self._named:
            before = self._named[name]
            self._read.add(before)
            return self._made[before]
        found = [one for one in self._tables if name in _parts(one)]
        if name in self._aliases:
            found = [self._aliases[name]]
        if len(found) == 1:
            return self._table(found[0])
        scope.errors.append(self._unknown(number, scope, written, found, scope.where(*keys)))
        return None

    def _unknown(
        self, number: int, scope: FlowStepScope, written: str, found: Sequence[str], where: str
    ) -> ConfigError:
        """The error of a name that is nothing that the step can read, or several tables."""
        if found:
            message = f"{scope.label} reads {shown(written)}, which may be {' or '.join(found)}"
            fix: str | None = "write the name with its schema"
            return FLOW_INPUT_UNKNOWN(message, where=where, fix=fix)
        names = [step.settings.as_ for step in self._steps]
        earlier = [name for name in names[:number] if name is not None]
        if any(name and folded(name) == folded(written) for name in names[number:]):
            fix = "move that step up: a step reads only those before it"
        else:
            fix = suggest(written, [*earlier, *self._tables])
        return FLOW_INPUT_UNKNOWN(where=where, step=scope.label, name=shown(written), fix=fix)

    def _table(self, name: str) -> _Source:
        self._used[name] = None
        return self._tables[name]

    def _limits(
        self, number: int, step: FlowStep, schema: FlowSchema, readings: int, size: int
    ) -> None:
        exceeded = (
            (len(schema.columns) > MAX_COLUMNS, f"{MAX_COLUMNS:,} columns in one step"),
            (readings > MAX_READINGS, f"{MAX_READINGS:,} readings of tables"),
            (size > MAX_CHARACTERS, f"{MAX_CHARACTERS:,} characters of SQL"),
        )
        for is_so, limit in exceeded:
            if is_so:
                # What follows would only be larger.
                where = self._where((number, step.processor))
                raise ConfigErrors([*self._errors, FLOW_TOO_LARGE(where=where, limit=limit)])

    def _unused(self, names: Sequence[str]) -> None:
        for number, step in enumerate(self._steps[:-1]):
            if number not in self._read:
                where = self._where((number, step.processor))
                self._errors.append(FLOW_STEP_UNUSED(where=where, step=shown(names[number])))

    def _result_names(self, name: str) -> None:
        """Collect an error for each column of the result whose name no table can have."""
        result = self._made[-1]
        number = len(self._steps) - 1
        where = self._where((number, self._steps[number].processor))
        for column in () if result is None else result.relation.schema.names:
            if (problem := column_problem(column)) is not None:
                step = f"step {shown(name)}"
                self._errors.append(FLOW_RESULT_NAME(where=where, step=step, problem=problem))


def _parts(name: str) -> set[str]:
    """How a table may be called: with its schema and without."""
    return {folded(name), folded(name.rpartition(".")[2])}


def _reads(settings: Processor) -> list[tuple[NodePath, str | None]]:
    """What a step reads: the setting, and the name in it; None for the step before."""
    match settings:
        case UnionStep():
            return [(("inputs", number), name) for number, name in enumerate(settings.inputs)]
        case JoinStep():
            return [(("input",), settings.input), (("with",), settings.with_)]
        case LookupStep():
            return [(("input",), settings.input), (("from",), settings.from_)]
        case _:
            return [(("input",), settings.input)]


_OF_ONE: Final[Mapping[type, Callable[[FlowStepScope, Any, FlowRelation], FlowStepResult]]] = {
    AggregateStep: processors.aggregated,
    CleanseStep: processors.cleansed,
    DedupeStep: processors.deduped,
    DeriveStep: processors.derived,
    ExplodeStep: processors.exploded,
    FillMissingStep: processors.filled,
    FilterStep: processors.filtered,
    PivotStep: processors.pivoted,
    RenameStep: processors.renamed,
    SelectStep: processors.selected,
    UnpivotStep: processors.unpivoted,
    WindowStep: processors.windowed,
}


def _result(
    scope: FlowStepScope, settings: Processor, inputs: Sequence[FlowRelation]
) -> FlowStepResult:
    match settings:
        case JoinStep():
            return joins.joined(scope, settings, *inputs)
        case LookupStep():
            return joins.looked_up(scope, settings, *inputs)
        case UnionStep():
            return joins.united(scope, settings, inputs)
        case _:
            return _OF_ONE[type(settings)](scope, settings, *inputs)


def _compiled_step(
    name: str, step: FlowStep, result: FlowStepResult, sources: Iterable[_Source]
) -> CompiledStep:
    return CompiledStep(
        name,
        step.processor,
        tuple(source.relation.name for source in sources),
        {column.name: column.type_text for column in result.schema.columns},
        tuple(tuple(sorted(key)) for key in result.schema.keys),
        "\n".join(result.lines),
    )


def _query(steps: Sequence[CompiledStep], queries: Sequence[Lines]) -> str:
    """The steps as common table expressions, and the columns of the last one."""
    lines: Lines = []
    for number, (step, query) in enumerate(zip(steps, queries, strict=True)):
        lines.append(f"{'), ' if number else 'WITH '}{quote(step.name)} AS (")
        lines += indented(query)
    last = steps[-1]
    result = select([quote(name) for name in last.columns], [quote(last.name)])
    return "\n".join([*lines, ")", *result])
