"""What can be done through the API. Each route names its action; roles are sets of them."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """One thing that a person may do; a route asks for exactly one."""

    # The project and what runs in it.
    VIEW_PROJECT = "project.view"
    VIEW_METRICS = "metrics.view"
    VIEW_LINEAGE = "lineage.view"
    # Documents of the project: files in git or in the configuration bucket.
    VIEW_DOCUMENTS = "documents.view"
    EDIT_DOCUMENTS = "documents.edit"
    # Data.
    READ_CATALOG = "catalog.read"
    QUERY_DATA = "data.query"
    VIEW_QUARANTINE = "quarantine.view"
    REPLAY_QUARANTINE = "quarantine.replay"
    # Tasks.
    VALIDATE = "project.validate"
    PLAN = "project.plan"
    APPROVE_PLAN = "plan.approve"
    MIGRATE = "project.migrate"
    RUN = "task.run"
    STOP = "task.stop"
    RESUME = "task.resume"
    RELOAD = "task.reload"
    RECREATE = "task.recreate"
    MAINTAIN = "task.maintain"
    # Clusters.
    VIEW_CLUSTER = "cluster.view"
    OPERATE_CLUSTER = "cluster.operate"
    # Operations of others, automations and notifications.
    VIEW_OPERATIONS = "operation.view"
    CANCEL_OPERATION = "operation.cancel"
    VIEW_AUTOMATIONS = "automation.view"
    RUN_AUTOMATION = "automation.run"
    PAUSE_AUTOMATION = "automation.pause"
    #: Start one whose file has the trigger `api`, by its own rules; less than `automation.run`.
    CALL_AUTOMATION = "automation.call"
    VIEW_NOTIFICATIONS = "notification.view"
    TEST_NOTIFICATION = "notification.test"
    # Access itself.
    VIEW_ACCESS = "access.view"
    MANAGE_ACCESS = "access.manage"
    OWN_TOKENS = "token.own"
    VIEW_AUDIT = "audit.view"
    #: Open to everybody: to log in, and what a login shows of itself.
    LOG_IN = "session.begin"
    #: Likewise: the signature of the call decides.
    CALL_WEBHOOK = "automation.webhook"
