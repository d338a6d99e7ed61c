"""Pages of clusters: nodes, gossip, network agent, engines, configuration bucket, stages."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorPage

CLUSTER_PAGES: Final = (
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


ENGINE_PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-070",
        "a job in AWS cannot reach folders of this machine",
        "A task, or the target, says `engine: {mode: emr_serverless}` or `{mode: glue}`, and its "
        "landing zone, its warehouse or the configuration is in a folder of this machine. Put "
        "them on S3 and start the agent with `--config s3://BUCKET/PREFIX`, or use another "
        "engine. Nothing was submitted.",
    ),
    ErrorPage(
        "POLYNYA-AGT-071",
        "a run that the agent submitted failed",
        "EMR Serverless, Glue or a child process of the agent ran the work of a unit, and the run"
        " ended with an error; the message contains the service's answer. Its log is where the "
        "service writes logs, for a process in `jobs/` of the agent's work folder. Committed "
        "steps stay, and the agent submits the unit again after a pause.",
    ),
    ErrorPage(
        "POLYNYA-AGT-072",
        "another owner works on the unit",
        "A run of a higher epoch works on the unit, or a run of this node met its commits. "
        "Nothing of this node was written. The agent looks up the owner of the unit, and "
        "continues if it still is the owner.",
    ),
    ErrorPage(
        "POLYNYA-AGT-073",
        "a process for a job cannot be started",
        "A task with an engine other than the agent's own works in a child process, and the "
        "system refused to start it: it is short of memory or processes. The agent retries.",
    ),
    ErrorPage(
        "POLYNYA-AGT-074",
        "the configuration has no such unit",
        "`polynya run --unit` was started for a dataset that the task no longer has: its file was"
        " edited after the agent submitted the run. The agent submits the present file.",
    ),
    ErrorPage(
        "POLYNYA-AGT-076",
        "a job would run code that the node does not name",
        "`entry_point` and `environment` of `engine: {mode: emr_serverless}` are code that runs "
        "with the role of the job. Whoever writes tasks chooses among the places that the stage "
        "file names (`code` of `emr_serverless`), or the variable `POLYNYA_JOB_CODE` of the "
        "agent: objects in S3, or prefixes that end with `/`. Nothing was submitted.",
    ),
    ErrorPage(
        "POLYNYA-AGT-075",
        "Glue did not stop a run",
        "The agent no longer has the unit, or ends, and asked Glue to stop its run. Glue answered"
        " with an error, and the run continues. The agent retries. A commit of that run is "
        "refused as soon as another owner has taken the table over.",
    ),
)


GOSSIP_PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-040",
        "the place in the workload stream was lost",
        "A node read the stream too seldom, or its shards were changed. It goes on with the "
        "newest records, and looks at the store, which holds the truth. Nothing is to be done.",
    ),
    ErrorPage(
        "POLYNYA-AGT-041",
        "the workload stream is asked more often than it answers",
        "A shard of Kinesis answers five reads a second, of all nodes together. Nodes ask half as "
        "often, and less often after a refusal. When it lasts, something else reads the stream "
        "too, or several clusters share it: give each a stream of its own.",
    ),
    ErrorPage(
        "POLYNYA-AGT-042",
        "there is no such workload stream",
        "The stream that `--stream` names was not found in the region of the target. Nodes do not "
        "hear each other's load; who owns what is decided in the store, so work goes on. Create "
        "the stream, or name the right one: a node that finds it again uses it by itself.",
    ),
    ErrorPage(
        "POLYNYA-AGT-043",
        "the folder of the workload stream cannot be used",
        "Nodes of a project without Kinesis tell each other their state by small files. The "
        "folder for them cannot be read or written. Work goes on without.",
    ),
)


NETWORK_PAGES: Final = (
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


BUCKET_PAGES: Final = (
    ErrorPage(
        "POLYNYA-BKT-001",
        "another push came first",
        "Somebody pushed while this push or this reading was under way. The pointer is moved only"
        " if it is as it was read, so that nothing of the losing push is in force; its bundle "
        "lies unused in the bucket. Check the other push with `polynya config diff`, then push "
        "again.",
    ),
    ErrorPage(
        "POLYNYA-BKT-002",
        "a push would lose edits by hand",
        "Files in the bucket were edited by hand, and this folder has neither the edits nor ever "
        "saw them. Nothing was pushed. `polynya config pull` brings the edits home; "
        "`--overwrite-edits` pushes over them.",
    ),
    ErrorPage(
        "POLYNYA-BKT-003",
        "a pull would overwrite local changes",
        "The files named were changed in this folder and in the bucket. Nothing was written. Fix "
        "them by hand with `polynya config diff`, or let `--overwrite-local` take those of the "
        "bucket.",
    ),
    ErrorPage(
        "POLYNYA-BKT-004",
        "the bucket's own objects are damaged",
        "`pushed.json` or the bundle that it names cannot be read, or a bundle's hash is not its "
        "name: something other than Polynya wrote there. Running nodes keep what they read last. "
        "Restore the version before of that object (the bucket keeps old versions), or delete "
        "`pushed.json` and push again with `--overwrite-edits`.",
    ),
    ErrorPage(
        "POLYNYA-BKT-005",
        "not used as configuration",
        "An object below `current/` has a name that no file of a project has, is more than a "
        "project may hold (2,000 files, 32 MB together), or cannot be read; or a project is too "
        "large to be pushed. An object is left out, and all others count.",
    ),
    ErrorPage(
        "POLYNYA-BKT-006",
        "no configuration there",
        "The target names no place with `config`, or nothing was pushed there yet. Set "
        "`targets.NAME.config` to `s3://BUCKET/PREFIX` or a folder, then `polynya config push`.",
    ),
)


STAGE_PAGES: Final = (
    ErrorPage(
        "POLYNYA-STG-001",
        "a stage that is not there, or not called so",
        "Each file in `config/` but `pipeline.yml` is a stage, and its `name` is the name of the "
        "file. The pipeline names stages that exist. Nothing was synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-002",
        "settings of a stage contradict each other",
        "Settings for something new are given together with something that exists, a list has a "
        "member twice or too few, there is only one Availability Zone, or a key or stream is in "
        "another region than the stage. Nothing was synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-003",
        "networks that overlap or do not fit",
        "The network of a stage overlaps that of another stage or a connected network, which no "
        "route could tell apart; its subnets do not fit into it; or they are too small for their "
        "endpoints and nodes. A VPC cannot be resized later: choose with room. Nothing was "
        "synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-004",
        "the package of a cluster's nodes is not built",
        "Templates can be synthesized without it, for tests and a look; nothing can be deployed, "
        "because nodes would find nothing to start. `make deploy` and `make diff` build it first; "
        "`make package` builds it alone.",
    ),
    ErrorPage(
        "POLYNYA-STG-005",
        "streams that the nodes of a cluster could not read or land",
        "`streams` of a cluster names sources and no folder to land them in, topics of MSK and no "
        "brokers, a name twice, a key of another region than what it encrypts, or something to "
        "which the endpoints of a closed network do not lead. Nothing was synthesized.",
    ),
)
