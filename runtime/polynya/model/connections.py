"""The connections of a project as a target has them, and the tasks that name them.

Precedence, the weakest first: the file of the connection, its `targets.TARGET`, the bindings of the
target. `decided` is the only function that decides; everything else asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from pydantic import ValidationError

from polynya.model.bindings import ProjectReader, TargetBindings
from polynya.model.config.connection import Connection, ProjectFile
from polynya.model.config.http_connection import HttpConnection
from polynya.model.config.server_connection import AnyConnection
from polynya.model.connection_kinds import (
    ALL_REFERENCES,
    CONNECTION_KINDS,
    HEAD,
    ConnectionKind,
    Secrecy,
    fits,
    override_of,
)
from polynya.model.documents.files import (
    DocumentFile,
    document_files,
    parse_open,
    unresolved_problem,
)
from polynya.model.documents.problems import Problem, located, shape_problems, suggest
from polynya.model.documents.yaml import (
    ListNode,
    MapNode,
    Node,
    NodePath,
    Plain,
    ScalarNode,
    dotted,
    node_at,
    position_of,
)
from polynya.model.error_catalogue.bindings import CONNECTION_CONFLICT
from polynya.model.error_catalogue.capture import CAPTURE_SETTINGS_CONFLICT, CONNECTION_MISSING
from polynya.model.error_catalogue.configuration import (
    DUPLICATE_NAME,
    MISSING_KEY,
    SECRET_IN_FILE,
    UNUSABLE_NAME,
    WRONG_VALUE,
)
from polynya.model.error_catalogue.mirrors import MIRROR_LOGIN_UNCLEAR
from polynya.model.errors import ConfigError
from polynya.model.names import is_name, shown
from polynya.model.project_parts import (
    CONNECTION_FOLDER,
    entries,
    entry,
    is_certificate,
    is_written_out,
    lacks_reference,
    with_files,
    with_own_ca,
    words_hold_secret,
)
from polynya.model.stream_checks import target_problems

Reason: TypeAlias = Literal["connection", "target", "bindings"]


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of a connection from one place: `values` stand below `path` of `file`."""

    reason: Reason
    file: DocumentFile
    path: NodePath
    values: Mapping[str, Plain]


@dataclass(frozen=True, slots=True)
class Decision:
    """The value of one setting, the layer it comes from, and the weaker ones that it replaces."""

    value: Plain
    layer: Layer
    over: tuple[Layer, ...] = ()


def decided(layers: Sequence[Layer], merged: Sequence[str] = ()) -> dict[NodePath, Decision]:
    """Decide each setting: the strongest layer that says something wins.

    Args:
        layers: the weakest first.
        merged: settings that are mappings, of which each key is decided by itself.

    Returns:
        By `(NAME,)`, or by `(NAME, KEY)` of the merged ones. A null of a stronger layer says
        nothing.
    """
    found: dict[NodePath, Decision] = {}
    for at, layer in enumerate(layers):
        for name, value in layer.values.items():
            if value is None and at:
                continue
            whole = name not in merged or not isinstance(value, dict)
            parts = {(name,): value} if whole else _parts(name, value)
            for path, part in parts.items():
                before = found.get(path)
                over = () if before is None else (*before.over, before.layer)
                found[path] = Decision(part, layer, over)
    return found


