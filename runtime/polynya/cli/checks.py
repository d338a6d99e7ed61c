"""One check of `polynya doctor`: its outcome in a line, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from polynya.cli.exit_codes import ExitCode
from polynya.model.errors import PolynyaError

Status: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check; `exit_code` counts when it failed."""

    name: str
    status: Status
    detail: str
    fix: str | None = None
    exit_code: int = ExitCode.DEPENDENCY


def guarded(name: str, check: Callable[[], Check]) -> Check:
    """The outcome of a check, also when it raises."""
    try:
        return check()
    except PolynyaError as error:
        place = f" ({error.where})" if error.where else ""
        why = f" ({error.why})" if error.why else ""
        return Check(name, "fail", f"{error.message}{place}{why}", error.fix, error.exit_code)
