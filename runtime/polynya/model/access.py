"""Reading `access.yml` of a project."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from polynya.model.config.access import ACCESS_FILES, AccessDocument
from polynya.model.documents.files import parse_file, read_file
from polynya.model.documents.problems import Problem, located
from polynya.model.documents.yaml import ScalarNode, node_at
from polynya.model.error_catalogue.configuration import SECRET_IN_FILE
from polynya.model.errors import ConfigError, ConfigErrors

_SECRET: Final = ("oidc", "client_secret")
_REFERENCE: Final = re.compile(r"\$\{(env|file|secret):[^}]+\}")


def access_file(directory: Path) -> Path | None:
    """The file of a project folder, None if it has none."""
    found = (directory / name for name in ACCESS_FILES)
    return next((path for path in found if path.is_file()), None)


def read_access(
    directory: Path, environment: Mapping[str, str] | None = None
) -> AccessDocument | None:
    """The access document of a project folder, None if it has none.

    Raises ConfigErrors: with everything that is wrong with it.
    """
    path = access_file(directory)
    return None if path is None else parse_access(path, environment)


def parse_access(path: Path, environment: Mapping[str, str] | None = None) -> AccessDocument:
    """The access document of a file. Raises as `read_access`."""
    errors: list[ConfigError] = []
    variables = os.environ if environment is None else environment
    file = read_file(path, path.name, variables, errors, lambda place: place == _SECRET)
    found = parse_file(file, AccessDocument, "access", errors) if file is not None else None
    if file is not None:
        secret = node_at(file.document, _SECRET)
        if isinstance(secret, ScalarNode) and not _REFERENCE.fullmatch(str(secret.value)):
            error = SECRET_IN_FILE(
                what="the secret of a client", fix="write `client_secret: ${secret:NAME}`"
            )
            errors.extend(located([Problem(_SECRET, error)], file.document, file.shown_as))
    if found is None or errors:
        raise ConfigErrors(errors)
    return found


def access_errors(directory: Path) -> list[ConfigError]:
    """Everything that is wrong with the access document of a project folder."""
    try:
        read_access(directory)
    except ConfigErrors as errors:
        return list(errors.errors)
    return []
