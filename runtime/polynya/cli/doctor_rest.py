"""`polynya doctor` for a REST catalog: reach, login, views, conditional commits, credentials."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from polynya.cli.checks import Check, guarded
from polynya.engine.errors import as_polynya
from polynya.model.config.catalog import RestAccess
from polynya.model.config.target import ResolvedTarget
from polynya.model.loader import LoadedProject


def rest_checks(project: LoadedProject) -> Iterator[Check]:
    """One check for what the catalog says of itself, and one for what it does."""
    target, access = project.target, project.target.rest
    assert access is not None, "the catalog is behind REST"
    reached = guarded("catalog", partial(_reach, target, access))
    yield reached
    # Start-up time: PyIceberg.

    schemas = sorted(project.internal_schemas)
    if reached.status != "fail" and schemas:
        yield guarded("catalog commits", partial(_commits, target, access, schemas[0]))


def _reach(target: ResolvedTarget, access: RestAccess) -> Check:
    # Start-up time: PyIceberg.
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.check import refuse_unusable
    from polynya.lake.warehouse.rest_catalog import asked, open_rest_catalog

    client = open_rest_catalog(target, CATALOG)
    with asked(access):
        schemas = len(client.list_namespaces())
    refuse_unusable(target, CATALOG)
    found = f"{access.text}: answers, schemas: {schemas}"
    if not client.holds_views:
        fix = "other engines see no views there; `polynya views` prints them as SQL"
        return Check("catalog", "warn", f"{found}; it holds no views", fix)
    return Check("catalog", "ok", f"{found}, holds views")


def _commits(target: ResolvedTarget, access: RestAccess, schema: str) -> Check:
    # Start-up time: PyIceberg.
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.check import lies_in
    from polynya.lake.warehouse.probe import probe_commits

    try:
        found = probe_commits(target, CATALOG, schema)
    except Exception as error:
        # Arrow has errors of its own for what a store says.
        raise as_polynya(error) from error
    said = "a table was made, written, read, dropped; a commit on an old snapshot was refused"
    warehouse = target.warehouse
    inside = (
        lies_in(found.location, warehouse)
        if isinstance(warehouse, Path)
        else found.location.startswith(f"{warehouse}/")
    )
    if not inside:
        fix = "write the place where the catalog keeps its tables as `warehouse` of the target"
        return Check("catalog commits", "warn", f"{said}; it lay at {found.location}", fix)
    if access.vended_credentials and not found.has_vended:
        fix = "let the catalog vend credentials, or remove `vended_credentials`"
        detail = f"{said}, without credentials from the catalog"
        return Check("catalog commits", "warn", detail, fix)
    vended = ", with credentials from the catalog" if access.vended_credentials else ""
    return Check("catalog commits", "ok", said + vended)
