"""A capture process whose Debezium trusts another authority: `-m tests.capture.distrustful CA`.

Its own sessions trust the one of the settings, so that what refuses the server is Debezium.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.postgresql.database import PostgresDatabase
from polynya.capture.source import SourceTable
from polynya.capture.worker import __main__ as worker


def _trusting(kind: type[Any], ca: str) -> None:
    real = kind.engine_properties

    def engine_properties(
        database: Any, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        own, database._access = database._access, replace(database._access, ca=ca)
        try:
            return dict(real(database, tables, without))
        finally:
            database._access = own

    kind.engine_properties = engine_properties


if __name__ == "__main__":
    for each in (MysqlDatabase, PostgresDatabase):
        _trusting(each, sys.argv[1])
    code = worker.main()
    sys.stdout.flush()
    os._exit(code)
