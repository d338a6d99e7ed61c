"""`polynya cluster`: nodes that share the work of a project."""

from __future__ import annotations

from polynya.cli.context import verb_app
from polynya.cli.sharing.drain import drain, undrain
from polynya.cli.sharing.freeze import freeze, unfreeze
from polynya.cli.sharing.groups.commands import commands
from polynya.cli.sharing.groups.group import roll, scale, start, stop
from polynya.cli.sharing.groups.pin import pin_agent, unpin_agent
from polynya.cli.sharing.list import list_
from polynya.cli.sharing.move import move, unmove
from polynya.cli.sharing.nodes import nodes
from polynya.cli.sharing.status import status
from polynya.cli.sharing.tasks import tasks

app = verb_app("cluster", "Nodes that share work: show, move, stop, scale.")
app.command(list_, name="list")
for verb in (status, nodes, tasks, drain, undrain, freeze, unfreeze, move, unmove):
    app.command(verb)
for group_verb in (stop, start, roll, scale, commands, pin_agent, unpin_agent):
    app.command(group_verb)
