"""One consequence of a changed configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: Who has to act: `polynya migrate` ("apply", its former name), only the next run, or somebody who
#: decides; "nobody" needs to.
Action: TypeAlias = Literal["apply", "run", "decide", "nobody"]


@dataclass(frozen=True, slots=True)
class Change:
    """One consequence. `kind` is a stable name, `what` differs, `means` says it for the data.

    `destructive`: something that can be queried now will be gone.
    """

    kind: str
    what: str
    means: str
    action: Action
    destructive: bool = False
