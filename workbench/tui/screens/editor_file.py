"""The editor and the file on disk: opened, saved whole, changed by somebody else, left."""

from __future__ import annotations

from pathlib import Path

from workbench.tui.key_words import told
from workbench.tui.screens.dialog import Choice
from workbench.tui.screens.editor_view import EditorView
from workbench.workspace.drafts import Draft
from workbench.workspace.text_file import CannotSave, ChangedMeanwhile, TextFile


class EditorFile(EditorView):
    """What ctrl+s and escape do, and what happens when the file changes underneath."""

    def __init__(self, path: Path, shown: str, draft: Draft, line: int = 1, column: int = 1) -> None:
        super().__init__(shown, "json" if path.suffix == ".json" else "yaml")
        self.path = path
        self._draft = draft
        self._leaving = False
        self._place = (line, column)

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
            self.app.say(f"{self.shown} is not there yet: saving makes it.", "warning")
        elif found.refusal:
            self.app.say(f"{self.shown} can only be looked at here: {found.refusal}.", "warning")
        self.show_header()

    # -- what a killed app leaves ------------------------------------------------------------------------------------

    def keep_draft(self, unsaved: str) -> None:
        """Keep what is not saved, in a worker; nothing is kept of a text that is on disk."""
        if self._leaving:
            return
        try:
            self._draft.keep(unsaved) if unsaved else self._draft.drop()
        except OSError as fault:
            self.app.call_later(self.app.say, f"what is not saved cannot be kept aside: {fault}", "warning")

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

        text = f"The app ended before changes of {self.shown} were saved."
        answers = (("take", "t", "Take them up again; undo gives the file"), ("drop", "d", "Drop them"))
        self.app.push_unasked(Choice("Not saved last time", text, answers), answered)

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
            self.app.say(str(fault), "error")
            return False
        self.on_disk = ""
        self._draft.drop()
        self.app.say(f"saved {self.shown}")
        self.saved()
        self.show_header()
        return True

    def saved(self) -> None:
        """The text is on disk; what depends on other files may be looked at again."""

    def _ask_about_disk(self) -> None:
        gone = not self.path.exists()
        text = (
            f"{self.shown} is gone from the disk since it was opened here."
            if gone
            else f"{self.shown} was changed on disk since it was opened here. Your text is not written yet."
        )
        answers = [("stay", "s", "Go on editing; nothing is written"), ("overwrite", "o", "Write my text over it")]
        if not gone:
            answers.insert(1, ("reload", "r", "Take what is on disk; my changes can be had back with undo"))
        self.app.push_screen(Choice("The file changed", text, answers), self._answered_about_disk)

    def _answered_about_disk(self, answer: str | None) -> None:
        if answer == "overwrite":
            self.save(overwrite=True)
        elif answer == "reload":
            self._take_from_disk()

    def _take_from_disk(self) -> None:
        """The text on disk as an edit, so that undo brings the other one back."""
        try:
            found = TextFile.read(self.path)
        except OSError as fault:
            self.app.say(f"{self.shown}: cannot be read: {fault.strerror}", "error")
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
            self.on_disk = "gone from the disk"
        elif self.unsaved:
            self.on_disk = "changed on disk"
            words = told("{file} was changed on disk; {editor.save} asks what to do.", file=self.shown)
            self.app.say(words, "warning")
        else:
            self._take_from_disk()
            self.app.say(f"{self.shown} was changed on disk, and is shown as it is now.")
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
            ("stay", "e", "Go on editing"),
            ("save", "s", "Save, and go back"),
            ("drop", "d", "Drop the changes, and go back"),
        )
        self.app.push_screen(Choice("Not saved", f"{self.shown} has changes that are not saved.", answers), self._left)

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
