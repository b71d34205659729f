"""The editor: a cascade file with its problems as they come and go, and with completion from the language."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from workbench.language.edit.completion import Completion, FieldHelp, Kind, Names, complete, field_help
from workbench.language.edit.errors import EditError
from workbench.language.edit.navigate import Definition, Definitions, NamedThing, named_at
from workbench.language.problem import Problem
from workbench.language.read.endings import DOT_ENDINGS, FILE_ENDINGS
from workbench.language.read.reading import MAX_BYTES
from workbench.language.read.source import Format
from workbench.models.replies import SUFFIX as REPLIES
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.edit import ReviewSheet
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.completing import Completing
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.popup import Popup
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import flat
from workbench.views.editor import EditorFacts, editor_header, help_rows
from workbench.views.edits import diff_lines
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.model import Rows
from workbench.views.numbers import plural
from workbench.views.problems import ProblemRows
from workbench.views.text import TextLine, TextRows
from workbench.workspace.draft_checker import CheckedDraft, DraftChecker
from workbench.workspace.drafts import Draft
from workbench.workspace.text_file import CannotSave, ChangedMeanwhile, TextFile

BESIDE = (".tool.json", ".replies.yaml", ".replies.json", ".input.json", ".answers.json")
"""Ends of the names of files that lie beside cascades and are none."""
_TOLD: tuple[Kind, ...] = ("tool", "validator")
"""Kinds of offered names whose definition is shown, not only the words behind the name."""
PAUSE = (0.02, 0.6)
"""Seconds without a key after which the text is checked: as long as the last check took, within these bounds."""


class DraftChecked(Message):
    """A check is done."""

    def __init__(self, look: CheckedDraft, seconds: float) -> None:
        super().__init__()
        self.look = look
        self.seconds = seconds


class EditorScreen(WorkbenchScreen[None]):
    """Edits one cascade file: the text, what the field under the cursor means, the problems, and the file on disk."""

    CSS_PATH = "editor.tcss"
    AUTO_FOCUS = "#code"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("editor"), *bindings("find")]
    CLEARS: ClassVar[str] = "editor.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("editor", "find", "text")
    """Contexts whose commands the palette offers here."""
    needs_focus: ClassVar[bool] = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (150, "-wide")]  # noqa: RUF012 - declared by Textual without ClassVar
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]  # noqa: RUF012 - as above

    def __init__(
        self, path: Path, shown: str, looker: DraftChecker, draft: Draft, line: int = 1, column: int = 1
    ) -> None:
        """``shown`` is the file as the user names it."""
        super().__init__()
        self.path = path
        self.shown = shown
        self.form: Format = "json" if path.suffix == ".json" else "dot" if path.suffix in DOT_ENDINGS else "yaml"
        self.names = Names()
        self.definitions = Definitions()
        self._before: list[tuple[int, int]] = []
        """Where the cursor was before each jump to a definition."""
        self.cascade = path.suffix in FILE_ENDINGS and not path.name.endswith(BESIDE)
        """Whether the file is a cascade: fields, names and offers are of cascades only."""
        self.checks = self.cascade or path.name.endswith(REPLIES)
        """Whether the text is checked: cascades and offline replies are, another file is only edited."""
        self.area = CodeArea(id="code", language=self.form if self.checks else None)
        self.popup = Popup(id="popup")
        self.completing = Completing(self.area, self.popup, self._find_offer)
        self.help_pane = RowView(TextRows([], (("Field", "title"),)), id="field", selecting=False)
        checking = TextRows([], (("Problems", "title"),), empty=("The file is being checked.",))
        self.problem_pane = RowView(checking, id="problems")
        self.problems: tuple[Problem, ...] = ()
        self.field: FieldHelp | None = None
        self.checked: str | None = None
        """The text that the problems are about; None before the first check."""
        self._unchecked = ""
        """Why the file is not checked at all; empty for one that is."""
        self.file: TextFile | None = None
        self.on_disk = ""
        """The change of the file on disk since it was read."""
        self._header = SpanLine(id="header")
        self._looker = looker
        self._draft = draft
        self._leaving = False
        self._place = (line, column)
        self._pause = PAUSE[0]
        self._timer: Timer | None = None
        self._thing: NamedThing | None = None
        """The name under the cursor."""
        self._needle = ""

    def compose(self) -> ComposeResult:
        yield self._header
        with Container(id="body"):
            yield self.area
            yield self.help_pane
        yield self.problem_pane
        yield self.footer
        yield self.popup

    def on_mount(self) -> None:
        self._offer_keys()
        self.services.file_saved.subscribe(self, self.file_changed)
        self.open_file()
        self._check()
        # Not the cursor again: it has moved on if something was typed before the first frame.
        self.call_after_refresh(self.area.scroll_cursor_visible, center=True)
        self.call_after_refresh(self._show_field_here)
        self.offer_draft()

    def forget(self) -> None:
        super().forget()
        self.popup.refresh()

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def unsaved(self) -> bool:
        """Whether there are changes that are not on disk."""
        return self.file is not None and not self.file.refusal and self.area.text != self.file.text

    def show_header(self) -> None:
        row, column = self.area.cursor_location
        facts = EditorFacts(
            self.shown,
            self.unsaved,
            self.file.refusal if self.file is not None else "",
            self.on_disk,
            self.problems,
            self.checked is not None,
            row + 1,
            column + 1,
            self._place_found(),
        )
        self._header.show(editor_header(facts, self.size.width))

    def _place_found(self) -> tuple[int, int] | None:
        """Which place of the searched text is selected, from 1, and how many there are; None where it is not."""
        wanted = self._needle.casefold()
        if not wanted or self.area.selected_text.casefold() != wanted:
            return None
        text = self.area.plain_text.casefold()
        return text.count(wanted, 0, self.area.offset_in_text), text.count(wanted)

    def show_problems(self, problems: tuple[Problem, ...], about: str) -> None:
        """Show what a check of a text found, in the gutter and in the list."""
        self.problems, self.checked = problems, about
        self.area.mark(problems)
        self.set_class(not problems, "-sound")
        self.problem_pane.show(_titled(ProblemRows(problems), len(problems)))
        self.show_field(self.field)
        self.show_header()
        self.call_after_refresh(self._fit_problems)

    def _fit_problems(self) -> None:
        """Give the problems the lines that they need, of those that a short text leaves free."""
        pane, usual = self.problem_pane, self.problem_pane.styles.base.height
        if usual is None:
            return
        free = self.area.size.height + pane.size.height - self.area.wrapped_document.height - 1
        height = min(pane.wanted_whole, free)
        pane.styles.height = height if height > usual.value else None

    def show_field(self, found: FieldHelp | None) -> None:
        """Show what the field under the cursor means, and the problems of its line."""
        self.field = found
        item = self.popup.items[self.popup.chosen] if self.popup.display else None
        problems = self.area.problems_at(self.area.cursor_location[0])
        thing = self._thing if item is None else NamedThing(item.kind, item.text, 0, 0) if item.kind in _TOLD else None
        known = self.definitions.of(thing, self.names) if thing is not None else None
        self.help_pane.show(help_rows(found, problems, item, known), 0)

    def on_resize(self) -> None:
        self.popup.close()
        self.call_after_refresh(self.show_header)
        self.call_after_refresh(self._fit_problems)

    def ask(self, label: str, **options: Any) -> None:
        """Open the one-line prompt in the place of the footer; see ``Prompt`` for the options."""
        self.popup.close()
        super().ask(label, **options)

    def pane(self) -> RowView:
        return self.problem_pane

    def resting(self) -> Widget:
        return self.area

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._offer_keys()
        if event.widget is not self.area:
            self.popup.close()

    def _offer_keys(self) -> None:
        self.offer(FOOTERS["editor"], ALWAYS[:2])

    # -- checks while typing -----------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self.show_header()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(self._pause, self._check)
        self.completing.changed()

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        self.show_header()
        self.completing.moved()
        self.call_after_refresh(self._show_field_here)

    def _check(self) -> None:
        """Check the text as it is now; what an older check still says is dropped when it comes."""
        self._timer = None
        if not self.checks:
            self._show_unchecked("This file is not a cascade, so it is not checked.")
            self.keep_draft(self.area.text if self.unsaved else "")
        elif self.file is not None and not self.file.refusal:
            self._look(self.area.plain_text, self.area.text if self.unsaved else "")
        elif self.file is not None:
            self._show_unchecked("This file is read-only here, and is not checked.")

    def _show_unchecked(self, why: str) -> None:
        """Say that no check will come, and why."""
        self._unchecked = why
        self.set_class(True, "-sound")
        self.help_pane.show(TextRows([], (("Field", "title"),), empty=(why,)))
        self.problem_pane.show(TextRows([], (("Problems", "title"),), empty=(why,)))

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _look(self, text: str, unsaved: str) -> None:
        began = monotonic()
        self.keep_draft(unsaved)
        look = self._looker.look(text)
        self.post_message(DraftChecked(look, monotonic() - began))

    def on_draft_checked(self, event: DraftChecked) -> None:
        self._pause = min(PAUSE[1], max(PAUSE[0], event.seconds))
        if event.look.text != self.area.plain_text:
            return
        self.names, self.definitions = event.look.names, event.look.definitions
        self._show_field_here()
        self.show_problems(event.look.problems, event.look.text)

    # -- the field and what may be written ---------------------------------------------------------------------------

    def _show_field_here(self) -> None:
        if not self.cascade or self.file is None or self.file.refusal:
            return
        text, at = self.area.plain_text, self.area.offset_in_text
        if len(text) > MAX_BYTES:  # It cannot be read, and each key would cost a walk over all of it.
            self._thing = None
            self.show_field(None)
        else:
            self._thing = named_at(text, at, self.form)
            self.show_field(field_help(text, at, self.form))

    def _find_offer(self, text: str, offset: int) -> Completion:
        if not self.cascade or len(text) > MAX_BYTES:
            return Completion(offset, offset, "")
        return complete(text, offset, self.form, self.names)

    def action_complete(self) -> None:
        """Offer what may be written at the cursor."""
        if not self.completing.open(asked=True):
            self.services.say("No suggestions here.")

    @on(Popup.Taken)
    def _taken(self, event: Popup.Taken) -> None:
        self.completing.take(event.item)

    @on(Popup.Chosen)
    def _chosen(self, event: Popup.Chosen) -> None:
        offer = self.completing.offer
        if event.item.kind == "key" and offer is not None:
            text = self.area.plain_text
            named = text[: offer.start] + (event.item.insert or event.item.text) + text[offer.end :]
            self.show_field(field_help(named, offer.start + 1, self.form))
        else:
            self.show_field(self.field)

    @on(Popup.Closed)
    @on(CodeArea.Resized)
    def _popup_closed(self) -> None:
        self._show_field_here()

    # -- going places ------------------------------------------------------------------------------------------------

    def action_problem(self, step: int) -> None:
        """Go to the next line with a problem, or the one before."""
        line = self.area.next_problem(step)
        if line is None:
            waits = self._unchecked or "The file is being checked."
            self.services.say("No problems." if self.checked is not None else waits)
            return
        found = self.area.problems_at(line)[0]
        self.area.go_to(line + 1, found.span.column)
        self.problem_pane.show(None, self.problems.index(found))
        self.area.focus()

    @on(RowView.Opened, "#problems")
    def _problem_opened(self, event: RowView.Opened) -> None:
        if event.index < len(self.problems):
            span = self.problems[event.index].span
            self.area.go_to(span.line, span.column)
            self.area.focus()

    @on(RowView.Chosen, "#problems")
    def _problem_chosen(self, event: RowView.Chosen) -> None:
        if event.index < len(self.problems):
            span = self.problems[event.index].span
            self.area.go_to(span.line, span.column)

    def action_find(self) -> None:
        """Find in the file, or in the problems where they have the focus."""
        if self.focused is self.problem_pane:
            super().action_find()
            return

        def search(text: str) -> bool:
            self._needle = text
            return self.area.find_text(text, 1, again=False)

        def done(text: str) -> str | None:
            return None if search(text) else f"'{text}' is not in this file"

        self.ask("find", value=self.area.selected_text.partition("\n")[0] or self._needle, done=done, changed=search)

    def action_find_again(self, step: int = 1) -> None:
        if self.focused is self.problem_pane:
            super().action_find_again(step)
        elif not self._needle:
            self.action_find()
        elif not self.area.find_text(self._needle, step, again=True):
            self.services.say(f"'{self._needle}' is not in this file.")

    def action_go_to_line(self) -> None:
        """Ask for a line or a phase, and go there."""
        phases = self.definitions.phases

        def done(text: str) -> str | None:
            line, _, column = text.strip().partition(":")
            if (phase := phases.get(text.strip())) is not None:
                line, column = str(phase.line), str(self._column_of(text.strip(), phase.line))
            elif not line.isdigit() or (column and not column.isdigit()):
                return "a line, line:column, or a phase, as in 12 or 12:5" + (
                    f" or {next(iter(phases))}" if phases else ""
                )
            self._before.append(self.area.cursor_location)
            self.area.go_to(int(line), int(column or 1))
            return None

        lines = f"1 to {self.area.document.line_count:,}"
        named = f", or a phase: {', '.join(phases)}" if phases else ""
        self.ask("go to", placeholder=lines + named, words=lambda: tuple(phases), done=done)

    def action_replace(self) -> None:
        """Ask for a text and another one, and put that in its place everywhere, after a look at the change."""
        if self._refuses():
            return
        text = self.area.plain_text

        def done(old: str) -> str | None:
            if not old or old not in text:
                return f"'{old}' is not in this file as it is written here" if old else "a text to replace"
            self.call_later(self._ask_for_new, text, old)
            return None

        self.ask("replace", value=self.area.selected_text.partition("\n")[0] or self._needle, done=done)

    def _refuses(self) -> bool:
        """Whether the file can only be looked at, which is said."""
        if self.area.read_only:
            self.services.say(f"{self.shown} is read-only here: its text stays as it is.", "warning")
        return self.area.read_only

    def _ask_for_new(self, text: str, old: str) -> None:
        """Ask what comes in the place of a text, which may be nothing."""

        def done(new: str) -> str | None:
            words = f"{plural(text.count(old), 'place')}: {flat(old)} → {flat(new) or 'nothing'}"
            self.call_later(self._review, "Replace", text, text.replace(old, new), words)
            return None

        self.ask(f"replace {flat(old, 40)} with", placeholder="leave empty to delete it", done=done)

    def action_comment(self) -> None:
        """Make comments of the lines of the selection, or lines again of comments."""
        if self.form == "json" or not self.checks:
            self.services.say("Comments are for YAML and DOT.")
        elif not self._refuses():
            self.area.toggle_comments("// " if self.form == "dot" else "# ")

    def action_pane(self) -> None:
        """From the text to the problems and back."""
        (self.problem_pane if self.focused is self.area else self.area).focus()

    def action_external(self) -> None:
        """Open the file in $EDITOR; what is not saved has to be saved first."""
        if self.unsaved:
            self.services.say(told("Save first ({editor.save}): $EDITOR reads the file."), "warning")
            return
        row, column = self.area.cursor_location
        self.services.navigation.edit_outside(self.path, row + 1, column + 1)
        self.file_changed(self.path)

    # -- definitions -------------------------------------------------------------------------------------------------

    def action_definition(self) -> None:
        """Go to where the phase, tool or file under the cursor is defined."""
        if not self.cascade:
            self.services.say("Definitions are known in cascades only.")
            return
        thing = named_at(self.area.plain_text, self.area.offset_in_text, self.form)
        found = self.definitions.of(thing, self.names) if thing is not None else None
        if thing is None or found is None:
            named = f"{thing.name} is not defined here." if thing is not None and thing.name else ""
            self.services.say(named or "Put the cursor on the name of a phase, a tool or a file.")
        elif found.file:
            self._open_definition(thing, found)
        elif found.line:
            self._before.append(self.area.cursor_location)
            self.area.go_to(found.line, self._column_of(thing.name, found.line))
            self.area.focus()
        else:
            self.services.say(f"{thing.name} is built in. {found.about[0] if found.about else ''}".rstrip())

    def _column_of(self, name: str, line: int) -> int:
        """The column of a name on a line, from 1."""
        return max(0, self.area.document.get_line(line - 1).find(name)) + 1

    def _open_definition(self, thing: NamedThing, found: Definition) -> None:
        file = self._looker.file_of(found.file)
        if file is None:
            self.services.say(f"There is no file {found.file} beside this one or in the workspace.", "warning")
        elif file.resolve() == self.path.resolve():
            self.area.go_to(found.line)
        else:
            self.services.navigation.open_editor(file, max(1, found.line))

    def action_back(self) -> None:
        """Go back to where the cursor was before a jump to a definition."""
        if not self._before:
            self.services.say("There is no earlier place in this file.")
            return
        self.area.move_cursor(self._before.pop(), center=True)
        self.area.focus()

    def action_rename(self) -> None:
        """Give the phase under the cursor another name, everywhere in the file, after a look at the change."""
        text = self.area.plain_text
        thing = named_at(text, self.area.offset_in_text, self.form)
        if not self.cascade or self.area.read_only or thing is None or thing.kind != "phase":
            self.services.say("Put the cursor on the name of a phase, or on a place that names one.")
            return
        old = thing.name

        def done(new: str) -> str | None:
            try:
                changed = self._looker.renamed(text, old, new.strip())
            except EditError as fault:
                return str(fault)
            # Not from here: the prompt, which would get the answer, is gone by then.
            also = self._looker.named_elsewhere(text, old)
            self.call_later(self._review, "Rename", text, changed, f"{flat(old)} → {flat(new.strip())}", also)
            return None

        self.ask(f"rename {flat(old, 40)} to", value=old, done=done)

    def _review(self, heading: str, before: str, after: str, words: str, also: Sequence[str] = ()) -> None:
        """Show the change; ``also`` are files beside this one that name the phase, too."""
        title = ((heading, "title"), (f"  {words}", "name"))
        lines = diff_lines(before, after)
        if also:
            told_of = f"Not changed: {flat(', '.join(also))} names it too. Change it there yourself."
            lines = [TextLine(told_of, "warning"), TextLine(""), *lines]
        sheet = ReviewSheet(TextRows(lines, title))
        self.services.push_screen(sheet, lambda agreed: self._reviewed(before, after, agreed=bool(agreed)))

    def _reviewed(self, before: str, after: str, *, agreed: bool) -> None:
        """Put the changed text in place of the one that it was made of, as one edit that undo takes back."""
        if not agreed:
            return
        if self.area.plain_text != before:
            self.services.say("The text has changed meanwhile; it stays as it is.", "warning")
            return
        place, top = self.area.cursor_location, self.area.scroll_offset.y
        self.area.replace(after, self.area.document.start, self.area.document.end)
        self.area.move_cursor(place)
        self.area.scroll_to(y=top, animate=False)
        self.services.say(told("Changed; not saved yet ({editor.save} saves, {text.undo} takes it back)."))

    # -- the file on disk --------------------------------------------------------------------------------------------

    def open_file(self) -> None:
        """Read the file anew and show it; the cursor stays where it was."""
        try:
            found = TextFile.read(self.path)
        except OSError as fault:
            found = TextFile(self.path, None, "", refusal=f"cannot be read: {fault.strerror}")
        place, top = self.area.cursor_location, self.area.scroll_offset.y
        first = self.file is None
        self.file, self.on_disk = found, ""
        if found.refusal:
            self.area.language = None
        self.area.load_text(found.text)
        self.area.read_only = bool(found.refusal)
        if first:
            self.area.go_to(*self._place)
        else:
            self.area.move_cursor(place)
            self.area.scroll_to(y=top, animate=False)
        if found.raw is None and not found.refusal:
            self.services.say(f"{self.shown} does not exist yet: saving creates it.", "warning")
        elif found.refusal:
            self.services.say(f"{self.shown} is read-only here: {found.refusal}.", "warning")
        self.show_header()

    # -- what a killed app leaves ------------------------------------------------------------------------------------

    def keep_draft(self, unsaved: str) -> None:
        """Keep what is not saved, in a worker; nothing is kept of a text that is on disk."""
        if self._leaving:
            return
        try:
            self._draft.keep(unsaved) if unsaved else self._draft.drop()
        except OSError as fault:
            self.app.call_later(self.services.say, f"unsaved text cannot be backed up: {fault}", "warning")

    def offer_draft(self) -> None:
        """Ask whether the text that was not saved when the app ended is to be taken up again."""
        kept = self._draft.text()
        if kept is None or self.file is None or self.file.refusal or kept == self.file.text:
            return

        def answered(answer: str | None) -> None:
            if answer == "take":
                self.area.replace(kept, self.area.document.start, self.area.document.end)
            elif answer == "drop":
                self._draft.drop()

        text = f"The app ended before changes to {self.shown} were saved."
        answers = (("take", "t", "Restore them; undo goes back to the file"), ("drop", "d", "Discard them"))
        self.services.push_unasked(ChoiceDialog("Unsaved changes", text, answers), answered)

    # -- saving ------------------------------------------------------------------------------------------------------

    def action_save(self) -> None:
        """Write the text; ask first where the file on disk is not the one that was read."""
        self.save(overwrite=False)

    def save(self, *, overwrite: bool) -> bool:
        """Write the text; whether it is on disk now."""
        if self.file is None:
            return False
        try:
            self.file = self.file.save(self.area.text, overwrite=overwrite)
        except ChangedMeanwhile:
            self._ask_about_disk()
            return False
        except CannotSave as fault:
            self.services.say(str(fault), "error")
            return False
        self.on_disk = ""
        self._draft.drop()
        self.services.say(f"saved {self.shown}")
        self._looker.forget()
        self._check()
        self.show_header()
        return True

    def _ask_about_disk(self) -> None:
        """Ask what happens to a file that another program changed, of what is there now."""
        seen = _content(self.path)
        gone = seen is None and not self.path.exists()
        text = (
            f"{self.shown} was deleted on disk since you opened it."
            if gone
            else f"{self.shown} was changed on disk since you opened it. Your text is not written yet."
        )
        answers = [("stay", "s", "Keep editing; nothing is written"), ("overwrite", "o", "Overwrite it with my text")]
        if not gone:
            answers.insert(1, ("reload", "r", "Load the version on disk; undo brings my changes back"))
        self.app.push_screen(ChoiceDialog("The file changed", text, answers), partial(self._answered_about_disk, seen))

    def _answered_about_disk(self, seen: bytes | None, answer: str | None) -> None:
        if answer == "overwrite" and _content(self.path) != seen:
            self._ask_about_disk()  # It changed once more: nobody was asked about that version.
        elif answer == "overwrite":
            self.save(overwrite=True)
        elif answer == "reload":
            self._take_from_disk()

    def _take_from_disk(self) -> None:
        """The text on disk as an edit, so that undo brings the other one back."""
        try:
            found = TextFile.read(self.path)
        except OSError as fault:
            self.services.say(f"{self.shown}: cannot be read: {fault.strerror}", "error")
            return
        if found.refusal:
            self.open_file()
            return
        place = self.area.cursor_location
        self.area.replace(found.text, self.area.document.start, self.area.document.end)
        self.file, self.on_disk = found, ""
        self.area.move_cursor(place)
        self.show_header()

    def file_changed(self, path: Path) -> None:
        """A watched file has new content, or is gone."""
        if path.resolve() != self.path.resolve() or self.file is None or self.file.same_on_disk():
            return
        if not self.path.exists():
            self.on_disk = "deleted on disk"
        elif self.unsaved:
            self.on_disk = "changed on disk"
            words = told("{file} was changed on disk; {editor.save} asks what to do.", file=self.shown)
            self.services.say(words, "warning")
        else:
            self._take_from_disk()
            self.services.say(f"{self.shown} was changed on disk, and is shown as it is now.")
        self.show_header()

    # -- leaving -----------------------------------------------------------------------------------------------------

    def action_close(self) -> None:
        """Drop a filter; without one, go back to the Bench. Changes are not lost without a question."""
        if self.clear_found():
            return
        if not self.unsaved:
            self._leave()
            return
        answers = (
            ("stay", "e", "Keep editing"),
            ("save", "s", "Save and go back"),
            ("drop", "d", "Discard the changes and go back"),
        )
        self.app.push_screen(
            ChoiceDialog("Not saved", f"{self.shown} has changes that are not saved.", answers), self._left
        )

    def _left(self, answer: str | None) -> None:
        if answer == "drop" or (answer == "save" and self.save(overwrite=False)):
            self._leave()

    def _leave(self) -> None:
        self.drop_draft()
        if self.app.screen is self:
            self.dismiss()

    def drop_draft(self) -> None:
        """Keep nothing aside of what is not saved, from now on."""
        self._leaving = True
        self._draft.drop()


def _titled(rows: Rows, count: int) -> Rows:
    rows.title = (("Problems", "title"), (f"  {count:,}" if count else "", "faint"))
    rows.title_right = ()
    rows.empty = ("The file has no problems.",)
    return rows


def _content(path: Path) -> bytes | None:
    """The bytes of a file; None where there are none to read."""
    try:
        return path.read_bytes()
    except OSError:
        return None
