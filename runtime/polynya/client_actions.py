"""Routes of the API that act, and plans, automations and notifications.

`python -m polynya.server.client_code` writes this module from the routes of the server: do
not edit it. `polynya.client_routes` has the other groups, and how all are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote

from polynya.client_group import RouteGroup
from polynya.server.operations.verbs import (
    AutomationParameters,
    CompareParameters,
    DrainParameters,
    MaintainParameters,
    MigrateParameters,
    MoveParameters,
    NodeParameters,
    NoParameters,
    ReasonParameters,
    RecreateParameters,
    ReloadParameters,
    ReplayParameters,
    ResumeParameters,
    RunParameters,
    ScaleParameters,
    TablesParameters,
    TaskParameters,
    TaskReasonParameters,
    TaskRunParameters,
    UnitParameters,
    VerifyParameters,
    WaitParameters,
)
from polynya.server.plans import PlannedFile
from polynya.server.routes.actions import ActionShown
from polynya.server.routes.automation_calls import ApiCall, CallTaken
from polynya.server.routes.automations import (
    AutomationDetails,
    AutomationDocuments,
    AutomationImport,
    AutomationPage,
    AutomationShown,
    AutomationsImported,
    RunWithSteps,
)
from polynya.server.routes.notifications import (
    NoticePage,
    OpenShown,
    RouteShown,
    TestAsked,
    TestShown,
)
from polynya.server.routes.operations import OperationShown, OutputLines
from polynya.server.routes.plans import ApplyAsked, DecisionAsked, PlanEffectShown, PlanShown


class PlansRoutes(RouteGroup):
    """Routes of `plans`."""

    def plans(
        self,
        *,
        plan_state: Literal[
            "making",
            "failed",
            "ready",
            "outdated",
            "approved",
            "rejected",
            "applying",
            "applied",
            "not applied",
        ]
        | None = None,
    ) -> Iterator[PlanShown]:
        """The plans of the last 30 days, the newest first."""
        return self._all(PlanShown, "/plans", state=plan_state)

    def make_plan(self, *, idempotency_key: str | None = None) -> PlanShown:
        """Make a plan of the files as they are now; it is ready when its operation has succeeded."""
        return self._ask(PlanShown, "POST", "/plans", None, {"idempotency-key": idempotency_key})

    def plan(self, name: str) -> PlanShown:
        """One plan."""
        return self._get(PlanShown, f"/plans/{quote(name, '')}")

    def effects(self, name: str) -> Iterator[PlanEffectShown]:
        """What a plan does to the data, in the order of the command."""
        return self._all(PlanEffectShown, f"/plans/{quote(name, '')}/effects")

    def plan_files(self, name: str) -> Iterator[PlannedFile]:
        """The files that differ from those that were applied last, each with its lines."""
        return self._all(PlannedFile, f"/plans/{quote(name, '')}/files")

    def approve(self, name: str, asked: DecisionAsked) -> PlanShown:
        """Approve a plan that is ready: it may be applied while the files stay as they are."""
        return self._ask(PlanShown, "POST", f"/plans/{quote(name, '')}/approve", asked)

    def reject(self, name: str, asked: DecisionAsked) -> PlanShown:
        """Reject a plan that is ready, or outdated: it is never applied."""
        return self._ask(PlanShown, "POST", f"/plans/{quote(name, '')}/reject", asked)

    def apply(self, name: str, asked: ApplyAsked) -> PlanShown:
        """Carry out an approved plan, as an operation that refuses any other files."""
        return self._ask(PlanShown, "POST", f"/plans/{quote(name, '')}/apply", asked)


class ActionsRoutes(RouteGroup):
    """Routes of `actions`."""

    def actions(self) -> list[ActionShown]:
        """The actions that your roles allow, in the order of their names."""
        return self._get(list[ActionShown], "/actions")

    def validate(
        self, asked: NoParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Check all files."""
        return self._ask(
            OperationShown, "POST", "/actions/validate", asked, {"idempotency-key": idempotency_key}
        )

    def plan(self, asked: NoParameters, *, idempotency_key: str | None = None) -> OperationShown:
        """Show what has to change."""
        return self._ask(
            OperationShown, "POST", "/actions/plan", asked, {"idempotency-key": idempotency_key}
        )

    def migrate(
        self, asked: MigrateParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Execute a plan."""
        return self._ask(
            OperationShown, "POST", "/actions/migrate", asked, {"idempotency-key": idempotency_key}
        )

    def run(self, asked: RunParameters, *, idempotency_key: str | None = None) -> OperationShown:
        """Process what has landed."""
        return self._ask(
            OperationShown, "POST", "/actions/run", asked, {"idempotency-key": idempotency_key}
        )

    def reload(
        self, asked: ReloadParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Compare with a new full load."""
        return self._ask(
            OperationShown, "POST", "/actions/reload", asked, {"idempotency-key": idempotency_key}
        )

    def quarantine_replay(
        self, asked: ReplayParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Try rejected records again."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/quarantine-replay",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def maintain(
        self, asked: MaintainParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Maintain tables now."""
        return self._ask(
            OperationShown, "POST", "/actions/maintain", asked, {"idempotency-key": idempotency_key}
        )

    def verify(
        self, asked: VerifyParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Check tables by their rules."""
        return self._ask(
            OperationShown, "POST", "/actions/verify", asked, {"idempotency-key": idempotency_key}
        )

    def compare(
        self, asked: CompareParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Compare with the database."""
        return self._ask(
            OperationShown, "POST", "/actions/compare", asked, {"idempotency-key": idempotency_key}
        )

    def dataset_resume(
        self, asked: ResumeParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Resume a suspended dataset."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/dataset-resume",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def task_run(
        self, asked: TaskRunParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Let its nodes run a task."""
        return self._ask(
            OperationShown, "POST", "/actions/task-run", asked, {"idempotency-key": idempotency_key}
        )

    def task_stop(
        self, asked: TaskReasonParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Stop a task."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/task-stop",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def task_start(
        self, asked: TaskParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Start a stopped task."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/task-start",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def task_resume(
        self, asked: TaskReasonParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Resume a task."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/task-resume",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def task_recreate(
        self, asked: RecreateParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Make tables again."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/task-recreate",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def landing_stop(
        self, asked: TaskParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Stop a capture."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/landing-stop",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def landing_resume(
        self, asked: TablesParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Resume tables."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/landing-resume",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def landing_reload(
        self, asked: TablesParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Load tables again."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/landing-reload",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def automation_run(
        self, asked: AutomationParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Run an automation now."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/automation-run",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_start(
        self, asked: WaitParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Start nodes."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-start",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_stop(
        self, asked: WaitParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Stop nodes."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-stop",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_scale(
        self, asked: ScaleParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Scale nodes."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-scale",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_roll(
        self, asked: WaitParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Replace nodes."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-roll",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_drain(
        self, asked: DrainParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Drain a node."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-drain",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_undrain(
        self, asked: NodeParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """End a drain."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-undrain",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_move(
        self, asked: MoveParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Move a unit."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-move",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_unmove(
        self, asked: UnitParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """End a move."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-unmove",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_freeze(
        self, asked: ReasonParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Move no units."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-freeze",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def cluster_unfreeze(
        self, asked: NoParameters, *, idempotency_key: str | None = None
    ) -> OperationShown:
        """Move units again."""
        return self._ask(
            OperationShown,
            "POST",
            "/actions/cluster-unfreeze",
            asked,
            {"idempotency-key": idempotency_key},
        )


class AutomationsRoutes(RouteGroup):
    """Routes of `automations`."""

    def call_webhook(
        self, name: str, webhook: str, content: str, *, polynya_signature: str | None = None
    ) -> CallTaken:
        """Start an automation that has this webhook, by a call that its secret signed."""
        return self._ask(
            CallTaken,
            "POST",
            f"/automations/{quote(name, '')}/webhooks/{quote(webhook, '')}",
            content,
            {"polynya-signature": polynya_signature},
        )

    def call(self, name: str, asked: ApiCall, *, idempotency_key: str | None = None) -> CallTaken:
        """Start an automation that has the trigger `api`, by its own rules for runs that overlap."""
        return self._ask(
            CallTaken,
            "POST",
            f"/automations/{quote(name, '')}/calls",
            asked,
            {"idempotency-key": idempotency_key},
        )

    def automations(
        self, *, limit: int = 50, cursor: str | None = None, moments: int = 1
    ) -> AutomationPage:
        """The automations by name."""
        return self._get(
            AutomationPage, "/automations", limit=limit, cursor=cursor, moments=moments
        )

    def export(self) -> AutomationDocuments:
        """The files of all automations, for an import elsewhere. Logs and pauses stay here."""
        return self._get(AutomationDocuments, "/automations/export")

    def import_(self, asked: AutomationImport, *, dry_run: bool = False) -> AutomationsImported:
        """Add files of automations, all of them or none. What would make an error is refused."""
        return self._ask(AutomationsImported, "POST", "/automations/import", asked, dry_run=dry_run)

    def automation(self, name: str, *, moments: int = 5) -> AutomationDetails:
        """One automation with its definition and its next moments."""
        return self._get(AutomationDetails, f"/automations/{quote(name, '')}", moments=moments)

    def runs(self, name: str) -> Iterator[RunWithSteps]:
        """The runs of the last 30 days with their steps, newest first; also of a file that is gone."""
        return self._all(RunWithSteps, f"/automations/{quote(name, '')}/runs")

    def run(self, name: str, run: str) -> RunWithSteps:
        """One run with its steps."""
        return self._get(RunWithSteps, f"/automations/{quote(name, '')}/runs/{quote(run, '')}")

    def pause(self, name: str) -> AutomationShown:
        """Pause an automation: no trigger starts it until it is resumed. A run under way goes on."""
        return self._ask(AutomationShown, "POST", f"/automations/{quote(name, '')}/pause")

    def resume(self, name: str) -> AutomationShown:
        """Resume a paused automation. Moments in the pause are not made up for."""
        return self._ask(AutomationShown, "POST", f"/automations/{quote(name, '')}/resume")


class NotificationsRoutes(RouteGroup):
    """Routes of `notifications`."""

    def rules(self) -> Iterator[RouteShown]:
        """Each channel of each rule, by name, and whether it fails."""
        return self._all(RouteShown, "/notifications/rules")

    def open_(self) -> Iterator[OpenShown]:
        """What is wrong now as the project's processes keep it, the newest first."""
        return self._all(OpenShown, "/notifications/open")

    def history(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        name: str | None = None,
        route: str | None = None,
        result: Literal["sent", "held", "dropped", "failed", "given_up"] | None = None,
    ) -> NoticePage:
        """What was sent, held back, dropped or not delivered in the last 30 days, the newest first."""
        return self._get(
            NoticePage,
            "/notifications/history",
            limit=limit,
            cursor=cursor,
            name=name,
            route=route,
            result=result,
        )

    def test(self, asked: TestAsked) -> list[TestShown]:
        """Send a test message through channels, at once, whatever their rules say."""
        return self._ask(list[TestShown], "POST", "/notifications/test", asked)


class OperationsRoutes(RouteGroup):
    """Routes of `operations`."""

    def operations(self) -> Iterator[OperationShown]:
        """The operations of the last 30 days, the newest first."""
        return self._all(OperationShown, "/operations")

    def operation(self, name: str) -> OperationShown:
        """One operation as it is now."""
        return self._get(OperationShown, f"/operations/{quote(name, '')}")

    def output(self, name: str, *, after: int = 0) -> OutputLines:
        """What the command wrote after a place, about 1 MiB at most."""
        return self._get(OutputLines, f"/operations/{quote(name, '')}/output", after=after)

    def cancel(self, name: str) -> OperationShown:
        """Ask an operation to end after its running steps, as Ctrl-C does."""
        return self._ask(OperationShown, "POST", f"/operations/{quote(name, '')}/cancel")
