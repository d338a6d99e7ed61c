"""`athena` of a stage file: how the lakehouse is queried."""

from __future__ import annotations

from pydantic import Field

from polynya.model.fields import Frozen


class AthenaSettings(Frozen):
    """The Athena workgroup of a stage."""

    enabled: bool = Field(default=True, description="Whether there is one; it costs by query.")
    scan_limit_gb: int = Field(
        default=100, ge=1, le=100_000, description="A query that scans more is ended."
    )
    keep_results_days: int = Field(
        default=30, ge=1, le=3650, description="How long results can be fetched."
    )