def _parts(name: str, value: Plain) -> dict[NodePath, Plain]:
    return {(name, key): one for key, one in value.items()} if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting of a connection as a target has it, to be shown.

    `value` is as written, with its references, where the setting may hold a secret. `where` is
    `file:line:col`.
    """

    path: NodePath
    value: Plain
    where: str
    reason: Reason

    @property
    def name(self) -> str:
        """The setting as people write it, such as `properties.client.id`."""
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class TargetConnection:
    """A connection as a target has it.

    Args:
        name: of its file.
        kind: what is known of its type.
        connection: the settings.
        values: the same as plain values, for the task that names it.
        settings: the same, to be shown.
        unused: `file:line:col` of each override of this target that the bindings replace.
    """

    name: str
    kind: ConnectionKind
    connection: AnyConnection
    values: Mapping[str, Plain]
    settings: tuple[EffectiveSetting, ...]
    unused: tuple[str, ...]


Connections: TypeAlias = Mapping[str, TargetConnection | None]


def read_connections(
    directory: Path,
    target: str | None,
    targets: Collection[str] | None,
    reader: ProjectReader,
) -> dict[str, TargetConnection | None]:
    """The connections by name; None for one that has something wrong.

    Args:
        directory: the project folder.
        target: the chosen target, None if it is unknown.
        targets: names of all targets, None if they are unknown.
        reader: reads their files, and takes what is wrong.
    """
    bindings, errors = reader.bindings, reader.errors
    connections: dict[str, TargetConnection | None] = {}
    for path in document_files(directory / CONNECTION_FOLDER):
        shown_as = f"{CONNECTION_FOLDER}/{path.name}"
        name = PurePosixPath(path.name).stem
        if not is_name(name) or name in connections:
            errors.append(_misnamed(shown_as, name, known=name in connections))
            continue
        others = of_other_targets(target)
        file = reader.read(path, shown_as, _is_read_at_use, others, stays_unresolved=True)
        connections[name] = None
        if file is not None:
            one = _ConnectionFile(name, file, target, bindings, directory, errors)
            connections[name] = one.read(targets)
    for name in bindings.connections:
        if name not in connections and bindings.file is not None:
            fix = suggest(name, sorted(connections)) or f"add `connections/{name}.yml`"
            problem = Problem(
                ("connections", name), CONNECTION_MISSING(fix=fix, connection=shown(name))
            )
            file = bindings.file
            errors.extend(located([problem], file.document, file.shown_as))
    return connections


def of_other_targets(target: str | None) -> Callable[[NodePath], bool]:
    """Tell of a path whether it is below `targets` and not that of a target."""
    return lambda path: path[:1] == ("targets",) and path[1:2] != (target,)


def _is_read_at_use(path: NodePath) -> bool:
    """Tell whether a value of a connection may be a reference that is read at its use."""
    below = path[2:] if path[:1] == ("targets",) else path
    return fits(below, ALL_REFERENCES)


#: Codes of errors about a whole file that lacks a key.
_MISSING: Final = frozenset(
    {MISSING_KEY.code, CAPTURE_SETTINGS_CONFLICT.code, MIRROR_LOGIN_UNCLEAR.code}
)


@dataclass(frozen=True, slots=True)
class _ConnectionFile:
    """One file of a connection, with what a target says of it."""

    name: str
    file: DocumentFile
    target: str | None
    bindings: TargetBindings
    directory: Path
    errors: list[ConfigError]

    def read(self, targets: Collection[str] | None) -> TargetConnection | None:
        kind = self._kind()
        if kind is None or not self._is_sound(kind, targets):
            return None
        layers = list(self._layers())
        decisions = decided(layers, kind.merged)
        if self._lacks_references(decisions):
            return None
        connection = self._connection(kind, decisions, layers[0])
        if connection is None:
            return None
        names = {path: decision for path, decision in decisions.items() if path[0] not in HEAD}
        return TargetConnection(
            name=self.name,
            kind=kind,
            connection=connection,
            values={key: one for key, one in _nested(names).items() if one is not None},
            settings=tuple(_setting(kind, path, one) for path, one in sorted(names.items())),
            unused=tuple(
                _where(layer, path)
                for path, one in names.items()
                for layer in one.over
                if layer.reason == "target"
            ),
        )

    def _kind(self) -> ConnectionKind | None:
        value = self.file.value
        written = value.get("type") if isinstance(value, dict) else None
        if isinstance(written, str) and written in CONNECTION_KINDS:
            return CONNECTION_KINDS[written]
        # The error of a missing key or of a file that is no mapping is that of any kind.
        if not isinstance(written, str):
            parse_open(self.file, Connection, self.errors)
            return None
        fix = suggest(written, sorted(CONNECTION_KINDS))
        error = WRONG_VALUE(f"{shown(written)} is not the type of a connection", fix=fix)
        self._report([Problem(("type",), error)])
        return None

    def _report(self, problems: Sequence[Problem], layer: Layer | None = None) -> None:
        file, path = (self.file, ()) if layer is None else (layer.file, layer.path)
        below = [Problem((*path, *one.path), one.error) for one in problems]
        self.errors.extend(located(below, file.document, file.shown_as))

    def _is_sound(self, kind: ConnectionKind, targets: Collection[str] | None) -> bool:
        """Whether the file is right by itself, but for keys that the bindings may add."""
        assert isinstance(self.file.value, dict), "a file with a type is a mapping"
        value: Plain = self.file.value
        overrides = self.file.value.get("targets")
        for missing in self.file.unresolved:
            # What this target needs of them is checked with its other layers.
            value = _without(value, missing.path)
        problems = list(written_secrets(kind, self.file.document))
        try:
            found = list(kind.problems(kind.model.model_validate(value)))
        except ValidationError as error:
            found = list(shape_problems(error, kind.model, value))
        # Other layers may add a key; what is missing then is said with them.
        problems += [one for one in found if one.path or one.error.code not in _MISSING]
        if targets is not None and isinstance(overrides, dict):
            problems += target_problems(overrides, targets)
        self._report(problems)
        return self.file.sound and not problems

    def _layers(self) -> Iterator[Layer]:
        """What is said of the connection, the weakest first."""
        value = self.file.value
        assert isinstance(value, dict), "a file with a type is a mapping"
        yield Layer("connection", self.file, (), {k: v for k, v in value.items() if k != "targets"})
        overrides = value.get("targets")
        mine = overrides.get(self.target) if isinstance(overrides, dict) and self.target else None
        if isinstance(mine, dict):
            yield Layer("target", self.file, ("targets", str(self.target)), mine)
        bound = self.bindings.connections.get(self.name)
        if bound is not None and self.bindings.file is not None:
            yield Layer("bindings", self.bindings.file, ("connections", self.name), bound)

    def _connection(
        self, kind: ConnectionKind, decisions: Mapping[NodePath, Decision], base: Layer
    ) -> AnyConnection | None:
        """The settings of the target, None if something is wrong with them."""
        before = len(self.errors)
        bound = self.bindings.connections.get(self.name)
        if bound is not None:
            self._check_bindings(kind, bound)
        if len(self.errors) > before:
            return None
        value = _nested(decisions)
        try:
            model: Any = kind.model.model_validate(value)
        except ValidationError as error:
            for problem in shape_problems(error, kind.model, value):
                self._report_decided(problem, decisions, base)
            return None
        for problem in kind.problems(model):
            self._report_decided(problem, decisions, base)
        if len(self.errors) > before:
            return None
        return self._with_files(model, decisions)

    def _lacks_references(self, decisions: Mapping[NodePath, Decision]) -> bool:
        """Whether a setting of the target has a reference without a value, which is reported."""
        lacking = [
            missing
            for path, decision in decisions.items()
            for missing in self.file.unresolved
            if decision.layer.file is self.file
            and missing.path[: len(decision.layer.path) + len(path)]
            == (*decision.layer.path, *path)
        ]
        problems = [unresolved_problem(missing) for missing in lacking]
        self.errors.extend(located(problems, self.file.document, self.file.shown_as))
        return bool(lacking)

    def _report_decided(
        self, problem: Problem, decisions: Mapping[NodePath, Decision], base: Layer
    ) -> None:
        """Report a problem where the setting comes from."""
        decision = decisions.get(problem.path[:2]) or decisions.get(problem.path[:1])
        self._report([problem], base if decision is None else decision.layer)

    def _check_bindings(self, kind: ConnectionKind, bound: Mapping[str, Plain]) -> None:
        assert self.bindings.file is not None, "what is bound stands in a file"
        document = self.bindings.file.document
        place = ("connections", self.name)
        layer = Layer("bindings", self.bindings.file, place, bound)
        override = override_of(kind)
        problems = list(_written_below(kind, node_at(document, place)))
        try:
            override.model_validate(dict(bound))
        except ValidationError as error:
            problems += shape_problems(error, override, dict(bound))
        outside = self.bindings.outside is not None
        lacking = [name for name in kind.address if name not in bound]
        if outside and lacking and any(_is_login(kind, path) for path in _keys(bound)):
            message = (
                "bindings outside the project bind the login of this connection and not its "
                "address, so an edit of the project could send the login elsewhere"
            )
            alone = CONNECTION_CONFLICT(message, fix=f"also bind `{lacking[0]}`")
            problems.append(Problem((), alone))
        self._report(problems, layer)

    def _with_files(self, model: Any, decisions: Mapping[NodePath, Decision]) -> AnyConnection:
        """The connection with the places of its certificates."""
        connection: AnyConnection = model
        if isinstance(connection, HttpConnection):
            return with_own_ca(connection, self.directory)
        if not isinstance(connection, Connection):
            return connection
        ca, outside = connection.tls.ca, self.bindings.outside
        from_bindings = ("tls",) in decisions and decisions[("tls",)].layer.reason == "bindings"
        if ca is not None and outside is not None and from_bindings and ca.startswith("./"):
            name = ca.removeprefix("./")
            if "/" not in name and is_certificate(name):
                tls = connection.tls.model_copy(update={"ca": ProjectFile(outside / name)})
                return connection.model_copy(update={"tls": tls})
        return with_files(connection, self.directory)


def _keys(values: Mapping[str, Plain]) -> Iterator[NodePath]:
    """Yield the paths of settings, and of the keys of those that are mappings."""
    for name, value in values.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, key) for key in value)


def _is_login(kind: ConnectionKind, path: NodePath) -> bool:
    """Whether a setting is a secret, or tells who logs in."""
    return kind.secrecy(path) is not None or (len(path) == 1 and fits(path, kind.references))


def _nested(decisions: Mapping[NodePath, Decision]) -> dict[str, Plain]:
    """The settings as one document."""
    value: dict[str, Plain] = {}
    for path, decision in decisions.items():
        name = str(path[0])
        if len(path) == 1:
            value[name] = decision.value
            continue
        parts = value.setdefault(name, {})
        assert isinstance(parts, dict), "a merged setting is a mapping in all layers"
        parts[str(path[1])] = decision.value
    return value


def written_secrets(kind: ConnectionKind, document: Node) -> Iterator[Problem]:
    """Yield secrets that are written out in the file of a connection."""
    yield from _written_below(kind, document)
    for target, override in entries(entry(document, "targets")):
        for problem in _written_below(kind, override):
            yield Problem(("targets", target, *problem.path), problem.error)


def _written_below(kind: ConnectionKind, node: Node | None) -> Iterator[Problem]:
    for path, value in _scalars(node, ()):
        secrecy = kind.secrecy(path)
        if secrecy is None:
            continue
        name = str(path[-1])
        if _HOLDS[secrecy](value):
            what = "a password" if name == "password" else "a secret"
            example = f'{name}: "${{env:NAME}}"' if path[:1] != ("password",) else _PASSWORD
            yield Problem(path, SECRET_IN_FILE(what=what, example=example))


#: Whether a value is or holds a secret that is written out.
_HOLDS: Final[Mapping[Secrecy, Callable[[Node], bool]]] = {
    "whole": is_written_out,
    "in words": words_hold_secret,
    "in part": lacks_reference,
}
_PASSWORD: Final = "password: {env: DB_PASSWORD}"  # noqa: S105


def _scalars(node: Node | None, path: NodePath) -> Iterator[tuple[NodePath, Node]]:
    """Yield the values below a node, except those of `targets`."""
    if isinstance(node, MapNode):
        for key, value in entries(node):
            if path or key != "targets":
                yield from _scalars(value, (*path, key))
    elif isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from _scalars(item, (*path, index))
    elif node is not None:
        yield path, node


def _setting(kind: ConnectionKind, path: NodePath, decision: Decision) -> EffectiveSetting:
    layer = decision.layer
    value = decision.value
    node = node_at(layer.file.document, (*layer.path, *path))
    places = [below for below, _ in _scalars(node, path)]
    if any(kind.secrecy(one) is not None or fits(one, kind.references) for one in places):
        # Never the value: it may be what an environment variable holds.
        value = _as_written(node)
    return EffectiveSetting(path, value, _where(layer, path), layer.reason)


def _as_written(node: Node | None) -> Plain:
    if isinstance(node, MapNode):
        return {key: _as_written(value) for key, value in entries(node)}
    if isinstance(node, ListNode):
        return [_as_written(item) for item in node.items]
    return node.value if isinstance(node, ScalarNode) else None


def _where(layer: Layer, path: NodePath) -> str:
    position = position_of(layer.file.document, (*layer.path, *path))
    return f"{layer.file.shown_as}:{position.line}:{position.column}"


def _misnamed(shown_as: str, name: str, *, known: bool) -> ConfigError:
    if known:
        message = f"connection {shown(name)} is already defined"
        return DUPLICATE_NAME(message, where=shown_as, fix="remove one of the files")
    fix = "name the file with A-Z a-z 0-9 _, not starting with a digit"
    return UNUSABLE_NAME(where=shown_as, what="connection name", name=shown(name), fix=fix)


def unused_settings(
    connections: Mapping[str, TargetConnection],
    bindings: TargetBindings,
    named: Collection[str],
    uses: Collection[str],
) -> Iterator[str]:
    """Yield `file:line:col: why` of each setting of the target that has no effect.

    Args:
        connections: those that are right.
        bindings: of the target.
        named: the connections that tasks name.
        uses: the variables that files name.
    """
    for one in connections.values():
        for where in one.unused:
            yield f"{where}: the bindings of the target replace it"
    file = bindings.file
    if file is None:
        return
    if bindings.replaced is not None:
        yield f"{bindings.replaced}: {file.shown_as} is in force instead"
    for kind, names, used, why in (
        ("connections", bindings.connections, named, "no task names this connection"),
        ("variables", bindings.variables, uses, "no file names this variable"),
    ):
        for name in names:
            if name not in used:
                at = position_of(file.document, (kind, name))
                yield f"{file.shown_as}:{at.line}:{at.column}: {why}"


_SLOTS: Final = {
    kind.slot: (type_, kind) for type_, kind in CONNECTION_KINDS.items() if kind.slot is not None
}


def connection_names(file: DocumentFile) -> Iterator[str]:
    """Yield the connections that a task names instead of a server."""
    for _, slot in _slots(file.value, ()):
        name = slot.get("connection")
        if isinstance(name, str):
            yield name


def with_servers(
    file: DocumentFile, connections: Connections, errors: list[ConfigError]
) -> DocumentFile | None:
    """A task with the settings of the connections that it names at their places.

    None when that is not possible: what is wrong with the task goes to `errors`, and a wrong
    connection has reported its errors itself.
    """
    value, problems, wrong = file.value, [], False
    for path, slot in list(_slots(file.value, ())):
        name = slot.get("connection")
        if not isinstance(name, str) or path[-1] not in _SLOTS:
            continue
        found = list(_slot_problems(path, slot, name, connections))
        problems += found
        connection = connections.get(name)
        if found or connection is None:
            wrong = True
            continue
        value = _replaced(value, path, _filled(slot, connection))
    errors.extend(located(problems, file.document, file.shown_as))
    return None if wrong else replace(file, value=value)


def _slots(value: Plain, path: NodePath) -> Iterator[tuple[NodePath, dict[str, Plain]]]:
    """Yield the places of a task that may name a connection."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _slots(item, (*path, index))
    if not isinstance(value, dict):
        return
    for key, below in value.items():
        here = (*path, key)
        in_source = len(here) == 2 and here[0] == "source"
        if isinstance(below, dict) and (in_source or key == "schema_registry"):
            yield here, below
        else:
            yield from _slots(below, here)


