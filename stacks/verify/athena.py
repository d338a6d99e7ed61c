"""How many rows a live view has, asked as a user asks: by Athena."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stacks.verify.run import Clock, StepError, until
from stacks.verify.throwaway import NAME

_WORKGROUP: Final = f"polynya-{NAME}"
_NOT_THERE: Final = ("TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "does not exist", "COLUMN_NOT_FOUND")


def rows(client: Callable[[str], Any], clock: Clock, view: str) -> int | None:
    """Rows of a view, or None when it is not there yet.

    Raises:
        StepError: the query failed for another reason.
    """
    athena = client("athena")
    query = athena.start_query_execution(
        QueryString=f"SELECT count(*) FROM {view}", WorkGroup=_WORKGROUP
    )["QueryExecutionId"]

    def ended() -> dict[str, Any] | None:
        answer = athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"]
        status: dict[str, Any] = answer
        return status if status["State"] in {"SUCCEEDED", "FAILED", "CANCELLED"} else None

    status = until(clock, f"the query of {view}", 300, ended, every=1)
    if status["State"] == "SUCCEEDED":
        answer = athena.get_query_results(QueryExecutionId=query)
        return int(answer["ResultSet"]["Rows"][1]["Data"][0]["VarCharValue"])
    reason = str(status.get("StateChangeReason", ""))
    if any(text in reason for text in _NOT_THERE):
        return None
    raise StepError(f"{view}: Athena says {reason}")
