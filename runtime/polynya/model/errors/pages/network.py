"""Pages of the network agent and of what people ask of a cluster's group."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-060",
        "EC2 Auto Scaling refuses a request of the network agent",
        "The network agent carries out `polynya cluster stop`, `start`, `roll` and `scale` on the "
        "Auto Scaling group that is called as the cluster. AWS said no, and why. The group is as "
        "it was. For AccessDenied, deploy the gateway stack of this version: its role has the "
        "rights for the clusters of its stage only.",
    ),
    ErrorPage(
        "POLYNYA-AGT-061",
        "a command for a cluster was refused or failed",
        "`--wait` waited for the end of the command. `refused`: nothing was requested from the "
        "group. `failed`: the group did not reach the requested state, or not in time; the reason"
        " has its state. `polynya cluster commands` lists the requests. Nodes that ended released"
        " their work first; no row is lost.",
    ),
    ErrorPage(
        "POLYNYA-AGT-062",
        "no network agent took the command in time",
        "Commands for a group are objects that the network agent of the stage takes within ten "
        "seconds. An hour later none had: it does not run, or does not reach the bucket. The "
        "command is refused if it is found now. `polynya cluster status` says when the network "
        "agent was heard last. Look at its log and its alarm, or deploy the gateway stack.",
    ),
    ErrorPage(
        "POLYNYA-AGT-063",
        "a package of the network agent cannot be used",
        "`polynya cluster pin-agent` names the code that network agents run, by its SHA-256. The "
        "object of that name in the coordination place is another file, is not an archive, or has"
        " no code of Polynya. Nothing of it was run, and the previous version continues. Pin the "
        "file `code.tar` that `make package` made, or go back with `polynya cluster unpin-agent`.",
    ),
)