def _slot_problems(
    path: NodePath, slot: Mapping[str, Plain], name: str, connections: Connections
) -> Iterator[Problem]:
    """Yield why a connection cannot stand at a place of a task."""
    wanted, kind = _SLOTS[str(path[-1])]
    if name not in connections:
        fix = suggest(name, sorted(connections)) or f"add `connections/{name}.yml`"
        yield Problem((*path, "connection"), CONNECTION_MISSING(fix=fix, connection=shown(name)))
        return
    connection = connections[name]
    if connection is None:
        return
    if connection.kind is not kind:
        type_ = connection.connection.type
        message = f"{shown(name)} is of type {type_}, and `{path[-1]}` needs one of type {wanted}"
        fix = "name another connection"
        yield Problem((*path, "connection"), CONNECTION_CONFLICT(message, fix=fix))
        return
    own = {kind.inside} if kind.inside else set(kind.model.model_fields) - HEAD - {*kind.merged}
    for key in slot:
        if key in own:
            message = f"the connection {shown(name)} says `{key}`, so the task cannot"
            yield Problem((*path, key), CONNECTION_CONFLICT(message))
    for key in kind.merged:
        mine, theirs = slot.get(key), connection.values.get(key)
        for each in _both(mine, theirs):
            message = f"the connection {shown(name)} already sets {shown(each)}"
            yield Problem((*path, key, each), CONNECTION_CONFLICT(message))


def _both(mine: Plain, theirs: Plain) -> list[str]:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return [key for key in mine if key in theirs]
    return []


def _filled(slot: Mapping[str, Plain], connection: TargetConnection) -> dict[str, Plain]:
    """The settings of a place with those of its connection."""
    kind, values = connection.kind, connection.values
    if kind.inside is not None:
        return {**slot, kind.inside: dict(values)}
    filled: dict[str, Plain] = {**slot, **values}
    for key in kind.merged:
        mine, theirs = slot.get(key), values.get(key)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            filled[key] = {**theirs, **mine}
    return filled


def _without(value: Plain, path: NodePath) -> Plain:
    """A document without what stands at a path."""
    if not isinstance(value, dict) or path[0] not in value:
        return value
    kept = {name: one for name, one in value.items() if name != path[0]}
    return (
        kept if len(path) == 1 else {**kept, str(path[0]): _without(value[str(path[0])], path[1:])}
    )


def _replaced(value: Plain, path: NodePath, new: Plain) -> Plain:
    """A document with another value at a path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {k: _replaced(one, rest, new) if k == first else one for k, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, rest, new) if i == first else one for i, one in enumerate(value)]
    return value
