"""Instances of templates become the tasks that they stand for.

No value becomes SQL or structure: the settings are filled in after they were parsed, `:name` in SQL
becomes one literal, and what `${name}` puts inside of a text is part of an identifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from polynya.model.config.template import (
    ParameterValue,
    TaskTemplate,
    TemplateInstance,
    TemplateParameter,
)
from polynya.model.documents.files import DocumentFile, parse_kinds
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.documents.yaml import MapNode, NodePath, Plain, position_of
from polynya.model.error_catalogue.templates import (
    TEMPLATE_PARAMETER_MISPLACED,
    TEMPLATE_PARAMETER_UNKNOWN,
    TEMPLATE_TWICE,
    TEMPLATE_UNKNOWN,
    TEMPLATE_VALUE_WRONG,
)
from polynya.model.errors import ConfigError
from polynya.model.names import is_name, literal, shown
from polynya.model.project_derived import names_query_file, read_query

_WHOLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,38}(\.[0-9]{1,38})?", re.ASCII)
#: What a BIGINT holds at most, and one more.
_MOST: Final = 2**63
#: Tokens of Spark's SQL in which `:name` is text, and `:name` elsewhere.
_MARKER: Final = re.compile(
    r"""
      (?P<text>
        (?<!\w)[rR](?:'[^']*'|"[^"]*")
        | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
        | --(?:\\\n|[^\r\n])*
        | /\*(?:(?!/\*|\*/).)*\*/
      )
    | (?P<open>['"`]|/\*)
    | (?<![:\w`]):(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class _Template:
    task: TaskTemplate
    file: DocumentFile


@dataclass(frozen=True, slots=True)
class _Filling:
    """The parameters of a template with the values of one instance."""

    template: str
    parameters: Mapping[str, TemplateParameter]
    values: Mapping[str, ParameterValue]
    directory: Path


def expanded(
    files: Iterable[DocumentFile], directory: Path, errors: list[ConfigError]
) -> Iterator[DocumentFile]:
    """Yield the files of tasks; in place of an instance its template with its values.

    The document of such a file is that of the template, so that errors have its lines, and
    `shown_as` names both files. Templates themselves are not yielded.
    """
    templates: dict[str, _Template] = {}
    others: list[tuple[DocumentFile, TemplateInstance | None]] = []
    for file in files:
        kind = file.value.get("kind") if isinstance(file.value, dict) else None
        if kind == "template":
            template = parse_kinds(file, {kind: TaskTemplate}, errors)
            found = [] if template is None else list(_wrong_defaults(template))
            errors.extend(located(found, file.document, file.shown_as))
            if template is None or not file.sound or found:
                continue
            known = templates.setdefault(template.name, _Template(template, file))
            if known.file is not file:
                error = TEMPLATE_TWICE(template=shown(template.name), other=known.file.shown_as)
                errors.extend(located([Problem(("name",), error)], file.document, file.shown_as))
        elif kind == "instance":
            instance = parse_kinds(file, {kind: TemplateInstance}, errors)
            others += [] if instance is None or not file.sound else [(file, instance)]
        else:
            others.append((file, None))
    for file, instance in others:
        made = file if instance is None else _expand(instance, file, templates, directory)
        if isinstance(made, DocumentFile):
            yield made
        else:
            errors.extend(made)


def both_files(instance: str, template: str) -> str:
    """How errors name the place of an instance; line and column are of its template."""
    return f"{instance}, template {template}"


def _expand(
    instance: TemplateInstance,
    file: DocumentFile,
    templates: Mapping[str, _Template],
    directory: Path,
) -> DocumentFile | list[ConfigError]:
    template = templates.get(instance.uses)
    if template is None:
        fix = suggest(instance.uses, sorted(templates)) if templates else "add it to `tasks/`"
        error = TEMPLATE_UNKNOWN(template=shown(instance.uses), fix=fix)
        return located([Problem(("uses",), error)], file.document, file.shown_as)
    wrong = list(_wrong_values(instance, template))
    if wrong:
        return located(wrong, file.document, file.shown_as)
    parameters = template.task.parameters
    values = {
        name: one.default for name, one in parameters.items() if one.default is not None
    } | instance.with_
    both = both_files(file.shown_as, template.file.shown_as)
    node = template.file.document
    assert isinstance(node, MapNode)
    body = node.entries["task"][1]
    assert isinstance(body, MapNode)
    problems: list[Problem] = []
    filling = _Filling(template.task.name, parameters, values, directory)
    value = _filled(template.task.task, filling, (), problems)
    if problems:
        return located(problems, body, both)
    assert isinstance(value, dict)
    head = {"apiVersion": instance.apiVersion, "name": instance.name}
    entries = {key: node.entries[key] for key in head} | body.entries
    return replace(
        template.file,
        shown_as=both,
        document=replace(body, entries=entries),
        value={**head, **value},
        instance=(file.shown_as, template.file.shown_as),
    )


def _wrong_defaults(template: TaskTemplate) -> Iterator[Problem]:
    """Yield the defaults that do not have the type of their parameter."""
    for name, parameter in template.parameters.items():
        wanted = None if parameter.default is None else _why_wrong(parameter, parameter.default)
        if wanted is not None:
            problem = f"the default does not have the type `{parameter.type}`"
            error = TEMPLATE_VALUE_WRONG(problem=problem, fix=f"write {wanted}")
            yield Problem(("parameters", name, "default"), error)


def _wrong_values(instance: TemplateInstance, template: _Template) -> Iterator[Problem]:
    """Yield the values of an instance that its template does not know, lacks or cannot take."""
    parameters = template.task.parameters
    for name, value in instance.with_.items():
        path: NodePath = ("with", name)
        parameter = parameters.get(name)
        if parameter is None:
            error = TEMPLATE_PARAMETER_UNKNOWN(
                template=shown(instance.uses),
                parameter=shown(name),
                fix=suggest(name, list(parameters)),
            )
            yield Problem(path, error)
        elif (wanted := _why_wrong(parameter, value)) is not None:
            problem = f"{shown(name)} is of type `{parameter.type}` ({_at(template, name)})"
            yield Problem(path, TEMPLATE_VALUE_WRONG(problem=problem, fix=f"write {wanted}"))
    for name, parameter in parameters.items():
        if parameter.default is None and name not in instance.with_:
            problem = f"{shown(name)} has no value ({_at(template, name)})"
            error = TEMPLATE_VALUE_WRONG(problem=problem, fix=f"add `{name}` below `with`")
            yield Problem(("with",) if instance.with_ else (), error)


def _at(template: _Template, parameter: str) -> str:
    """Where a template declares a parameter."""
    at = position_of(template.file.document, ("parameters", parameter))
    return f"{template.file.shown_as}:{at.line}:{at.column}"


def _why_wrong(parameter: TemplateParameter, value: ParameterValue) -> str | None:
    """What is expected instead of a value; None for a right one."""
    match parameter.type:
        case "name":
            right, wanted = isinstance(value, str) and is_name(value), "a name, such as `eu_west`"
        case "text":
            right, wanted = isinstance(value, str), "a text, such as `EU`"
        case "integer":
            right = (
                isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST
            )
            wanted = "a whole number, such as `10`"
        case "decimal":
            right = not isinstance(value, bool) and _DECIMAL.fullmatch(str(value)) is not None
            wanted = 'a number without exponent, in quotes where it is long, such as `"0.25"`'
        case "boolean":
            right, wanted = isinstance(value, bool), "`true` or `false`"
        case "date":
            right, wanted = _is_date(value), 'a date, such as `"2026-12-31"`'
    return None if right else wanted


def _is_date(value: ParameterValue) -> bool:
    if not isinstance(value, str) or not re.fullmatch(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value, re.ASCII
    ):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _filled(value: Plain, filling: _Filling, path: NodePath, problems: list[Problem]) -> Plain:
    """The settings with the values of an instance."""
    if isinstance(value, dict):
        for key in value:
            if _WHOLE.search(key):
                problem = f"{shown(key)} is the name of a setting"
                _misplaced(problem, "write the name itself", path, problems)
        return {key: _filled(one, filling, (*path, key), problems) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, filling, (*path, n), problems) for n, one in enumerate(value)]
    if not isinstance(value, str):
        return value
    whole = _WHOLE.fullmatch(value)
    if whole is not None:
        return _whole(whole[1], filling, path, problems)
    text = _with_values(_with_names(value, filling, path, problems), filling, path, problems)
    if path[-1:] == ("sql",) and names_query_file(text) and not problems:
        try:
            text = read_query(text, filling.directory)
        except ConfigError as error:
            problems.append(Problem(path, error))
            return text
        text = _with_values(_with_names(text, filling, path, problems), filling, path, problems)
    return text


def _whole(
    name: str, filling: _Filling, path: NodePath, problems: list[Problem]
) -> ParameterValue | None:
    """The value of a parameter that is the whole of a setting."""
    parameter = _known(name, filling, path, problems)
    if parameter is None:
        return None
    if parameter.type == "text":
        fix = f"write `:{name}` in SQL; a setting takes names and numbers"
        _misplaced(f"{shown(name)} is a text, and would be a setting", fix, path, problems)
    return filling.values[name]


def _with_names(text: str, filling: _Filling, path: NodePath, problems: list[Problem]) -> str:
    """The text with its parameters of type `name`."""

    def fill(found: re.Match[str]) -> str:
        parameter = _known(found[1], filling, path, problems)
        if parameter is None:
            return found[0]
        if parameter.type != "name":
            problem = f"{shown(found[1])} is a value, and stands inside of a text"
            _misplaced(problem, f"write `:{found[1]}` in SQL", path, problems)
        return str(filling.values[found[1]])

    return _WHOLE.sub(fill, text)


def _with_values(text: str, filling: _Filling, path: NodePath, problems: list[Problem]) -> str:
    """The SQL with a literal in place of each `:name` outside of quotes and comments."""
    opened: list[str] = []

    def fill(found: re.Match[str]) -> str:
        if found["open"]:
            opened.append(found["open"])
        if found["name"] is None:
            return found[0]
        parameter = _known(found["name"], filling, path, problems)
        if parameter is None:
            return found[0]
        if opened:
            problem = f"before {shown(found[0])} begins a quote or comment that does not end"
            _misplaced(
                problem, "close it; comments inside of comments are not read", path, problems
            )
        return _as_sql(parameter, filling.values[found["name"]])

    return _MARKER.sub(fill, text)


def _as_sql(parameter: TemplateParameter, value: ParameterValue) -> str:
    """A value as a literal, or a name as an identifier."""
    match parameter.type:
        case "text":
            return literal(str(value))
        case "date":
            return f"DATE {literal(str(value))}"
        case "boolean":
            return str(value).lower()
        case "integer" | "decimal":
            # `- -1` would begin a comment without a space.
            return f"({value})" if str(value).startswith("-") else str(value)
        case "name":
            return str(value)


def _known(
    name: str, filling: _Filling, path: NodePath, problems: list[Problem]
) -> TemplateParameter | None:
    parameter = filling.parameters.get(name)
    if parameter is None:
        error = TEMPLATE_PARAMETER_UNKNOWN(
            template=shown(filling.template),
            parameter=shown(name),
            fix=suggest(name, list(filling.parameters)),
        )
        problems.append(Problem(path, error))
    return parameter


def _misplaced(problem: str, fix: str, path: NodePath, problems: list[Problem]) -> None:
    problems.append(Problem(path, TEMPLATE_PARAMETER_MISPLACED(problem=problem, fix=fix)))
