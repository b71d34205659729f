"""Compare: two strategies on a run, or two runs, in one scroll; the better strategy can go into the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.binding import BindingType

from workbench.analysis.sweep import RECORDED
from workbench.context.apply import ApplyError
from workbench.context.strategy import SpecError
from workbench.durations import lifetime_of
from workbench.engine.definition import DefinitionError
from workbench.files import write_whole
from workbench.store.faults import StoreError
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.plot import PlotSheet
from workbench.tui.screens.sheet import DiffSheet, Sheet
from workbench.tui.screens.sides import SidePicker
from workbench.tui.screens.sized import Grip, SizedScreen
from workbench.tui.screens.sweep import SweepChoice, ask_for_sweep
from workbench.tui.widgets.rowview import RowView
from workbench.views.compare import EVEN, CompareRows, comparison_html, comparison_json, plot_doc
from workbench.views.compare_refs import Ref
from workbench.views.keys import hints, told
from workbench.views.model import Lines
from workbench.workspace.comparing import (
    ComparedRun,
    FileChange,
    RunComparison,
    SideChoice,
    change_for,
    compare_sources,
    images_of,
    pricing_of,
    side_choices,
    write_change,
)
from workbench.workspace.input_file import CannotOpen

if TYPE_CHECKING:
    from workbench.workspace.project import Project

SHOWN = 40
"""Lines of a change that the question shows."""
DIFFERS = {"+": "$success", "-": "$error", "@": "$text-muted"}
"""Colours of the lines of a diff, by what they begin with."""


class CompareSheet(Sheet, SizedScreen[None]):
    """The comparison of two sources: it is worked out once the screen is there.

    Enter opens a fold or a message; brackets lead from difference to difference.
    """

    PALETTE: ClassVar[tuple[str, ...]] = ("compare", "borders", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("compare"), *bindings("borders")]
    OFFERED: ClassVar[tuple[str, ...]] = (
        "compare.next",
        "list.open",
        "compare.sides",
        "compare.sweep",
        "compare.apply",
        "compare.swap",
        "compare.plot",
        "compare.previous",
        "compare.ttl",
        "compare.export",
        "sheet.find",
    )

    def __init__(
        self, project: Project, a: ComparedRun, b: ComparedRun, provider: str = RECORDED, ttl: str = "", note: str = ""
    ) -> None:
        """``provider``: whose prices count; ``ttl``: how long a cache keeps what was sent, empty for what providers
        and marks say; ``note``: said once both sides are worked out."""
        waiting = Lines((), ("Assembling both sides again from the journal …", "No model is called."))
        waiting.title = (("Compare", "title"),)
        super().__init__(waiting)
        self.view.selecting = True
        self.a, self.b = a, b
        self._project = project
        self._found: RunComparison | None = None
        self._compared: CompareRows | None = None
        self._here: Ref | None = None
        self._provider, self._ttl, self._note = provider, ttl, note
        self._written: FileChange | None = None
        """The change that was written into the file from here, to take it back."""

    def on_mount(self) -> None:
        self.call_after_refresh(self._offer)
        self._work_out()

    def _offer(self) -> None:
        offered = hints(self.OFFERED, self.services.keys)
        if self._written is not None:
            offered = tuple((id, key, "take B out" if id == "compare.apply" else word) for id, key, word in offered)
        self.footer.offer(offered, hints((*self.FIXED, "sheet.close"), self.services.keys))

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def _work_out(self) -> None:
        try:
            lasting = lifetime_of(self._ttl) if self._ttl else None
            prices = pricing_of(self._project.environment.prices, self._provider, lasting).prices
            found = compare_sources(self._project, self.a, self.b, prices)
        except (SpecError, DefinitionError, StoreError) as fault:
            self.app.call_later(self._failed, str(fault))
            return
        self.app.call_later(self._worked_out, found)

    def _failed(self, reason: str) -> None:
        self.services.say(reason, "error")
        self._rows = Lines((), ("These two cannot be compared:", reason))
        self.view.show(self._rows)

    def _worked_out(self, found: RunComparison) -> None:
        self._found = found
        self._here = None
        rows = CompareRows(found.comparison, found.title, is_what_if=bool(self.b.spec))
        if self._provider != RECORDED:
            rows.title = (*rows.title, (f"  at {self._provider}", "changed"))
        if self._ttl:
            rows.title = (*rows.title, (f"  cache kept {self._ttl}", "changed"))
        self._rows = self._compared = rows
        self.apply_sizes()
        self.view.show(self._rows, 0)
        for note in found.notes:
            self.services.say(note, "warning")
        if self._note:
            self.services.say(self._note)
            self._note = ""

    def grips(self) -> tuple[Grip, ...]:
        rows = self._compared
        return () if rows is None else (Grip("compare.left", self.view, "middle", rows.share, 200, 800),)

    def apply_sizes(self) -> None:
        if self._compared is not None:
            self._compared.share = self.size_of("compare.left") or EVEN
            self.view.show()

    def is_middle(self, x: int, y: int) -> bool:
        rows, row = self._compared, self.view.row_at(y)
        sides = rows is not None and row is not None and rows.is_divided(row)
        return rows is not None and x == rows.middle(self.view.inner_width) and (y == 1 or sides)

    @on(RowView.Chosen)
    def _chosen(self, event: RowView.Chosen) -> None:
        self._here = self._compared.refs[event.index] if self._compared is not None else None

    def on_resize(self) -> None:
        """Keeps the cursor on its row: the text above it may take more or fewer lines at another width."""
        if self._compared is not None and self._here is not None and self._here.kind not in ("text", "note"):
            self.call_after_refresh(self._return_to, self._compared, self._here)

    def _return_to(self, rows: CompareRows, here: Ref) -> None:
        if rows is self._compared:
            self.view.move_to(rows.refs.row_of(here))

    def _ready(self) -> RunComparison | None:
        if self._found is None:
            self.services.say("The comparison is not ready yet.")
        return self._found

    def action_difference(self, step: int) -> None:
        """Go to the next difference, or the one before."""
        if self._ready() is None or self._compared is None:
            return
        found = self._compared.step(self.view.cursor, step)
        if found is None:
            self.services.say(self._compared.no_further(step))
        else:
            self.view.move_to(found)
            top = self.view.line_of_row(found) - self.view.page // 3
            self.view.scroll_to(y=max(0, top), animate=False, force=True)

    @on(RowView.Opened)
    def _row_opened(self, event: RowView.Opened) -> None:
        event.prevent_default()  # A sheet closes on enter.
        rows, row = self._compared, event.index
        if rows is None or row >= len(rows):
            return
        section = rows.section_of(row)
        if section is not None:
            self.view.move_to(section)
            self.view.scroll_to(y=self.view.line_of_row(section), animate=False, force=True)
        elif rows.toggle(row):
            self.view.forget()
            self.view.show(rows, row)
        elif (sides := rows.sides(row)) is not None:
            self.app.push_screen(DiffSheet(sides))

    def action_plot(self) -> None:
        """Tokens and cost of both sides over the calls."""
        if (found := self._ready()) is not None:
            plot = plot_doc(found.comparison, lambda: self.app.size.height)
            self.app.push_screen(PlotSheet(plot, self._project.root, f"plot-{found.title}"))

    # -- other sides and prices --------------------------------------------------------------------------------------

    def action_sides(self) -> None:
        """Choose what is compared."""
        self._look_for_sides()

    @work(thread=True, exclusive=True, group="sides", exit_on_error=False)
    def _look_for_sides(self) -> None:
        """In a worker: the list names stored runs."""
        try:
            choices = side_choices(self._project, self._project.store.find(self.a.run))
        except (StoreError, DefinitionError) as fault:
            self.app.call_later(self.services.say, str(fault), "error")
            return
        self.app.call_later(self._pick_sides, choices)

    def _pick_sides(self, choices: tuple[SideChoice, ...]) -> None:
        def chosen(a: ComparedRun, b: ComparedRun) -> None:
            self.a, self.b = a, b
            self._work_out()

        picker = SidePicker(self._project, choices, self.a, self.b, chosen, self._compare_chosen, is_settled=True)
        self.app.push_screen(picker)

    def action_swap(self) -> None:
        """A becomes B, and B becomes A."""
        self.a, self.b = self.b, self.a
        self._work_out()

    def action_ttl(self) -> None:
        """Ask how long a cache keeps what was sent, and work both sides out again."""

        def wrong(text: str) -> str:
            try:
                lifetime_of(text.strip()) if text.strip() else None
            except ValueError as fault:
                return str(fault)
            return ""

        def done(text: str) -> str | None:
            if fault := wrong(text):
                return fault
            self._ttl = text.strip()
            self._work_out()
            return None

        words = "5m, 1h; empty: as long as the provider keeps it"
        self.ask("cache kept", value=self._ttl, placeholder=words, check=wrong, done=done)

    # -- other strategies --------------------------------------------------------------------------------------------

    def action_sweep(self) -> None:
        """Ask for strategies and try them all on run A; the one that is taken becomes B, what the sweep compares it
        with A."""
        ask_for_sweep(self, self._project, self.a.run, self._compare_chosen)

    def _compare_chosen(self, chosen: SweepChoice) -> None:
        self.app.push_screen(comparison_of(self._project, chosen))

    # -- out of the app ----------------------------------------------------------------------------------------------

    def action_export(self) -> None:
        """Ask for a file; its ending says what it is to hold."""
        if (found := self._ready()) is None:
            return

        def done(text: str) -> str | None:
            file = Path(text.strip()).expanduser()
            if file.suffix not in (".html", ".json"):
                return "A file that ends in .html or .json"
            target = file if file.is_absolute() else self._project.root / file
            if target.exists():
                # The prompt is about to go; a callback that it had asked for would go with it.
                self.call_later(self._ask_before_replacing, target, found)
            else:
                self._export(target, found)
            return None

        name = found.title.replace(" ", "-").replace("/", "-")
        self.ask("export to", value=f"compare-{name}.html", done=done)

    def _ask_before_replacing(self, target: Path, found: RunComparison) -> None:
        def answered(answer: str | None) -> None:
            if answer == "replace":
                self._export(target, found)

        answers = [("keep", "k", "Cancel"), ("replace", "r", "Replace it")]
        self.app.push_screen(ChoiceDialog(f"Replace {target.name}?", f"{target} already exists.", answers), answered)

    @work(thread=True, group="export", exit_on_error=False)
    def _export(self, target: Path, found: RunComparison) -> None:
        """In a worker: images are read and made small."""
        if target.suffix == ".html":
            runs = (found.a.run_id, found.b.run_id)
            text = comparison_html(found.comparison, found.title, images_of(self._project.store, runs))
        else:
            text = json.dumps(comparison_json(found.comparison), indent=2, allow_nan=False) + "\n"
        try:
            write_whole(target, text.encode())
        except OSError as fault:
            self.app.call_later(self.services.say, f"{target} cannot be written: {fault.strerror}", "error")
        else:
            self.app.call_later(self.services.say, f"written: {target}")

    # -- into the file -----------------------------------------------------------------------------------------------

    def action_apply(self) -> None:
        """Write B into the file, after showing what changes."""
        if self._ready() is None:
            return
        if not self.b.spec:
            tries = "{compare.sweep} tries some, and {list.open} takes one as B."
            self.services.say(told("B is a run as it was recorded, no strategy: " + tries))
        else:
            self.services.say("Reading the file, to write B into it …")
            self._prepare(self.b.spec)

    @work(thread=True, exclusive=True, group="apply", exit_on_error=False)
    def _prepare(self, spec: str) -> None:
        assert self._found is not None
        try:
            change = change_for(self._project, self._found.b, spec, self._project.environment.prices)
        except (ApplyError, SpecError, CannotOpen) as fault:
            self.app.call_later(self.services.say, str(fault), "error")
            return
        self.app.call_later(self._ask, change)

    def _ask(self, change: FileChange) -> None:
        written = self._written
        back = written is not None and change.before == change.after == written.after
        if back and written is not None:
            change = replace(change, after=written.before, phases=(), dropped=(), is_stale=False)
        lines = change.lines
        if not lines:
            self.services.say(f"{change.shown} says so already in every phase of this run.")
            return
        more = [f"… {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
        note = (
            ["The file has changed since this run: the numbers are of the text that ran.", ""]
            if change.is_stale
            else []
        )
        told = [*change.words, ""] if not back else []
        shown = [*note, *told, *lines[:SHOWN], *more]
        text = [("\n" * bool(at) + line, DIFFERS.get(line[:1], "")) for at, line in enumerate(shown)]
        answers = [("keep", "k", "Keep the file as it is"), ("write", "w", "Write it")]

        def answered(answer: str | None) -> None:
            if answer == "write":
                self._write(change, back=back)
            else:
                self.services.say(f"{change.shown} stays as it is.")

        asked = f"Take B out of {change.shown} again?" if back else f"Write B into {change.shown}?"
        self.services.push_unasked(ChoiceDialog(asked, text, answers), answered)

    def _write(self, change: FileChange, *, back: bool) -> None:
        try:
            write_change(change)
        except (ApplyError, CannotOpen) as fault:
            self.services.say(str(fault), "error")
        except OSError as fault:
            self.services.say(f"{change.shown} cannot be written: {fault.strerror}", "error")
        else:
            self._written = None if back else change
            self._offer()
            words = "{file} is as it was before." if back else "{file} is written; {compare.apply} again takes it back."
            self.services.say(told(words, file=change.shown))


def comparison_of(project: Project, chosen: SweepChoice) -> CompareSheet:
    """The comparison of a strategy that was chosen in a sweep: ``esc`` goes back to the sweep."""
    several = f"One of the {chosen.runs:,} runs of the sweep, whose sums are over all of them."
    return CompareSheet(
        project, chosen.a, chosen.b, chosen.provider, chosen.cache_ttl, several if chosen.runs > 1 else ""
    )
