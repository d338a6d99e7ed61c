"""Errors of queries at the API server (SRV-100 to 104)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConflictError, OperationError

QUERY_TOO_LONG: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-100",
    title="a query that takes longer than it may",
    message="the query was stopped after {seconds} s",
    state="nothing was changed",
    fix="ask for fewer rows, or give more time with `seconds`, up to 300",
    page="The server stops a query that runs for longer than its `seconds`, 60 by default. Name "
    "the columns that you need and filter by keys or partitions, or answer the question with "
    "`polynya query`, which has no limit of time.",
)
QUERY_TOO_LARGE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-101",
    title="an answer that takes more memory than it may",
    message="the rows of the answer take more than {most} MB",
    state="nothing was changed",
    fix="ask for fewer rows or columns, or give a larger `megabytes`, up to 256",
    page="The server ends a query whose rows take more memory than its `megabytes`, 64 by default, "
    "as soon as that many have come.",
)
QUERY_CANCELLED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-102",
    title="a query that was cancelled",
    message="the query was cancelled",
    state="nothing was changed",
    page="Somebody cancelled the query with `DELETE /api/v1/queries/ID`, or the client that asked "
    "closed its connection.",
)
QUERIES_OF_PERSON: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-103",
    title="too many queries of one person",
    message="{most} of your queries are running already",
    state="nothing was read",
    fix="wait for one of them, or cancel it: `GET /api/v1/queries` lists them",
    page="So that one person does not keep all others from asking, a server with an `access.yml` "
    "answers few queries of each person at a time. Others are refused with status 429.",
)
QUERY_ID_TAKEN: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-104",
    title="a query whose id another running query has",
    message="a query with the id {name} is running",
    state="nothing was read",
    fix="choose another id, or give none",
    page="The `id` of a query cancels it, so that two running queries never share one.",
)
