"""Errors of clusters: nodes, workload stream, network agent, jobs, configuration bucket, stages."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    FencedError,
    OperationError,
)

# Nodes and their coordination place.

UNCONDITIONAL_WRITES: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-010",
    title="the coordination place does not enforce conditional writes",
    state="this node takes no work; no table was touched",
    fix="use a store with conditional writes, such as Amazon S3 or a local folder",
    page="Nodes divide the work by conditional writes: a write succeeds only if the object is "
    "unchanged since it was read, or does not exist yet. A node tests this when it starts, and "
    "this store accepted a write whose condition did not hold. A single node needs no store of "
    "this kind: start it without `--coordination`.",
)

NODE_REPLACED: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AGT-011",
    title="another process replaced this node",
    message="another process with the same node id replaced this one in the cluster",
    state="this process stops working; the other one repeats what was not committed",
    fix="give each node its own id with `--node-id`; the process that started last continues",
    page="Two agents with one node id share a cluster, or this one was replaced while it was "
    "paused. Tables are safe, because each commit names the epoch of its owner.",
)

CLUSTER_OBJECT_UNREADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-012",
    title="an object of the cluster cannot be read",
    state="the object stays as it is; work that does not need it continues",
    fix="upgrade this node, or delete the object if it is damaged",
    page="Nodes coordinate through small JSON objects. This one is damaged, or a newer Polynya "
    "wrote it in a format that this version does not know. Nodes never overwrite such an object; "
    "after a damaged one is deleted, they write it again.",
)

OWNERSHIP_CONTRADICTS: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-013",
    title="the ownership records of a unit contradict each other",
    state="tables are right: a commit whose epoch is not that of its table is refused",
    fix="find out who writes below the coordination place; only agents may",
    page="Each new owner of a unit has a higher epoch. Here an object of the cluster was deleted, "
    "reset or edited by hand, or the store accepted a write that it should have refused. The node "
    "releases the unit and claims it again with a higher epoch.",
)

CONDITIONAL_WRITE_REFUSED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-014",
    title="the coordination place refused a write whose condition held",
    state="this node takes no work yet; it tries again in its next turn",
    fix="wait; if it lasts, use a store with conditional writes, such as Amazon S3",
    page="A node tests conditional writes when it starts. One write that had to succeed did not, "
    "although no other process knows the object. A busy store may refuse for a moment. If it "
    "lasts, conditional writes do not work in this store.",
)

IMDS_ADDRESS_INVALID: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AGT-020",
    title="`--imds` is not valid",
    message="`--imds {choice}` is not an instance metadata service",
    state="nothing was started",
    fix="use `auto`, `off`, or the URL of a stand-in on this machine, such as "
    "http://127.0.0.1:1338",
    page="`--imds` says where the agent asks for Spot notices. `auto` asks the instance metadata "
    "service, on EC2 instances only; `off` never asks. Tests pass the URL of a stand-in on a "
    "loopback address.",
)

IMDS_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-021",
    title="the instance metadata service does not answer",
    message="the instance metadata service does not answer: {reason}",
    state="the node continues; without the service it does not see a Spot notice",
    fix="let this process reach 169.254.169.254 with IMDSv2, or start the agent with `--imds off`",
    page="On an EC2 instance the agent asks the service every 5 seconds whether AWS is about to "
    "interrupt the instance. If the instance is interrupted without a notice, other nodes take "
    "over its work when its lease has expired.",
)

CLUSTER_OBJECT_CONTENDED: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AGT-022",
    title="another process keeps changing the same object of the cluster",
    state="the request of the other process is in force",
    fix="check the requests with `polynya cluster status`, then try again",
    page="A request such as `polynya cluster drain` is an object that is written only if it is "
    "unchanged since it was read. Another process changed it each time. Look for another writer, "
    "such as a script in a loop.",
)

UNIT_REQUEST_PENDING: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AGT-023",
    title="the unit has a pending request",
    message="{unit} has a pending request: {request} by {by}, {since:%Y-%m-%d %H:%M:%S} UTC",
    state="the pending request stays; the new one was not accepted",
    fix="wait for it (`polynya cluster tasks` shows what it waits for), or withdraw it with "
    "`polynya task withdraw`",
    page="`polynya reload` and `polynya task recreate` write one object for each unit of work of a "
    "running cluster, and its owner deletes the object when it is done. A request can wait for a "
    "frozen cluster, a stopped task, a unit that no node owns, or the running step.",
)

UNIT_REQUEST_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-024",
    title="a request to a unit of work cannot be executed",
    state="nothing was changed; the unit continues, and the request is removed",
    fix="correct the request; `polynya cluster tasks` shows it with its outcome",
    page="The owner of the unit refused the request: a landing has no table to reload, a task that "
    "discovers its datasets has no dataset of that name, or `--as-of` is missing or not supported "
    "by the format.",
)

LAKE_EPOCH_TOO_LOW: Final = ErrorEntry(
    FencedError,
    "POLYNYA-LAKE-060",
    title="the granted epoch is too low",
    message="{owner} has owned {table} since epoch {epoch}; this process was granted epoch "
    "{granted}",
    state="nothing was written; the other owner continues",
    fix="nothing to do: the agent looks up the owner, and starts again if it still owns the work",
    page="The cluster granted this node a unit of work with an epoch, but another owner has "
    "already used that epoch or a higher one in a table of the unit. Either another node owns the "
    "work and this one did not know it yet, or a command such as `reload`, or a run without "
    "coordination, took the table over. The agent ends the job. If it still owns the unit, it "
    "raises its epoch above that of the table. If it happens all the time, two clusters, or a "
    "cluster and `polynya run`, work on the same tables: end one of them.",
)

TOO_MANY_NODES: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-050",
    title="a cluster has more nodes than units of work",
    message="{units} units of work for {nodes} nodes; the other nodes idle, because one node at a "
    "time works on a unit",
    state="nothing is wrong with the data",
    fix="lower the `maximum` of the cluster, or its `minimum`",
    page="One node at a time works on a unit, which is a dataset or a whole task, so the other "
    "nodes idle and cost money. Leave the settings if more tasks will come.",
)

CONFIGURATION_DIFFERS: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-055",
    title="a node has another configuration than the leader",
    message="{node} has another configuration than the leader: it knows {more} units more and "
    "lacks {fewer}",
    state="work continues; each unit is on a node that knows it",
    fix="check the events `configuration.unread` and `configuration.broken` of both nodes, and fix "
    "the file or the access",
    page="All nodes read the same configuration, seconds apart. This one has known other units of "
    "work than the leader for a minute: one of the two cannot read the configuration, or refuses a "
    "file that the other had accepted before it was broken. A deleted unit continues on nodes that "
    "have not read the deletion.",
)

# Jobs on other engines.

JOB_FOLDER_LOCAL: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AGT-070",
    title="a job in AWS cannot reach folders of this machine",
    message="a job with `engine` {engine} cannot reach folders of this machine: {folders}",
    state="nothing was submitted; no data was touched",
    fix="put landing zone and warehouse on S3, and start the agent with `--config "
    "s3://BUCKET/PREFIX`; or use another engine",
    page="A task, or the target, says `engine: {mode: emr_serverless}` or `{mode: glue}`, but its "
    "landing zone, its warehouse or the configuration is in a folder of this machine.",
)

JOB_RUN_FAILED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-071",
    title="a run that the agent submitted failed",
    message="run {run} of {service} failed: {reason}",
    state="tables are as after the last completed commit; every commit is atomic",
    fix="read the log of the run; the agent submits it again after a pause",
    page="EMR Serverless, Glue or a child process of the agent ran the work of a unit, and the run "
    "ended with an error; the message contains the service's answer. The log is where the service "
    "writes logs, for a child process in `jobs/` of the agent's work folder.",
)

JOB_RUN_FENCED: Final = ErrorEntry(
    FencedError,
    "POLYNYA-AGT-072",
    title="another owner works on the unit",
    message="another owner works on the unit: {reason}",
    state="nothing of this step was written; the other owner continues",
    fix="nothing to do: the agent looks up the owner, and continues if it still is the owner",
    page="A run of a higher epoch works on the unit, or a run of this node met its commits.",
)

JOB_PROCESS_NOT_STARTED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-073",
    title="a process for a job cannot be started",
    message="a process for the job cannot be started: {reason}",
    state="nothing was started; no data was touched",
    fix="free memory or end processes on this machine; the agent retries",
    page="A task with an engine other than the agent's own works in a child process, and the "
    "operating system refused to start one.",
)

UNIT_UNKNOWN: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-074",
    title="the configuration has no such unit",
    message="the configuration has no unit {unit} in this task",
    state="nothing was read or written",
    fix="nothing to do if its file was just edited: the agent submits the present file",
    page="`polynya run --unit` was started for a dataset that the task no longer has: its file was "
    "edited after the agent submitted the run.",
)

GLUE_RUN_NOT_STOPPED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-075",
    title="Glue did not stop a run",
    message="Glue did not stop run {run}: {reason}",
    state="tables are as after the run's last completed commit; every commit is atomic",
    fix="nothing to do: the agent retries",
    page="The agent no longer owns the unit, or ends, and asked Glue to stop its run. Glue "
    "returned an error, and the run continues. Its commits are refused as soon as another owner "
    "has taken the table over.",
)

JOB_CODE_NOT_ALLOWED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AGT-076",
    title="a job would run code that the node does not allow",
    message="`engine.{setting}` is {value}, which this node does not allow",
    state="nothing was submitted; committed work stays",
    fix="add its prefix to `code` of `emr_serverless` in the stage file, or to the environment "
    "variable `POLYNYA_JOB_CODE` of the agent",
    page="`entry_point` and `environment` of `engine: {mode: emr_serverless}` are code that runs "
    "with the role of the job. Authors of tasks can only choose among the places that the stage "
    "file or the variable allows: objects in S3, or prefixes that end with `/`.",
)

JOB_SERVICE_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AGT-077",
    title="the stage has no such service for jobs",
    message="`engine: {engine}` names no application or job, and this node knows of none",
    state="nothing was submitted; committed work stays",
    fix="add `jobs: {{{engine}: {{}}}}` to the cluster in the stage file and deploy it, or set "
    "`{variable}` of the agent, or name application or job in the task",
    page="`engine: emr_serverless` and `engine: glue` alone mean the application and the job that "
    "the stage made for the cluster of the task. The agent learns them from the variables "
    "`POLYNYA_EMR_JOBS` (application, role, script and archive, separated by blanks) and "
    "`POLYNYA_GLUE_JOB` (a name), which nodes of a stage with `jobs` have.",
)

JOB_SERVICE_WRONG: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AGT-078",
    title="a variable of the agent names no service for jobs",
    message="the environment variable `{variable}` of the agent is wrong: {problem}",
    state="nothing was submitted; committed work stays",
    fix="correct the variable, or name application or job in the task",
    page="`POLYNYA_EMR_JOBS` holds the id of the application, the ARN of the role, the script and "
    "the archive in S3, separated by blanks; `POLYNYA_GLUE_JOB` holds the name of a job.",
)

# The workload stream.

WORKLOAD_POSITION_LOST: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-040",
    title="the position in the workload stream was lost",
    state="some heartbeats of other nodes were not read; no data and no ownership depends on them",
    fix="nothing to do: the node continues with the newest records",
    page="A node read the stream too rarely, or its shards were changed. The node also reads the "
    "store, which holds the truth.",
)

WORKLOAD_STREAM_THROTTLED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-041",
    title="the workload stream throttles reads",
    state="records wait in the stream; no data and no ownership depends on them",
    fix="nothing to do: the node reads less often; if it lasts, give each cluster its own stream",
    page="A shard of Kinesis answers five reads a second for all nodes together. Nodes read half "
    "as often, and less often after a refusal. If it lasts, another program reads the stream, or "
    "several clusters share it.",
)

WORKLOAD_STREAM_MISSING: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-042",
    title="there is no such workload stream in this region",
    state="nodes receive no heartbeats; no data and no ownership depends on them",
    fix="create the stream, or correct `--stream` and the region; the node finds it by itself",
    page="The stream of `--stream` was not found in the region of the target. Nodes do not know "
    "each other's load. Ownership is decided in the store, so work continues.",
)

WORKLOAD_FOLDER_UNUSABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-043",
    title="the folder of the workload stream cannot be used",
    message="cannot {action} in the folder of the workload stream",
    state="nodes receive no heartbeats; no data and no ownership depends on them",
    fix="check the folder and its permissions; the node continues by itself",
    page="Without Kinesis, nodes publish their heartbeats as small files in a folder, and this one "
    "cannot be read or written.",
)

# The network agent.

AUTO_SCALING_REFUSED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-060",
    title="EC2 Auto Scaling refused a request of the network agent",
    message="EC2 Auto Scaling refused to {action}",
    state="the group is unchanged; its nodes continue",
    fix="follow the answer of AWS; for AccessDenied, allow {grant} to the network agent",
    page="The network agent executes `polynya cluster stop`, `start`, `roll` and `scale` on the "
    "Auto Scaling group with the name of the cluster. For AccessDenied, deploy the gateway stack "
    "of this version: its role has the rights for the clusters of its stage only.",
)

CLUSTER_COMMAND_FAILED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-061",
    title="a command for a cluster was refused or failed",
    message="the command `{command}` was not executed: {outcome}",
    state="the existing nodes continue",
    fix="resolve the reason, then repeat the command",
    page="`--wait` waited for the end of the command. `refused`: nothing was requested from the "
    "group. `failed`: the group did not reach the requested state, or not in time; the reason has "
    "its state. `polynya cluster commands` lists the commands. Nodes that ended released their "
    "work first; no row is lost.",
)

CLUSTER_COMMAND_NOT_TAKEN: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AGT-062",
    title="no network agent executed the command",
    state="nothing was requested from the group; its nodes continue",
    fix="check with `polynya cluster status` whether the network agent is connected",
    page="Commands for a group are objects that the network agent of the stage takes within ten "
    "seconds. An hour later none had taken this one: it does not run, or does not reach the "
    "bucket. A command that is found later is refused. Check the log and the alarm of the network "
    "agent, or deploy the gateway stack.",
)

AGENT_PACKAGE_UNUSABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AGT-063",
    title="a package of the network agent cannot be used",
    state="nothing of it was run; the previous version continues",
    fix="pin the file `code.tar` that `make package` makes, or go back with `polynya cluster "
    "unpin-agent`",
    page="`polynya cluster pin-agent` names the code that network agents run, by its SHA-256. The "
    "object of that name in the coordination place is another file, is not an archive, or has no "
    "code of Polynya.",
)

# The configuration bucket.

CONFIGURATION_PUSH_OVERTAKEN: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-BKT-001",
    title="another push came first",
    message="{winner} while this push was under way",
    state="nothing of this push is in force",
    fix="check the other push with `polynya config diff`, then push again",
    page="A push moves the pointer only if it is unchanged since it was read. The bundle of the "
    "losing push stays in the bucket, unused. A node that reads while others push keeps the "
    "configuration that it read last.",
)

CONFIGURATION_EDITS_UNSEEN: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-BKT-002",
    title="a push would lose edits by hand",
    message="edited by hand in the bucket, and never pulled into this folder: {files}",
    state="nothing was pushed; the edits stay in force",
    fix="pull the edits with `polynya config pull`, or discard them with `--overwrite-edits`",
    page="Files in the bucket were edited by hand after the last push or pull of this folder, and "
    "the folder does not have these edits.",
)

CONFIGURATION_PULL_CONFLICT: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-BKT-003",
    title="a pull would overwrite local changes",
    message="changed here and in the bucket: {files}",
    state="nothing was written",
    fix="compare both with `polynya config diff`, or take the bucket's with `--overwrite-local`",
    page="The files were changed in this folder and in the bucket since the last push or pull. "
    "Merge them by hand, or let `--overwrite-local` take those of the bucket.",
)

CONFIGURATION_OBJECT_DAMAGED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-BKT-004",
    title="the bucket's own objects are damaged",
    state="running nodes keep the configuration that they read last",
    fix="restore the previous version of this object, or delete `pushed.json` and push again with "
    "`--overwrite-edits`",
    page="`pushed.json` or the bundle that it names cannot be read, or a bundle's hash is not its "
    "name: something other than Polynya wrote there. The bucket keeps old versions of its objects.",
)

CONFIGURATION_OBJECT_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-BKT-005",
    title="an object is not used as configuration",
    state="the object is ignored; all others are used",
    fix="remove it from the bucket",
    page="An object below `current/` has a name that no file of a project has, exceeds what a "
    "project may hold (2,000 files, 32 MB together), or cannot be read; or a project is too large "
    "to be pushed.",
)

CONFIGURATION_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-BKT-006",
    title="there is no configuration",
    message="no configuration was pushed here yet",
    fix="run `polynya config push` in the project's folder",
    page="The target names no place with `config`, or nothing was pushed there yet. Set "
    "`targets.NAME.config` to `s3://BUCKET/PREFIX` or a folder, then run `polynya config push`.",
)

# Stages.

STAGE_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-STG-001",
    title="a stage does not exist, or has another name",
    page="Each file in `config/` except `pipeline.yml` is a stage, and its `name` is the name of "
    "the file. The pipeline names existing stages. Nothing was synthesized.",
)

STAGE_CONTRADICTS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-STG-002",
    title="settings of a stage contradict each other",
    page="Settings of a new resource are combined with an existing one, a list has a duplicate or "
    "too few members, there is only one Availability Zone, or a key or stream is in another region "
    "than the stage. Nothing was synthesized.",
)

STAGE_NETWORK_UNFIT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-STG-003",
    title="networks overlap or do not fit",
    page="The network of a stage overlaps that of another stage or a connected network, so that "
    "routes cannot distinguish them; its subnets do not fit into it; or they are too small for "
    "their endpoints and nodes. A VPC cannot be resized later: choose with room. Nothing was "
    "synthesized.",
)

NODE_PACKAGE_NOT_BUILT: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-STG-004",
    title="the package of a cluster's nodes is not built",
    message="the package of {architecture} nodes is not built",
    state="nothing was deployed",
    fix="run `make package ARCH={architecture}`",
    page="Templates can be synthesized without the package, for tests and a look. A deployment "
    "needs it, because nodes would find nothing to start. `make deploy` and `make diff` build it "
    "first.",
)

CLUSTER_STREAMS_UNREACHABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-STG-005",
    title="the nodes of a cluster cannot read or land its streams",
    page="`streams` of a cluster names sources and no folder to land them in, topics of MSK and no "
    "brokers, a name twice, a key of another region than what it encrypts, or something that the "
    "endpoints of a closed network do not reach. Nothing was synthesized.",
)

NO_REGION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-STG-006",
    title="the region of a stage is not known",
    message="neither the file of stage `{stage}` nor the environment names a region",
    state="nothing was uploaded or deployed",
    fix="write `region` in the file, or set AWS_REGION or the region of your profile",
    page="A stage without `region` is deployed to the region that the CDK's command line takes "
    "from the environment: AWS_REGION, AWS_DEFAULT_REGION, the profile, the metadata of the "
    "machine. Where none of them names one, the CDK would take us-east-1; Polynya asks instead.",
)

PACKAGE_ELSEWHERE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-STG-007",
    title="the package of the nodes is not where the templates look for it",
    message="the nodes of stack {stack} would find no s3://{bucket}/{key}",
    state="nothing was deployed",
    fix="make publish STAGE={stage}, with the same credentials, profile and region",
    page="`make deploy` looks for the package at the address in the synthesized templates before "
    "CloudFormation gets them. It is missing there if it was uploaded with other credentials or "
    "to another region, or if a file changed between the upload and the synthesis. Nodes would "
    "not boot, and the group would start them again and again.",
)

RELEASE_NOT_BOOTING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-STG-008",
    title="a node of the release that was deployed does not boot",
    message="the release that was deployed does not boot: {node}",
    state="no data was touched; the release stays deployed, and Auto Scaling starts nodes until "
    "three of them have failed, then launches of the group are suspended",
    fix="deploy the former release (check out its commit, `make deploy STAGE={stage}`), or one "
    "that repairs this",
    page="An empty group has no nodes that a deployment could replace. So `make deploy` asks it "
    "for one node, which tries the release, and waits at most 15 minutes. The node did not get "
    "ready, or EC2 starts none with this launch template. The error names the step of the boot "
    "and the reason. `make trial STAGE=NAME` tries again, and `TRIAL=no` deploys without a trial.",
)
