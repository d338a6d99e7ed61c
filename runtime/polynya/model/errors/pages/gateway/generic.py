"""Pages of the gateway (GTW) for databases that Debezium alone loads and follows."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-055",
        "how the way to a database is secured is not said",
        "TLS is on by default, and for this type of database it is in settings of its driver that "
        "Polynya does not know. Nothing was sent. Say them in `engine.properties` of the "
        "connection, as the connector's documentation has them.",
    ),
    ErrorPage(
        "POLYNYA-GTW-052",
        "such a database is not loaded without its changes",
        "SQL Server, Oracle, Db2 and MongoDB are loaded by Debezium, which follows the changes "
        "after that. `update_method: reload` is not for them.",
    ),
    ErrorPage(
        "POLYNYA-GTW-053",
        "jars of a connection are not there",
        "For SQL Server, Oracle, Db2 and MongoDB you bring Debezium's connector and the driver of "
        "the database, whose licences are their own. `engine.jars` of the connection names files, "
        "or folders of them, below the folder of connectors of the machine: "
        "`/opt/polynya/connectors`, or the one that the variable `POLYNYA_CONNECTORS` of the "
        "environment names. Jars elsewhere are not loaded. Nothing was captured.",
    ),
)
