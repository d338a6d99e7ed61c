"""Whether a connection works: what its database can capture, or the first pages of its API."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.capture.source import ConnectionFinding
from polynya.formats.errors import UnreadableFileError
from polynya.model.config.http_source import Resource
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.clock import SystemClock
from polynya.store.vault import vault
from polynya.streams.rest.api import STEP_PATIENCE_SECONDS, Api, open_api
from polynya.streams.rest.incremental import begin_at
from polynya.streams.rest.pages import Asked, page_of, request_address
from polynya.streams.rest.position import FIRST


def connection_findings(project: LoadedProject, name: str) -> list[ConnectionFinding]:
    """Findings for and against using a connection, without duplicates. Raises PolynyaError."""
    if name in project.apis:
        return api_findings(project, name)
    # Start-up time: drivers of databases.
    from polynya.engine.commands.captures import capture_findings

    return capture_findings(project, name)


def api_findings(project: LoadedProject, name: str) -> list[ConnectionFinding]:
    """Findings for and against reading an API over a connection.

    The first page of each resource that needs no other one is asked for. Where no task has one, it
    is the base address, and any answer but a refused login is right.
    """
    try:
        api = open_api(project.apis[name], vault(), SystemClock())
    except PolynyaError as error:
        return [_wrong("", error)]
    sources = [task.source.http for task in project.landings if task.source.http is not None]
    resources = [
        one
        for source in sources
        if source.connection == name
        for one in source.resources.items()
        if one[1].parent is None
    ]
    if not resources:
        return [_base(api)]
    return [finding for one in resources for finding in _first_page(api, *one)]


def _first_page(api: Api, name: str, resource: Resource) -> Iterator[ConnectionFinding]:
    since = None if resource.incremental is None else begin_at(resource.incremental, None)
    url = request_address(api.connection, resource, resource.path, FIRST, since)
    try:
        answer = api.get(url, patience=STEP_PATIENCE_SECONDS)
        if not 200 <= answer.status < 300:
            raise api.refusal(url, answer)
        page = page_of(api.connection, resource, Asked(FIRST, url, answer))
    except PolynyaError as error:
        yield _wrong(f"{name}: ", error)
    except UnreadableFileError as error:
        fix = "correct `record_path` or the paths of `pagination`"
        yield ConnectionFinding(
            ok=False, what=f"{name}: its answer cannot be read: {error}", fix=fix
        )
    else:
        more = "" if page.following is None else ", and there are more pages"
        what = f"{name} answers {answer.status} with {len(page.records):,} records{more}"
        yield ConnectionFinding(ok=True, what=what)


def _base(api: Api) -> ConnectionFinding:
    url = api.connection.url
    try:
        answer = api.get(url, patience=STEP_PATIENCE_SECONDS)
        if answer.status in {401, 403}:
            raise api.refusal(url, answer)
    except PolynyaError as error:
        return _wrong("", error)
    return ConnectionFinding(
        ok=True, what=f"the API answers {answer.status}, and no task reads a resource of it"
    )


def _wrong(where: str, error: PolynyaError) -> ConnectionFinding:
    why = f": {error.why}" if error.why else ""
    return ConnectionFinding(ok=False, what=f"{where}{error.message}{why}", fix=error.fix or "")
