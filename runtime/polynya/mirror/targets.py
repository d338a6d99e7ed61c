"""Which statements and which session a mirror has: those of the target that its file names."""

from __future__ import annotations

from polynya.mirror.databricks import DatabricksSession, DatabricksStatements
from polynya.mirror.redshift import RedshiftSession, RedshiftStatements
from polynya.mirror.snowflake import SnowflakeSession, SnowflakeStatements
from polynya.mirror.statements import MirrorSession, Opened, TargetStatements
from polynya.model.config.mirror import (
    ConnectedMirror,
    DatabricksMirrorTarget,
    RedshiftMirrorTarget,
    SnowflakeTarget,
)
from polynya.model.config.server_connection import (
    DatabricksConnection,
    RedshiftConnection,
    SnowflakeConnection,
)
from polynya.store.clock import Clock


def statements_of(task: ConnectedMirror) -> TargetStatements:
    """The statements of a mirror's target. Asks nothing."""
    match task.target.place:
        case SnowflakeTarget() as target:
            return SnowflakeStatements(task, target)
        case RedshiftMirrorTarget() as target:
            return RedshiftStatements(target)
        case DatabricksMirrorTarget() as target:
            return DatabricksStatements(task, target)


def session_of(
    task: ConnectedMirror, opened: Opened, *, region: str | None, clock: Clock
) -> MirrorSession:
    """A session with a mirror's target.

    `region` is that of AWS where the connection names none. Raises what the sessions raise.
    """
    match task.target.place, task.account:
        case SnowflakeTarget() as target, SnowflakeConnection() as account:
            return SnowflakeSession(task.name, target, account, opened)
        case RedshiftMirrorTarget() as target, RedshiftConnection() as account:
            return RedshiftSession(task.name, target, account, region, clock)
        case DatabricksMirrorTarget() as target, DatabricksConnection() as account:
            return DatabricksSession(task.name, target, account, opened, clock)
    raise AssertionError("the loader accepts a connection of the target's type only")
