"""`polynya cluster`: nodes that share the work of a project."""

from __future__ import annotations

from polynya.cli.cluster_group import commands, pin_agent, roll, scale, start, stop, unpin_agent
from polynya.cli.cluster_requests import command, move, unmove
from polynya.cli.cluster_status import list_, nodes, status, tasks
from polynya.cli.context import command_group

app = command_group("cluster", "Nodes that share work: show, move, stop, scale.")
app.command(list_, name="list")
for read_command in (status, nodes, tasks):
    app.command(read_command)
for name in ("drain", "undrain", "freeze", "unfreeze"):
    app.command(command(name))
for command_function in (move, unmove, stop, start, roll, scale, commands, pin_agent, unpin_agent):
    app.command(command_function)
