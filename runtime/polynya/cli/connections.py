"""What commands say about the connections of a target: origins, references, reachability."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from polynya.cli.checks import Check, guarded
from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.model.connection_kinds import fits
from polynya.model.connections import EffectiveSetting, Reason, TargetConnection
from polynya.model.documents.references import LATE_PROVIDERS, late_references
from polynya.model.documents.yaml import NodePath, Plain
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.store.reach import reach
from polynya.store.vault import vault

_REASONS: Final[Mapping[Reason, str]] = {
    "connection": "the connection",
    "target": "its `targets`",
    "bindings": "the bindings of the target",
}


def tell_connections(context: CommandContext, project: LoadedProject, *, origins: bool) -> None:
    """Report each connection with its settings; people see them with `origins`."""
    for name, one in sorted(project.effective.items()):
        data = {
            "connection": name,
            "of_type": one.connection.type,
            "settings": [
                {
                    "name": setting.name,
                    "value": setting.value,
                    "where": setting.where,
                    "from": setting.reason,
                }
                for setting in one.settings
            ],
        }
        lines = [f"connection {name} ({one.connection.type})", *map(_line, one.settings)]
        text = "\n".join(lines) if origins else None
        context.output.result("validation.connection", data, text)


def _line(setting: EffectiveSetting) -> str:
    value = setting_text(setting.value)
    return f"  {setting.name}: {value}\n      {setting.where}, from {_REASONS[setting.reason]}"


def setting_text(value: Plain) -> str:
    """A value of a setting for people."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {setting_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(setting_text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def missing_references(project: LoadedProject) -> Iterator[str]:
    """Yield the references of connections that this machine cannot resolve.

    Entries of Secrets Manager are not asked for.
    """
    for name, one in sorted(project.effective.items()):
        for setting, why in _missing(one, asks=False):
            yield f"{setting.where}: connection {name}, {setting.name}: {why}"


def _missing(one: TargetConnection, *, asks: bool) -> Iterator[tuple[EffectiveSetting, str]]:
    """Yield the references that cannot be resolved; with `asks`, Secrets Manager is asked too."""
    for setting in one.settings:
        value = _value_at(one.values, setting.path)
        for path, below in _below(value, setting.path):
            why = _unresolved(below, asks=asks) if fits(path, one.kind.references) else None
            if why is not None:
                yield setting, why


def _value_at(value: Plain | Mapping[str, Plain], path: NodePath) -> Plain:
    for part in path:
        value = value.get(str(part)) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else value


def _below(value: Plain, path: NodePath) -> Iterator[tuple[NodePath, Plain]]:
    """Yield a value, and all values below it."""
    yield path, value
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _below(one, (*path, key))


def _unresolved(value: Plain, *, asks: bool) -> str | None:
    """Why a value cannot be read now; None if it can, or if nothing was asked."""
    if isinstance(value, dict):
        variable = str(value.get("env"))
        known = variable in os.environ
        return None if known else f"the environment variable {shown(variable)} is not set here"
    if not isinstance(value, str):
        return None
    providers = late_references(value)
    if not providers or (not asks and providers != {LATE_PROVIDERS[0]}):
        return None
    try:
        vault().open(value)
    except PolynyaError as error:
        return error.why or error.message
    return None


def connection_checks(project: LoadedProject, *, servers_only: bool) -> Iterator[Check]:
    """Whether each connection works; with `servers_only` not databases and the like."""
    for name, one in sorted(project.effective.items()):
        if one.kind.servers is not None or not servers_only:
            yield guarded(f"connection {name}", partial(check_connection, project, name))


def check_connection(project: LoadedProject, name: str) -> Check:
    """Whether a connection can be reached, and its references be resolved. Raises PolynyaError."""
    one, title = project.effective[name], f"connection {name}"
    if one.kind.servers is None:
        return _findings(project, name)
    wrong = [f"{setting.name}: {why}" for setting, why in _missing(one, asks=True)]
    servers = one.kind.servers(one.connection)
    wrong += [problem for problem in map(unreachable, servers) if problem is not None]
    if wrong:
        fix = "correct the address, or let this machine through: names, routes, firewalls"
        return Check(title, "fail", "; ".join(wrong), fix, ExitCode.DEPENDENCY)
    return Check(title, "ok", f"{one.connection.type}: {', '.join(servers) or 'of the target'}")


def unreachable(server: str) -> str | None:
    """Why a server cannot be reached; None if it can."""
    try:
        reach(server)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return f"{shown(server)} does not answer: {reason or type(error).__name__}"
    return None


def _findings(project: LoadedProject, name: str) -> Check:
    # Start-up time: drivers of databases, and the HTTP client.
    from polynya.engine.commands.connections import connection_findings

    findings = connection_findings(project, name)
    wrong = [finding for finding in findings if not finding.ok]
    if wrong:
        detail = f"{len(wrong)} of {len(findings)} are wrong; the first: {wrong[0].what}"
        fix = f"`polynya connection test {name}`"
        return Check(f"connection {name}", "fail", detail, fix, ExitCode.FAILED)
    return Check(
        f"connection {name}", "ok", f"{findings[0].what}; {len(findings)} of {len(findings)} right"
    )
