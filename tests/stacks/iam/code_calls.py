"""Which actions of AWS a piece of our code asks for, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

# Operations whose permission is not called like them (Service Authorization Reference).
_PERMISSIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectsV2": "s3:ListBucket",
}

_CALLED = re.compile(r"\.\s*(\w+)\s*\(")


@cache
def actions_called(*sources: Path) -> frozenset[str]:
    """The actions behind the calls of boto3 clients in these files, and in those of folders.

    A service counts when a client of it is made by its name, `client("s3", …)`; a call counts when
    it, or the paginator that is asked for, is called like an operation of such a service.
    """
    files = [
        file for path in sources for file in ([path] if path.is_file() else path.rglob("*.py"))
    ]
    texts = [file.read_text() for file in files]
    making = _calls(text for text in texts if "client(" in text)
    services = {service for call in making for service in _services(call)}
    actions = {
        f"{service}:{operation}": xform_name(operation)
        for service in services
        for operation in _model(service).operation_names
    }
    # To parse all of the runtime would take seconds: what names no operation calls none.
    known = {*actions.values(), "get_paginator"}
    asking = _calls(text for text in texts if not known.isdisjoint(_CALLED.findall(text)))
    names = {name for call in asking for name in _operations(call)}
    return frozenset(
        _PERMISSIONS.get(action, action) for action, name in actions.items() if name in names
    )


def _calls(texts: Iterable[str]) -> list[ast.Call]:
    return [
        node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
    ]


def _services(call: ast.Call) -> Iterator[str]:
    called = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    if called == "client" and call.args and isinstance(call.args[0], ast.Constant):
        yield str(call.args[0].value)


def _operations(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Attribute):
        yield call.func.attr
        if call.func.attr == "get_paginator" and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value)


@cache
def _model(service: str) -> botocore.model.ServiceModel:
    return botocore.session.get_session().get_service_model(service)
