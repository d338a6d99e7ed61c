"""Pages of work that an agent submits to a service, or gives to a process beside itself."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
