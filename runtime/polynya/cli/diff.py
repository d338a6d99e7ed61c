"""`polynya diff`: how the effective settings of two targets differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polynya.cli.connections import setting_text
from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.model.documents.yaml import MapNode, Node, Plain, ScalarNode, node_at, position_of
from polynya.model.loader import LoadedProject, load_project

#: Settings of a catalog that are shown as they stand in the file: references.
_SECRETS = ("password", "credential", "token")


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value as a target has it; `where` is `file:line:col`, None for a default."""

    value: Plain
    where: str | None


def diff(first: str, second: str, /, *, context: Context) -> int:
    """Show how two targets differ: places, catalog, engine, connections, variables.

    Each setting is shown as the target has it, with its bindings, and with the line that it comes
    from. Secrets are compared as references, and none is read. `--bindings` has to name a folder,
    with a file for each target. Exit code 3 when something differs.

    For example: `polynya diff local prod`.

    Args:
        first: name of a target.
        second: name of another target.
    """
    folder = context.options.project
    projects = [load_project(folder, target) for target in (first, second)]
    before, after = (dict(_settings(project)) for project in projects)
    names = sorted(
        name
        for name in before.keys() | after.keys()
        if _value(before.get(name)) != _value(after.get(name))
    )
    width = max(len(first), len(second))
    for name in names:
        sides = ((first, before.get(name)), (second, after.get(name)))
        data = {
            "setting": name,
            "targets": {
                target: None if one is None else {"value": one.value, "where": one.where}
                for target, one in sides
            },
        }
        lines = [name, *(f"  {target:{width}}  {_text(one)}" for target, one in sides)]
        if name.startswith("variables."):
            variable = name.removeprefix("variables.")
            uses = [use for project in projects for use in project.variables.get(variable, ())]
            data["used"] = list(dict.fromkeys(uses))
            lines += [f"  used at {use}" for use in dict.fromkeys(uses)]
        context.output.result("diff.setting", data, "\n".join(lines))
    differ = {"first": first, "second": second, "settings": len(names)}
    context.output.result("diff", differ, None if names else "no difference")
    return ExitCode.CHANGES if names else ExitCode.OK


def _value(one: PlacedValue | None) -> Plain:
    return None if one is None else one.value


def _text(one: PlacedValue | None) -> str:
    if one is None or one.value is None:
        return "(not set)"
    return f"{setting_text(one.value)}  ({one.where or 'by default'})"


def _settings(project: LoadedProject) -> Iterator[tuple[str, PlacedValue]]:
    """Yield the settings that depend on the target, by name."""
    at = ("targets", project.target.name)
    document, file = project.project_document, project.project_file
    values = project.project.targets[at[1]].model_dump(
        mode="json", exclude={"catalog": set(_SECRETS)}
    )
    for path, value in _flat(values, ()):
        yield ".".join(path), PlacedValue(value, _place(document, file, (*at, *path)))
    for secret in _SECRETS:
        written = node_at(document, (*at, "catalog", secret))
        if isinstance(written, ScalarNode):
            place = _place(document, file, (*at, "catalog", secret))
            yield f"catalog.{secret}", PlacedValue(written.value, place)
    bindings = project.bindings
    for variable, text in bindings.variables.items():
        assert bindings.file is not None, "what is bound stands in a file"
        bound, where = bindings.file.document, bindings.file.shown_as
        place = _place(bound, where, ("variables", variable))
        yield f"variables.{variable}", PlacedValue(text, place)
    for connection, one in project.effective.items():
        for setting in one.settings:
            shown = PlacedValue(setting.value, setting.where)
            yield f"connections.{connection}.{setting.name}", shown


def _flat(value: Plain, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Plain]]:
    if not isinstance(value, dict):
        yield path, value
        return
    for key, one in value.items():
        yield from _flat(one, (*path, key))


def _place(document: Node, file: str, path: tuple[str, ...]) -> str | None:
    """Where a setting stands; None if it is not written."""
    for end in range(len(path), 0, -1):
        node = node_at(document, path[:end])
        if isinstance(node, MapNode):
            return None
        if node is not None:
            # A short form, such as `catalog: glue`, says what is below it.
            position = position_of(document, path[:end])
            return f"{file}:{position.line}:{position.column}"
    return None
