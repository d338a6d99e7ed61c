"""Choosing the target to run in, and where its folders and its catalog are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from polynya.model.errors import ConfigError
from polynya.model.identifiers import shown
from polynya.model.problems import suggest
from polynya.model.project import Project, Target

DEFAULT_TARGET: Final = "local"
CATALOG_FILE: Final = "catalog.db"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target with absolute folders and a complete catalog."""

    name: str
    landing: Path
    warehouse: Path
    catalog_type: str
    catalog_uri: str
    catalog_properties: Mapping[str, str] = field(default_factory=dict)
    maven_repository: str | None = None


def choose_target(
    project: Project, name: str | None, directory: Path, project_file: str
) -> ResolvedTarget:
    """Return the named target, else `local`, else the only one; raises ConfigError."""
    targets = project.targets
    if name is None and DEFAULT_TARGET not in targets and len(targets) > 1:
        raise ConfigError(
            "POLYNYA-CFG-017",
            "the project has several targets and none is called `local`",
            where=project_file,
            fix=f"choose one with `--target`: {', '.join(sorted(targets))}",
        )
    chosen = name or (DEFAULT_TARGET if DEFAULT_TARGET in targets else next(iter(targets)))
    if chosen not in targets:
        raise ConfigError(
            "POLYNYA-CFG-017",
            f"there is no target {shown(chosen)}",
            where=project_file,
            fix=suggest(chosen, list(targets)),
        )
    return _resolve(chosen, targets[chosen], directory.resolve(), project_file)


def _resolve(name: str, target: Target, directory: Path, project_file: str) -> ResolvedTarget:
    landing = _folder(target.landing, directory, f"{project_file}: targets.{name}.landing")
    warehouse = _folder(target.warehouse, directory, f"{project_file}: targets.{name}.warehouse")
    if landing == warehouse:
        raise ConfigError(
            "POLYNYA-CFG-016",
            "landing and warehouse are the same folder",
            where=f"{project_file}: targets.{name}",
            fix="give each a folder of its own",
        )
    return ResolvedTarget(
        name=name,
        landing=landing,
        warehouse=warehouse,
        catalog_type=target.catalog.type,
        catalog_uri=target.catalog.uri or f"jdbc:sqlite:{warehouse / CATALOG_FILE}",
        catalog_properties=dict(target.catalog.properties),
        maven_repository=target.maven_repository,
    )


def _folder(text: str, directory: Path, where: str) -> Path:
    if _URI.match(text):
        raise ConfigError(
            "POLYNYA-CFG-018",
            f"{shown(text)} is not a local folder; other stores are not supported yet",
            where=where,
            fix="name a folder, relative to the project or absolute",
        )
    if "\0" in text:
        raise ConfigError("POLYNYA-CFG-011", "the path holds a NUL character", where=where)
    return (directory / Path(text).expanduser()).resolve()
