"""The runs screen: every stored run of the workspace, found by a filter, and what can be done with one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.engine.journal.annotations import common
from workbench.store.faults import StoreError
from workbench.store.run_filter import FilterError, complete_filter, parse_filter
from workbench.store.summary import CHECKPOINT
from workbench.tui.bindings import bindings
from workbench.tui.screens.annotator import AnnotationTarget, Annotator
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.batch import BatchScreen
from workbench.tui.screens.compare import CompareSheet
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sized import Grip, SizedScreen
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.tui.widgets.tree import TreePane
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.numbers import plural
from workbench.views.runs import ORDER_WORDS, SORT, CardRows, RunRows, counts, run_status
from workbench.views.text import TextRows
from workbench.workspace.comparing import ComparedRun
from workbench.workspace.exporting import ENDINGS, export_file
from workbench.workspace.home import demo_at
from workbench.workspace.recorded_runs import remove_run
from workbench.workspace.runs_poller import Listing, RunsPoller, RunsRequest

if TYPE_CHECKING:
    from workbench.store.summary import RunSummary
    from workbench.tui.screens.annotator import What
    from workbench.workspace.session import Workspace

EXAMPLES = (
    'a word  status:failed  tag:good score>=4  cost>=0.05  date:today age<2h  phase:x  text:"rate limit"  a or -b'
)

CARD = 16
"""Lines of a card that tells a run with a short input and output."""


class RunsScreen(WorkbenchScreen[None], SizedScreen[None]):
    """The list, and a card of the run under the cursor."""

    CSS_PATH = "runs.tcss"
    CLEARS: ClassVar[str] = "runs.close"
    needs_focus: ClassVar[bool] = True
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - declared by Textual without ClassVar
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("runs"), *bindings("annotate"), *bindings("borders")]
    PALETTE = ("runs", "annotate", "borders", "tree", "list")

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._wanted = RunsRequest()
        self.listing = Listing(self._wanted, searching="reading …")
        self.list_pane = TreePane(RunRows(self.listing, beside_card=True), id="runs")
        self.card_pane = RowView(TextRows([], (("Run", "title"),)), id="card", selecting=False)
        self._demo = demo_at(workspace.project.folders, workspace.project.root)
        self._annotator = Annotator(self)
        self._marked: list[str] = []
        self._chosen = ""
        """Run id under the cursor: the cursor stays on it while others come and go."""
        self._sought = ""
        """Run id that the cursor goes to once it is listed: the open run."""
        self._before = ""
        """The filter before the prompt was opened."""
        self.poller = RunsPoller(workspace.project.store, self._published, self._wanted)

    def compose(self) -> ComposeResult:
        yield self.list_pane
        yield self.card_pane
        yield self.footer

    def on_mount(self) -> None:
        self._offer_keys(None)
        self.list_pane.focus()
        if (session := self.services.session) is not None:
            self._sought = session.run_id
        self.apply_sizes()
        self.poller.start()

    def on_unmount(self) -> None:
        self.poller.stop()

    def on_screen_resume(self) -> None:
        self.poller.look()

    def main_list(self) -> RowView:
        return self.list_pane

    def grips(self) -> tuple[Grip, ...]:
        return (Grip("runs.card", self.card_pane, "title", self.card_pane.size.height, 3, self.size.height - 8),)

    def apply_sizes(self) -> None:
        """The card has what the list leaves, which is as high as its rows and at most three fifths of the screen. Rows
        go on in lines that the card does not need; all of them do so if it keeps ``CARD`` lines, however long it is."""
        size = self.size_of("runs.card")
        if size is None:
            height = self.size.height - 1
            rows = max(self.listing.total, len(self.list_pane.rows)) + 3
            lines = max(6, min(rows, self.size.height * 3 // 5))
            self.card_pane.rows.lay_out(self.card_pane.inner_width)  # The pane itself is told of a new width later.
            spare, whole = height - self.card_pane.wanted, self.list_pane.wanted_whole + 1
            if whole <= height - CARD:
                lines = max(lines, whole)
            elif self.list_pane.wanted <= spare:
                lines = max(lines, min(whole, spare))
            size = height - lines
        self.card_pane.styles.height = min(max(3, size), max(3, self.size.height - 8))

    def on_resize(self) -> None:
        self.apply_sizes()

    # -- the list ----------------------------------------------------------------------------------------------------

    def _published(self, listing: Listing) -> None:
        """Called in the thread of the poller."""
        self.app.call_later(self._take, listing)

    def _take(self, listing: Listing) -> None:
        if not self.is_attached:
            return
        self.listing = listing
        self._marked = [run_id for run_id in self._marked if self._known(run_id)]
        self._show()

    def _known(self, run_id: str) -> bool:
        return bool(self.listing.wanted.text) or any(member.run.run_id == run_id for member in self.listing.members)

    def _show(self) -> None:
        session = self.services.session
        open_id = session.run_id if session is not None else ""
        rows = RunRows(self.listing, frozenset(self._marked), open_id, self._demo, beside_card=True)
        cursor = rows.index_of(self._chosen) if self._chosen else 0
        if self._sought and (found := rows.index_of(self._sought)) is not None:
            cursor, self._sought = found, ""
        self.list_pane.show(rows, cursor)
        self._show_card()

    def _offer_keys(self, run: RunSummary | None) -> None:
        """The keys in the footer; those that the run under the cursor cannot follow are left out."""
        without = set()
        if run is not None:
            without |= set() if self._resumes(run) else {"runs.resume"}
            without |= {"runs.fork"} if run.imported or not run.at else set()
        keys = tuple(command for command in FOOTERS["runs"] if command not in without)
        self.offer(keys, (*ALWAYS[:2], "runs.close"))

    @staticmethod
    def _resumes(run: RunSummary) -> bool:
        """Whether the run can go on from where it stopped."""
        return not run.pid and (run.resumable or run.source == CHECKPOINT)

    def _show_card(self) -> None:
        run = self.run()
        self._offer_keys(run)
        card = TextRows([], (("Run", "title"),))
        if run is not None:
            self._chosen = run.run_id
            card = CardRows(self.listing, run)
        self.card_pane.show(card, 0)
        self.apply_sizes()

    def run(self) -> RunSummary | None:
        """The run under the cursor."""
        members = self.listing.members
        return members[self.list_pane.cursor].run if 0 <= self.list_pane.cursor < len(members) else None

    def _ask_for(self, **changes: Any) -> None:
        self._wanted = replace(self._wanted, **changes)
        self.poller.ask(self._wanted)

    @on(RowView.Chosen, "#runs")
    def _chosen_row(self) -> None:
        self._show_card()

    @on(TreePane.Fold)
    def _fold(self, event: TreePane.Fold) -> None:
        """To the right, runs inside this one show too; to the left, forks fold away, or the cursor goes up."""
        if not 0 <= event.index < len(self.listing.members):
            return
        member = self.listing.members[event.index]
        run_id, now = member.run.run_id, self._wanted.folding.get(member.run.run_id)
        wants = True if event.unfold else None if now else False
        if member.branches and wants is not now and (event.unfold is bool(member.hidden) or not event.unfold):
            folding = {**self._wanted.folding, run_id: wants}
            self._ask_for(folding={key: value for key, value in folding.items() if value is not None})
        elif not event.unfold and member.depth:
            parents = (i for i in range(event.index, -1, -1) if self.listing.members[i].depth < member.depth)
            self.list_pane.move_to(next(parents, 0))

    # -- filter and order --------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self._before = self._wanted.text

        def changed(text: str) -> None:
            self._ask_for(text=text)

        def done(text: str) -> str | None:
            try:
                parse_filter(text, datetime.now().astimezone())
            except FilterError as fault:
                return str(fault)
            changed(text)
            return None

        def closed() -> None:
            changed(self._before)

        def completed(text: str) -> tuple[str, ...]:
            return complete_filter(text, self.poller.runs)

        self.ask(
            "filter",
            value=self._before,
            placeholder=EXAMPLES,
            done=done,
            changed=changed,
            closed=closed,
            completed=completed,
        )

    def action_sort(self) -> None:
        """Ask for the order; the one that is there is turned round."""
        answers = [(order, key, words) for order, (key, words, _) in ORDER_WORDS.items()]
        at = list(ORDER_WORDS).index(self._wanted.order)
        order, key, _ = answers[at]
        answers[at] = (order, key, ORDER_WORDS[order][2 - self._wanted.turned])

        def answered(order: str | None) -> None:
            if order is not None:
                self._sort_by(order)

        now = f"Now: {ORDER_WORDS[order][1 + self._wanted.turned]}."
        self.app.push_screen(ChoiceDialog("Sort the runs", now, answers), answered)

    def _sort_by(self, order: str) -> None:
        """Order the runs; by what they are ordered by already, the other way round."""
        self._ask_for(order=order, turned=order == self._wanted.order and not self._wanted.turned)

    @on(SpanLine.Pressed)
    def _head_clicked(self, event: SpanLine.Pressed) -> None:
        """A click on a column's title orders the runs by it."""
        if event.command.startswith(SORT):
            event.prevent_default()
            self._sort_by(event.command.removeprefix(SORT))

    def action_close(self) -> None:
        """Drop the filter; without one, go back."""
        if self._wanted.text:
            self._ask_for(text="")
        elif self._wanted.order != "newest" or self._wanted.turned:
            self._ask_for(order="newest", turned=False)
        else:
            self.app.pop_screen()

    # -- what to do with a run ---------------------------------------------------------------------------------------

    @on(RowView.Opened, "#runs")
    def _opened(self) -> None:
        if (run := self.run()) is None:
            return
        if calls := self.listing.calls.get(run.run_id):
            self.services.navigation.show_annotated(run.run_id, calls)
        else:
            self.services.navigation.show_run(run.run_id)

    def action_batches(self) -> None:
        """The batches of the workspace, as tables."""
        self.app.push_screen(BatchScreen(self._workspace, self.services.navigation.batch))

    def action_copy(self) -> None:
        if (run := self.run()) is not None:
            self.services.copy(run.name, "the session id" if run.session_id else "the run id")

    def action_go_on(self) -> None:
        """Resume the run where it stopped, paused before its next call."""
        if (run := self.run()) is None:
            return
        session = self.services.session
        if session is not None and session.running and session.run_id == run.run_id:
            self.services.navigation.to_bench()
        elif run.pid:
            self.services.say(f"{run.name} is being run by process {run.pid}.", "warning")
        elif not self._resumes(run):
            why = "was imported" if run.imported else "is damaged" if run.damaged else f"is over: {run.status}"
            self.services.say(f"{run.name} {why}; there is nothing to resume.", "warning")
        else:
            self.services.navigation.resume_run(run.run_id)

    def action_fork(self) -> None:
        """Ask for a place, and hold a new run there."""
        if (run := self.run()) is None:
            return
        if run.imported:
            self.services.say(f"{run.name} was imported: imported runs cannot be resumed.", "warning")
            return
        if not run.at:
            why = "is damaged and cannot be read" if run.damaged else "made no call"
            self.services.say(f"{run.name} {why}; there is no call to fork it at.", "warning")
            return

        def done(text: str) -> str | None:
            if not text.strip():
                return f"A place, such as {run.at}"
            self.services.navigation.fork_run(run.run_id, text.strip())
            return None

        self.ask("fork at", value=run.at, placeholder=" · ".join(f"{phase}:1" for phase in run.phases), done=done)

    def action_freeze(self) -> None:
        """Show the run, and freeze it there."""
        if (run := self.run()) is not None:
            self.services.navigation.freeze_run(run.run_id)

    def action_export(self) -> None:
        if (run := self.run()) is None:
            return

        def done(text: str) -> str | None:
            format_name, _, file = text.strip().partition(" ")
            if format_name not in ENDINGS:
                fault = f"'{format_name}' is not a format. " if format_name else ""
                return f"{fault}Write one of {', '.join(ENDINGS)}; a file name may follow it."
            self._export(run.run_id, format_name, file.strip() or run.name + ENDINGS[format_name])
            return None

        self.ask("export as", placeholder=" · ".join(ENDINGS), done=done, words=lambda: tuple(ENDINGS))

    @work(thread=True, exit_on_error=False, group="export")
    def _export(self, run_id: str, format_name: str, file: str) -> None:
        project = self._workspace.project
        path = project.root / file
        if path.exists():
            self.app.call_later(self.services.say, f"{project.shown(path)} exists already: name another file.", "error")
            return
        try:
            export_file(project, run_id, format_name, path)
        except (StoreError, OSError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else str(fault)
            self.app.call_later(self.services.say, f"{file} cannot be written: {reason}", "error")
        else:
            self.app.call_later(self.services.say, f"written: {project.shown(path)}")

    def action_delete(self) -> None:
        """Delete a run and those that ran inside it, when it is confirmed."""
        if (run := self.run()) is None:
            return
        session = self.services.session
        if run.pid or (session is not None and session.running and session.run_id == run.run_id):
            self.services.say(f"{run.name} is running: it is not deleted.", "warning")
            return
        about = (run.cascade_file or run.cascade_id, run_status(run), counts(run, run.calls, "call"))
        text = (
            f"{run.name}\n{', '.join(part for part in about if part)}\n\n"
            "Its journal is deleted with all messages and images, also of runs inside it. Forks and frozen tests stay. "
            "This cannot be undone."
        )
        answers = (("keep", "k", "Keep it"), ("delete", "x", "Delete it permanently"))

        def answered(answer: str | None) -> None:
            if answer == "delete":
                self._delete(run.run_id, run.name)

        self.app.push_screen(ChoiceDialog("Delete this run?", text, answers), answered)

    @work(thread=True, exit_on_error=False, group="delete")
    def _delete(self, run_id: str, name: str) -> None:
        try:
            count = remove_run(self._workspace.project.store, run_id)
        except StoreError as fault:
            self.app.call_later(self.services.say, str(fault), "error")
            return
        more = f" and {count - 1} inside it" if count > 1 else ""
        self.app.call_later(self.services.say, f"{name}{more} is deleted.")
        self.poller.look()

    # -- annotating --------------------------------------------------------------------------------------------------

    def action_annotate(self, what: What) -> None:
        """Say something of the marked runs, else of the one under the cursor."""
        runs = [member.run for member in self.listing.members if member.run.run_id in self._marked]
        if not runs and (run := self.run()) is not None:
            runs = [run]
        if not runs:
            return
        name = runs[0].name if len(runs) == 1 else plural(len(runs), "run")
        ids = tuple(run.run_id for run in runs)
        labels = common([run.labels for run in runs])
        project = self._workspace.project
        self._annotator.annotate(
            what, AnnotationTarget(project, ids, name, labels, lambda run_id, now: self.poller.look())
        )

    def action_link(self) -> None:
        if (run := self.run()) is not None:
            self._annotator.link(self._workspace.project, run.run_id, run.session_id, run.name)

    # -- comparing ---------------------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark the run, or take the mark away."""
        if (run := self.run()) is None:
            return
        if run.run_id in self._marked:
            self._marked.remove(run.run_id)
        else:
            self._marked.append(run.run_id)
        self._show()
        self.list_pane.action_down()

    def action_compare(self) -> None:
        """Compare the two runs that were marked last, or the marked one with that under the cursor."""
        run = self.run()
        chosen = self._marked[-2:]
        if len(chosen) < 2 and run is not None and run.run_id not in chosen:
            chosen.append(run.run_id)
        if len(chosen) < 2:
            self.services.say(told("Mark a run with {runs.mark}, go to another one, and press {runs.compare}."))
            return
        self.app.push_screen(CompareSheet(self._workspace.project, ComparedRun(chosen[0]), ComparedRun(chosen[1])))
