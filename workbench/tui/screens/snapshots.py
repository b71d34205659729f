"""Snapshots: the frozen runs of the workspace, checked in the background, and a review of those that changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.worker import Worker, WorkerState, get_current_worker

from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.request import RequestSheet
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.views.keys import ALWAYS, told
from workbench.views.model import Lines
from workbench.views.requests import RequestRows, Texts
from workbench.views.snapshots import Item, ReviewRows, SnapshotBoard
from workbench.workspace.reviewing import Decision, Review, Section, source_texts
from workbench.workspace.testing import SnapshotResult, Snapshots

if TYPE_CHECKING:
    from workbench.analysis.changed import ChangedPart
    from workbench.workspace.project import Project
    from workbench.workspace.snapshot_files import ListedSnapshot

FRAME = 0.1
"""Seconds between two drawings while a check goes on, however fast it is; the spinner turns with them."""
NOTHING_TO_REVIEW = (
    "What a snapshot tests, and what has changed since it was frozen:",
    "messages that were added, masked or reworded, with the line of the file that decided.",
)
TO_DECIDE = ("snapshots.accept", "snapshots.reject", "snapshots.skip", "snapshots.full")
TO_LOOK = ("snapshots.edit", "snapshots.next")
ALWAYS_HERE = ("snapshots.check", "snapshots.close")


class SnapshotsScreen(WorkbenchScreen[None]):
    """The list, what differs in the snapshot under its cursor, and the requests of the row under that cursor."""

    AUTO_FOCUS = "#list"
    CSS_PATH = "snapshots.tcss"
    CLEARS: ClassVar[str] = "snapshots.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("snapshots", "find", "list")
    needs_focus: ClassVar[bool] = True
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("snapshots"), *bindings("find")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - declared by Textual

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._snapshots = Snapshots(project)
        self._review = Review(self._snapshots, ())
        self._lock = threading.Lock()
        """Held while a snapshot is replayed or written: both need the same event loop."""
        self._left = False
        self._round = 0
        """The number of the check that is listened to."""
        self._done: list[list[int]] = []
        """Which snapshots each decision was about, the last decision last."""
        self.board = SnapshotBoard(f"{project.shown(self._snapshots.folder)}/")
        self.list_pane = RowView(self.board.list(), id="list", edge=True)
        self.review_pane = RowView(Lines(), id="review")
        self.sides_pane = RowView(Lines(), id="sides", selecting=False)
        self._header = SpanLine(id="header")
        self._shown: tuple[object, ...] | None = None
        self._shown_part: object = None
        self._line = 0
        """The line of the review under its cursor, which stays there when it is wrapped otherwise."""
        self._led = False
        """Whether the cursor was led to the first changed snapshot, or moved by hand."""

    def compose(self) -> ComposeResult:
        yield self._header
        with Container(id="above"):
            yield self.list_pane
            yield self.review_pane
        yield self.sides_pane
        yield self.footer

    def on_mount(self) -> None:
        self.set_interval(FRAME, self._turn)
        self._refresh()
        self._begin()

    def on_unmount(self) -> None:
        self._left = True
        self._let_go()

    def _let_go(self) -> None:
        """Close the event loop as soon as no replay uses it."""
        if self._lock.acquire(blocking=False):
            try:
                self._snapshots.close()
            finally:
                self._lock.release()

    # -- the check, in a thread --------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Check everything; a check that goes on is given up, and what it still says is not heard."""
        self._round += 1
        self._done.clear()
        self._check(self._round)

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _check(self, number: int) -> None:
        worker = get_current_worker()

        def hear(heard: Callable[..., None], *what: object) -> None:
            if number == self._round:
                heard(*what)

        def tell(heard: Callable[..., None], *what: object) -> None:
            if not self._left:
                self.app.call_later(hear, heard, *what)

        try:
            with self._lock:
                self._snapshots.look_again()
            tell(self._heard_list, self._snapshots.listed())
            for file in self._snapshots.files():
                if worker.is_cancelled or self._left:
                    break
                tell(self._heard_start, file.stem)
                with self._lock:
                    verdict = self._snapshots.replay(file)
                tell(self._heard, verdict)
        finally:
            tell(self._heard_end, worker.is_cancelled)
            if self._left:
                self._let_go()

    def _heard_list(self, found: list[ListedSnapshot]) -> None:
        self.board.listed(found)
        self.board.stopped = False
        self._refresh()

    def _heard_start(self, name: str) -> None:
        self.board.checking = name

    def _heard(self, verdict: SnapshotResult) -> None:
        self.board.checked(verdict)
        if not self._led and verdict.differences:
            self._led = True
            self.list_pane.cursor = next(i for i, it in enumerate(self.board.items) if it.listed.name == verdict.name)

    def _heard_end(self, stopped: bool) -> None:
        if not stopped or self.board.checking:
            self.board.checking, self.board.stopped = "", stopped
        self._refresh()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.group == "check":
            self._heard_end(True)

    def _turn(self) -> None:
        if self.board.busy:
            self.board.tick += int(self.app.animation_level != "none")
            self._refresh()

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def item(self) -> Item | None:
        """The snapshot under the cursor."""
        index = self.list_pane.cursor
        return self.board.items[index] if 0 <= index < len(self.board.items) else None

    def _refresh(self) -> None:
        self._header.show(self.board.header(self.size.width))
        self.list_pane.show(self.board.list())
        self.list_pane.styles.height = min(self.list_pane.wanted, 10) if self.has_class("-narrow") else None
        self._show_review()
        self._offer()

    def _offer(self) -> None:
        item = self.item
        to_decide = TO_DECIDE if item is not None and item.is_open else ()
        offered = (*to_decide, *(TO_LOOK if item is not None else ()), *ALWAYS_HERE)
        if self._done:
            offered = ("snapshots.undo", *offered)
        if self.board.busy:
            offered = ("snapshots.stop", *offered)
        self.offer(offered, ALWAYS[:2])

    def _show_review(self) -> None:
        item = self.item
        key = (None,) if item is None else (item.listed, id(item.verdict), item.decision)
        if key == self._shown:
            return
        self._shown = key
        rows = self.board.review(self.list_pane.cursor)
        if rows is None:
            empty = Lines(empty=NOTHING_TO_REVIEW)
            empty.title = (("Review", "title"),)
            self.review_pane.show(empty, 0)
        else:
            rows.lay_out(self.review_pane.inner_width)
            self._line = rows.line_of(rows.first())
            self.review_pane.show(rows, rows.first())
        self._shown_part = None
        self._show_sides()

    def _show_sides(self) -> None:
        section, part = self._under_cursor()
        if (section, part) == self._shown_part:
            return
        self._shown_part = (section, part)
        rows = self._requests(section, part)
        self.set_class(rows is not None, "-sides")
        if rows is not None:
            rows.lay_out(self.sides_pane.inner_width)
            self.sides_pane.show(rows, 0)
        self.call_after_refresh(self._settle)

    def _under_cursor(self) -> tuple[Section | None, ChangedPart | None]:
        rows = self.review_pane.rows
        if not isinstance(rows, ReviewRows) or not len(rows):
            return None, None
        return rows.section_at(self.review_pane.cursor), rows.part_at(self.review_pane.cursor)

    def _requests(self, section: Section | None, part: ChangedPart | None) -> RequestRows | None:
        item = self.item
        if section is None or section.call is None or item is None or item.verdict is None:
            return None
        today, frozen = source_texts(item.verdict, section)
        title = (("Request", "title"), (f"  {section.label}", "name"))
        return RequestRows(
            section.call, Texts(section.file, today, frozen), title=title, labels=("frozen", "now"), only=part
        )

    def _settle(self) -> None:
        """After a layout: join the lines of neighbouring panes."""
        beside = self.list_pane.region.y == self.review_pane.region.y
        self.list_pane.edge = beside
        for view in (self.review_pane, self.sides_pane):
            view.joints = {}
        if beside and self.sides_pane.display:
            self.sides_pane.joints[self.list_pane.region.right - 1] = "┴"
        self.list_pane.joints = {self.list_pane.size.width - 1: "┬"} if beside else {}
        for view in self.query(RowView):
            view.show()
            view.refresh()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out_again)

    def _lay_out_again(self) -> None:
        """Once the panes stand where the new size puts them; the cursor stays on what it was on."""
        rows = self.review_pane.rows
        if isinstance(rows, ReviewRows):
            rows.lay_out(self.review_pane.inner_width)
            self.review_pane.show(None, rows.first_row(self._line))
        self._refresh()
        self.call_after_refresh(self._settle)

    @on(RowView.Chosen, "#list")
    def _chosen(self) -> None:
        self._led = True
        self._show_review()
        self._offer()

    @on(RowView.Chosen, "#review")
    def _row_chosen(self) -> None:
        if isinstance(self.review_pane.rows, ReviewRows):
            self._line = self.review_pane.rows.line_of(self.review_pane.cursor)
        self._show_sides()

    @on(RowView.Opened)
    def _opened(self, event: RowView.Opened) -> None:
        if event.view is self.list_pane:
            self.review_pane.focus()
        elif event.view is self.review_pane:
            self.action_full()

    def main_list(self) -> RowView:
        return self.list_pane

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_decide(self, decision: str) -> None:
        """Decide about the snapshot under the cursor, and go to the next one."""
        item = self.item
        if item is None:
            self.services.say(told("No snapshots yet. {run.freeze} on the Bench freezes a run as one."))
            return
        if not item.can_be(Decision(decision)):
            words = "{snapshots.next} goes to the next changed snapshot, {snapshots.check} checks all again."
            self.services.say(told("This snapshot has not changed. " + words))
            return
        self._decide([self.list_pane.cursor], Decision(decision))

    def action_decide_all(self, decision: str) -> None:
        """Decide about every changed snapshot that is open."""
        indices = [index for index, item in enumerate(self.board.items) if item.is_open]
        if self.board.busy:
            self.services.say(
                "The check is still running and may find more. Press the key again when it has finished.", "warning"
            )
        elif indices:
            self._decide(indices, Decision(decision))
        else:
            self.services.say(told("All changed snapshots are decided. {snapshots.check} checks all again."))

    @work(thread=True, group="decide", exit_on_error=False)
    def _decide(self, indices: list[int], decision: Decision) -> None:
        with self._lock:
            back = [one.listed.file for at, one in enumerate(self.board.items) if at in indices and one.is_written]
            objections = self.board.decide(self._review, indices, decision)
        self.app.call_later(self._decided, indices, decision, objections, back)

    def action_undo(self) -> None:
        """Take the last decision back; a file that it wrote becomes what it was."""
        if not self._done:
            self.services.say("There is no decision to undo.")
            return
        self._undo(self._done.pop())

    @work(thread=True, group="decide", exit_on_error=False)
    def _undo(self, indices: list[int]) -> None:
        with self._lock:
            objections = self.board.undo(self._review, indices)
        self.app.call_later(self._undone, indices, objections)

    def _undone(self, indices: list[int], objections: list[str]) -> None:
        for objection in objections[:3]:
            self.services.say(objection, "error")
        if len(objections) < len(indices):
            names = ", ".join(self.board.items[index].listed.name for index in indices[:3])
            more = f" and {len(indices) - 3} more" if len(indices) > 3 else ""
            self.services.say(f"Undone: {names}{more}")
        self.list_pane.cursor = indices[0]
        self._refresh()

    def _decided(self, indices: list[int], decision: Decision, objections: list[str], back: list[str]) -> None:
        for objection in objections[:3]:
            self.services.say(objection, "error")
        if len(objections) > 3:
            self.services.say(f"and {len(objections) - 3} more cannot be accepted", "error")
        if decision is Decision.ACCEPTED and len(indices) > len(objections):
            done = [self.board.items[index] for index in indices if self.board.items[index].decision is decision]
            names = ", ".join(item.listed.file for item in done[:3])
            more = f" and {len(done) - 3} more" if len(done) > 3 else ""
            self.services.say(told("Written: {names}. {snapshots.undo} undoes it.", names=names + more))
        elif back and not objections:
            self.services.say(f"Restored: {', '.join(back)}")
        if any(self.board.items[index].decision is decision for index in indices):
            self._done.append(indices)
        if not objections and (following := self.board.next_open(indices[-1])) is not None:
            self.list_pane.cursor = following
        self._refresh()

    def action_next(self, step: int = 1) -> None:
        """To the next changed snapshot about which nothing was decided, or the one before."""
        found = self.board.next_open(self.list_pane.cursor, step)
        if found is None or found == self.list_pane.cursor:
            self.services.say("No other snapshot is open.")
        else:
            self.list_pane.move_to(found)

    def action_full(self) -> None:
        """Both requests of the place under the cursor, over the whole screen."""
        section, _ = self._under_cursor()
        rows = self._requests(section, None)
        if rows is None or section is None:
            self.services.say("No request differs here.")
            return
        self.app.push_screen(RequestSheet(rows, self._snapshots.project.root / section.file))

    def action_edit(self) -> None:
        """Open the cascade file at the line behind what is under the cursor; then check again."""
        item, rows = self.item, self.review_pane.rows
        if item is None or not item.listed.cascade_file:
            self.services.say("This file names no cascade.")
            return
        section, _ = self._under_cursor()
        file = self._snapshots.project.root / (section.file if section is not None else item.listed.cascade_file)
        if not file.is_file():
            self.services.say(f"{item.listed.cascade_file} does not exist any more.", "error")
            return
        line = rows.line_at(self.review_pane.cursor) if isinstance(rows, ReviewRows) else 0
        self.services.navigation.edit_outside(file, max(1, line))
        self.action_check()

    def action_check(self) -> None:
        """Replay all snapshots again."""
        self._led = True
        self._begin()

    def action_stop(self) -> None:
        """Stop the check; what it found so far stays."""
        if self.board.busy:
            self.workers.cancel_group(self, "check")
        else:
            self.services.say("No check is running.")

    def action_pane(self, step: int) -> None:
        panes = [view for view in (self.list_pane, self.review_pane, self.sides_pane) if view.display]
        at = next((index for index, view in enumerate(panes) if view.has_focus), 0)
        panes[(at + step) % len(panes)].focus()

    def action_copy(self) -> None:
        """Copy what is shown of the snapshot."""
        rows = self.review_pane.rows
        if isinstance(rows, ReviewRows):
            self.services.copy(rows.copy, "the review")
        else:
            self.services.say("There is no review to copy.")

    def action_close(self) -> None:
        """Drop the filter, else the marks of a search; without either, back."""
        if not self.clear_found():
            self.dismiss()
