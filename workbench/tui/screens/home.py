"""The home screen: the cascades of the folder, checked while one looks, and its runs; enter opens either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.worker import get_current_worker

from workbench.language.clean import clean
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.inputs import InputForm
from workbench.tui.screens.sized import Grip, SizedScreen
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import flat
from workbench.views.home import CascadeRows
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.numbers import plural
from workbench.views.runs import RunRows
from workbench.workspace.folders import at_home
from workbench.workspace.home import TOUR, cascade_files, checked, copy_examples, example_files, keep_demo
from workbench.workspace.input_file import CannotOpen, default_input, input_file, write_input
from workbench.workspace.project import Project
from workbench.workspace.runs_poller import Listing, RunsPoller, RunsRequest
from workbench.workspace.starting import TEMPLATES, create, free_name
from workbench.workspace.view_states import load_views

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workbench.store.summary import RunSummary
    from workbench.workspace.home import CheckedCascade, ListedCascade
    from workbench.workspace.session import Workspace


class HomeScreen(WorkbenchScreen[None], SizedScreen[None]):
    """Two lists: files above, runs below; runs that can go on are marked so."""

    CSS_PATH = "runs.tcss"
    CLEARS: ClassVar[str] = "home.close"
    needs_focus: ClassVar[bool] = True
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - declared by Textual without ClassVar
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("find"), *bindings("home"), *bindings("borders")]
    PALETTE = ("home", "find", "borders", "list")

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        words = ((" cascade workbench", "bold"), ("  ", "plain"), (flat(at_home(workspace.project.root)), "dim"))
        self._header = SpanLine(words, id="header")
        self.cascades = RowView(CascadeRows(None, {}, {}), id="cascades")
        self._listing = Listing(wanted=RunsRequest(), searching="reading …")
        self.recent = RowView(RunRows(self._listing), id="recent")
        self._listed: Sequence[ListedCascade] | None = None
        self._checked: dict[str, CheckedCascade] = {}
        self._last: dict[str, RunSummary] = {}
        self._opened = ""
        self._proposed = workspace.proposed
        """A file that is to be made, until that was offered."""
        self.poller = RunsPoller(workspace.project.store, self._published)

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.cascades
        yield self.recent
        yield self.footer

    def on_mount(self) -> None:
        is_below = self.services.session is not None
        self.offer(FOOTERS["home"], (*ALWAYS[:2], "home.close") if is_below else ALWAYS)
        self.cascades.focus()
        self.apply_sizes()
        self.poller.start()
        self.action_look()

    def on_unmount(self) -> None:
        self.poller.stop()

    def on_screen_resume(self) -> None:
        self.poller.look()

    @property
    def is_looking(self) -> bool:
        """Whether the folder has not been looked at yet, so that there is nothing to choose."""
        return self._listed is None

    def grips(self) -> tuple[Grip, ...]:
        return (Grip("home.runs", self.recent, "title", self.recent.size.height, 6, self.size.height - 8),)

    def apply_sizes(self) -> None:
        size = self.size_of("home.runs")
        if size is not None:
            self.recent.styles.height = min(size, max(6, self.size.height - 8))
        elif self._listed is not None and not self._listing.searching:
            self.recent.styles.height = self._shared()

    def _shared(self) -> int:
        """Lines of the runs: as many as they need, at most half of the screen, and all that the cascades leave."""
        room = self.size.height - 2
        return max(min(self.recent.wanted + 1, room // 2), room - self.cascades.wanted_whole - 1)

    def on_resize(self) -> None:
        self.apply_sizes()

    # -- what is there -----------------------------------------------------------------------------------------------

    @work(thread=True, exit_on_error=False, exclusive=True, group="look")
    def action_look(self) -> None:
        """Look at the folder: list the files, then check them one by one."""
        worker, project = get_current_worker(), self._workspace.project
        last = load_views(project.folders, project.root).last
        project.environment.forget()
        listed = cascade_files(project)
        self.app.call_later(self._take_files, listed, last)
        for one in listed:
            if worker.is_cancelled:
                return
            self.app.call_later(self._take_check, one.shown, checked(project, one.file))

    def _take_files(self, listed: Sequence[ListedCascade], last: str) -> None:
        first = self._listed is None
        if not first:
            self.services.say(f"Refreshed: {plural(len(listed), 'cascade')}.")
        self._listed, self._checked, self._opened = listed, {}, last
        at = next((i for i, one in enumerate(listed) if one.shown == last), 0) if first else None
        self._show_files(at)
        if first:
            self._start_in_runs()
        if self._proposed and self.services.session is None and not (self._root / self._proposed).exists():
            self.action_new()
        self.services.press_early_keys()

    @property
    def _root(self) -> Path:
        return self._workspace.project.root

    def _take_check(self, shown: str, found: CheckedCascade) -> None:
        self._checked[shown] = found
        self._show_files()

    def _show_files(self, cursor: int | None = None) -> None:
        if self.is_attached:
            self.cascades.show(CascadeRows(self._listed, self._checked, self._last, self._opened), cursor)
            self.apply_sizes()

    def _published(self, listing: Listing) -> None:
        """Called in the thread of the poller."""
        self.app.call_later(self._take_runs, listing)

    def _take_runs(self, listing: Listing) -> None:
        if not self.is_attached:
            return
        first, self._listing = bool(self._listing.searching), listing
        runs = sorted((member.run for member in listing.members if not member.run.depth), key=lambda run: run.started)
        self._last = {run.cascade_file: run for run in runs}
        session = self.services.session
        self.recent.show(RunRows(listing, open_id=session.run_id if session is not None else ""))
        self._show_files()
        if first:
            self._start_in_runs()

    def _start_in_runs(self) -> None:
        """In a folder of runs alone the cursor starts in them; which of both lists comes last is chance."""
        if self._listed is not None and not self._listed and len(self.recent.rows) and self.cascades.has_focus:
            self.recent.focus()

    # -- keys --------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key that goes to the next match means another command until a search is marked."""
        return action != "find_again" or any(view.needle for view in self.query(RowView))

    def action_pane(self, step: int) -> None:
        """To the other list."""
        (self.recent if self.cascades.has_focus else self.cascades).focus()

    def filter(self, view: RowView, text: str) -> None:
        """Show only what holds a text, in both lists: nobody knows whether a word is of a file or of a run."""
        for one in (self.cascades, self.recent):
            one.filter_by(text)

    def refocus(self) -> None:
        """Focus the list that the prompt was about, or the other one where that shows nothing."""
        super().refocus()
        here, other = (self.recent, self.cascades) if self.recent.has_focus else (self.cascades, self.recent)
        if here.filter and here.cursor < 0 <= other.cursor:
            other.focus()

    def action_close(self) -> None:
        """Drop the filter; without one, back to the Bench, where there is something on it."""
        if self.clear_found():
            return
        if self.services.session is not None:
            self.app.pop_screen()
        else:
            self.services.say(told("Choose a cascade or a run; {app.quit} quits."))

    @on(RowView.Opened, "#cascades")
    def _open_file(self, event: RowView.Opened) -> None:
        if self._listed and event.index < len(self._listed):
            self.services.navigation.show_file(self._listed[event.index].file)

    @on(RowView.Opened, "#recent")
    def _open_run(self, event: RowView.Opened) -> None:
        members = self._listing.members
        if event.index < len(members):
            self.services.navigation.show_run(members[event.index].run.run_id)

    # -- new cascades, and their inputs ------------------------------------------------------------------------------

    def action_new(self) -> None:
        """Ask for a template and a file, make it, ask for its inputs, and open it."""
        answers = [(one.name, str(number), f"{one.name}: {one.about}") for number, one in enumerate(TEMPLATES, 1)]
        text = "Each runs at once, with scripted replies. Choose the closest; comments in the file explain each line."
        proposed, self._proposed = self._proposed, ""
        heading = f"New cascade {flat(proposed, 40)}" if proposed else "New cascade from a template"

        def chosen(template: str | None) -> None:
            if template is not None:
                self._ask_for_file(template, proposed or free_name(template, self._root))

        self.app.push_screen(ChoiceDialog(heading, text, answers), chosen)

    def _ask_for_file(self, template: str, proposed: str) -> None:
        def done(text: str) -> str | None:
            name = text.strip()
            if not name:
                return "A file, such as flow.yaml"
            file = self._root / (name if Path(name).suffix else f"{name}.yaml")
            try:
                written = create(template, file, self._workspace.project.shown(file))
            except CannotOpen as fault:
                return str(fault)
            *others, last = (path.name for path in written[1:])
            beside = f"{', '.join(others)} and {last}" if others else last
            self.services.say(f"{written[0].name} was created, with {beside}.")
            self._ask_for_inputs(file, lambda: self.services.navigation.show_file(file))
            return None

        self.ask("file", value=proposed, placeholder="flow.yaml", done=done)

    def action_inputs(self) -> None:
        """Show the inputs of the file under the cursor, to be changed and saved."""
        if self._listed and 0 <= self.cascades.cursor < len(self._listed):
            self._ask_for_inputs(self._listed[self.cascades.cursor].file)

    @work(thread=True, exit_on_error=False, exclusive=True, group="inputs")
    def _ask_for_inputs(self, file: Path, then: Callable[[], object] = lambda: None) -> None:
        """Read what a file declares, ask, and save; then call ``then``, whatever was answered."""
        later = self.app.call_later
        found = checked(self._workspace.project, file)
        try:
            given = default_input(file)
        except CannotOpen as fault:
            later(self.services.say, str(fault), "error")
            later(then)
            return

        def filled(values: Mapping[str, Any] | None) -> None:
            if values is not None:
                others = {name: value for name, value in given.items() if name not in found.inputs}
                try:
                    self.services.say(f"Saved in {write_input(file, {**others, **values}).name}.")
                except CannotOpen as fault:
                    self.services.say(str(fault), "error")
            then()

        if found.inputs:
            later(self.app.push_screen, InputForm(found.inputs, given, kept=input_file(file).name), filled)
        else:
            why = found.first or "it declares none (inputs_schema)"
            later(self.services.say, f"No inputs of {file.name}: {why}")
            later(then)

    @work(thread=True, exit_on_error=False, exclusive=True, group="demo")
    def action_demo(self) -> None:
        """Copy the examples to a new folder, and open the tour there."""
        target = copy_examples(None)
        keep_demo(self._workspace.project.folders, target)
        file = next(path for path in example_files(target) if path.stem == TOUR)
        project = self._workspace.project
        there = Project.at(target, env=project.env)
        self.app.call_later(self.services.say, clean(f"The examples are in {target}: go there to keep them."))
        self.services.say_at_end(clean(f"The examples are in {target}: 'workbench open' there continues."))
        workspace = replace(self._workspace, project=there, model="offline")
        self.app.call_later(self.services.navigation.open_session, workspace, lambda workspace: workspace.file(file))
