"""`polynya cluster`: nodes that share the work of a project."""

from __future__ import annotations

from polynya.cli.cluster_group import commands, pin_agent, roll, scale, start, stop, unpin_agent
from polynya.cli.cluster_moves import drain, freeze, move, undrain, unfreeze, unmove
from polynya.cli.cluster_status import list_, nodes, status, tasks
from polynya.cli.context import verb_app

app = verb_app("cluster", "Nodes that share work: show, move, stop, scale.")
app.command(list_, name="list")
for verb in (status, nodes, tasks, drain, undrain, freeze, unfreeze, move, unmove):
    app.command(verb)
for group_verb in (stop, start, roll, scale, commands, pin_agent, unpin_agent):
    app.command(group_verb)
