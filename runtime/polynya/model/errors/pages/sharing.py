"""Pages of nodes that share the work of a project, and of instances that AWS takes back."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-010",
        "the coordination place does not enforce conditions",
        "Nodes decide who does what by writes that succeed only if an object is as it was read, "
        "or does not exist yet. At its start a node tries that, and this store took a write whose "
        "condition did not hold. Use a store with conditional writes, such as Amazon S3 or a "
        "local folder, or run without `--coordination` on one node.",
    ),
    ErrorPage(
        "POLYNYA-AGT-011",
        "another process took the place of this node",
        "Two agents with one node id share a cluster, or this one was replaced while it was "
        "paused. The one that started last continues; its tables are safe, because each commit "
        "names its epoch. Give each node an id of its own (`--node-id`).",
    ),
    ErrorPage(
        "POLYNYA-AGT-012",
        "an object of the cluster cannot be read",
        "Nodes coordinate through small JSON objects. One that is damaged, or was written by a "
        "newer Polynya in a format that this one does not know, is reported and never written "
        "over. Upgrade the node; delete a damaged object by hand: the nodes write it again.",
    ),
    ErrorPage(
        "POLYNYA-AGT-013",
        "the records of who owns a unit contradict each other",
        "Each new owner of a unit has a higher epoch. Here an object of the cluster was deleted, "
        "set back or written by hand, or the store took a write that it should have refused. The "
        "node gives the unit up and claims it again in a higher epoch; tables stay right, because "
        "each commit is refused when the epoch of its table is not its own. Find out who writes "
        "below the coordination place; only agents may.",
    ),
    ErrorPage(
        "POLYNYA-AGT-014",
        "the coordination place refused a write whose condition held",
        "At its start a node tries conditional writes. One that had to succeed did not, although "
        "nobody else knows the object. A store may refuse for a moment while it is busy, so the "
        "node tries again with every turn. If it lasts, the store has no conditional writes that "
        "work: use Amazon S3 or a local folder.",
    ),
    ErrorPage(
        "POLYNYA-AGT-020",
        "no place to ask for Spot notices",
        "`--imds` is `auto` (ask the instance metadata service on an EC2 instance, nowhere else), "
        "`off`, or for tests the URL of a stand-in on a loopback address of this machine, such as "
        "http://127.0.0.1:1338.",
    ),
    ErrorPage(
        "POLYNYA-AGT-021",
        "the instance metadata service does not answer",
        "On an EC2 instance the agent asks the service every 5 seconds whether AWS is going to "
        "take the instance back. Without an answer the node works on; if it is interrupted, others "
        "take its work over when its lease has expired. Check that the process reaches "
        "169.254.169.254 with IMDSv2, or start the agent with `--imds off`.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-060",
        "the epoch that was granted is too low",
        "Coordination granted this node a unit of work with an epoch, and a table of it has seen "
        "that epoch in other hands, or a higher one. Nothing was written. Either another node has "
        "the work by now and this one did not know it yet, or a command such as `reload`, or a "
        "run without coordination, took the table over. The agent ends the job and looks up who "
        "has the work. If it still has it, it raises its epoch above that of the table and starts "
        "again: nothing has to be done. If it happens all the time, two clusters, or a cluster "
        "and `polynya run`, work on the same tables: end one of them.",
    ),
    ErrorPage(
        "POLYNYA-AGT-022",
        "an object of the cluster is changed all the time",
        "A request such as `polynya cluster drain` is an object that is written only if it has "
        "not changed since it was read. Another process changed it each time. Check the present "
        "requests with `polynya cluster status`, and look for another writer, such as a script in"
        " a loop.",
    ),
    ErrorPage(
        "POLYNYA-AGT-023",
        "something is asked of a unit already",
        "`polynya reload` and `polynya task recreate` write one object for each unit of work of a"
        " running cluster, which its owner deletes when it is done. While it exists, no other "
        "request is accepted. `polynya cluster tasks` shows its author, its time and what it "
        "waits for: a frozen cluster, a stopped task, a unit that no node has, or the step that "
        "runs. `polynya task withdraw` withdraws it.",
    ),
    ErrorPage(
        "POLYNYA-AGT-024",
        "a request to a unit cannot be executed",
        "The owner of the unit refused it: a landing has no table to reload, a task that "
        "discovers its datasets has none of that name, or `--as-of` is missing or not supported "
        "by the format. Nothing was changed, the unit continues, and the request is removed. "
        "`polynya cluster tasks` shows this outcome until the next request.",
    ),
    ErrorPage(
        "POLYNYA-AGT-050",
        "a cluster has more nodes than units of work",
        "One node at a time works on a unit, which is a dataset or a whole task, so the other "
        "nodes idle and cost money. Nothing is wrong with the data. Lower the `maximum` of the "
        "cluster, or its `minimum`; or leave it, if more tasks are to come.",
    ),
    ErrorPage(
        "POLYNYA-AGT-055",
        "a node has another configuration than the leader",
        "All nodes read the same configuration, seconds apart. This one has had other units of "
        "work than the leader for a minute: one of the two cannot read the configuration, or "
        "refuses a file that the other had accepted before it was broken. Work continues, and "
        "each unit is on a node that knows it; a deleted unit continues on nodes that have not "
        "read the deletion. Check the events `configuration.unread` and `configuration.broken` of"
        " both nodes, and fix the file or the access.",
    ),
)
