"""Asks what is to be said of a run or a call, and writes it beside the run, behind what is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from msgspec import Struct
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from workbench.context.place import Place
from workbench.engine.journal.annotations import DOWN, LONGEST_NOTE, UP, AnnotationError, Change, check_score, check_tag
from workbench.store.faults import StoreError
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import Dialog
from workbench.tui.screens.sheet import Sheet
from workbench.tui.text import plain
from workbench.tui.widgets.area import WritingArea
from workbench.views.annotations import score_words
from workbench.views.cells import Span
from workbench.views.keys import told
from workbench.views.text import TextLine, TextRows, text_lines
from workbench.workspace.annotating import annotated, known_tags
from workbench.workspace.links import SharedLinks, address_of, answers

if TYPE_CHECKING:
    from workbench.engine.journal.annotations import Annotations, Labels
    from workbench.tui.contracts import Services
    from workbench.workspace.project import Project


class NoteDialog(Dialog[str]):
    """A text of several lines. Gives it when it is saved, empty where all of it was deleted; None when it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog"), *bindings("note")]

    def __init__(self, name: str, text: str) -> None:
        """``name``: of what it is on. ``text``: what was written before."""
        super().__init__()
        self.heading = f"Note on {name}"
        self.offered = ((told("{note.save}"), "save"),)
        self._before = text
        self._warned = False

    def content(self) -> Sequence[Widget]:
        return (
            WritingArea(
                self._before,
                id="note",
                soft_wrap=True,
                compact=True,
                tab_behavior="focus",
                placeholder=plain("What is worth knowing about it, in one line or several"),
            ),
            Static(plain(""), id="objection"),
        )

    def on_mount(self) -> None:
        area = self.query_one(WritingArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_save(self) -> None:
        """Give the text, unless it is too long."""
        text = self.query_one(WritingArea).text
        if len(text.strip()) > LONGEST_NOTE:
            self._object(f"A note has at most {LONGEST_NOTE:,} characters; this one has {len(text.strip()):,}.")
        else:
            self.dismiss(text)

    def action_close(self) -> None:
        """Close it; the first time with changes, say so."""
        if self.query_one(WritingArea).text != self._before and not self._warned:
            self._warned = True
            self._object(told("Not saved. {note.save} saves it, {dialog.close} once more drops it."))
        else:
            self.dismiss(None)

    def _object(self, words: str) -> None:
        objection = self.query_one("#objection", Static)
        objection.update(plain(words))
        objection.display = True


What = Literal["tag", "note", "score", "up", "down"]


class Host(Protocol):
    """The screen on which it is asked."""

    @property
    def services(self) -> Services:
        """The services of the app for its screens."""
        ...

    def ask(self, label: str, **options: Any) -> None:
        """Open the one-line prompt; see ``Prompt`` for the options."""
        ...

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        ...

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        ...


class AnnotationTarget(Struct, frozen=True):
    """The target of an annotation: a run, a call of it, or several runs."""

    project: Project
    run_ids: tuple[str, ...]
    """One run, or several of which the same is said."""
    name: str
    """In words: the run's name, ``triage:3``, or ``3 runs``."""
    labels: Labels
    """Its labels; of several runs those that each has."""
    taken: Callable[[str, Annotations], object]
    """Gets the run id and what is said of the run, when it is written."""
    place: Place = Place()


class Annotator:
    """The keys of the group "Annotations", on any screen."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._numbers = count()

    def annotate(self, what: What, target: AnnotationTarget) -> None:
        """Ask for tags, a note or a score; a thumb is set at once, and the same again removes it."""
        match what:
            case "tag":
                self._tags(target)
            case "note":
                self._note(target)
            case "score":
                self._score(target)
            case _:
                thumb = UP if what == "up" else DOWN
                again = target.labels.thumb == thumb
                said = f"Thumb {thumb} removed" if again else f"Thumb {thumb}"
                change = Change(target.place, thumb="" if again else thumb, drop_thumb=again)
                self._write(target, change, f"{said}: {target.name}.")

    def link(self, project: Project, run_id: str, session_id: str, name: str, place: Place = Place()) -> None:
        """Make a read-only link, copy it, and show it: a clipboard may be missing, and nothing tells it later."""
        services, later = self._host.services, self._host.later

        def work() -> None:
            try:
                links = SharedLinks(project)
                link, token = links.make(run_id, session_id)
            except OSError as fault:
                later(services.say, f"links cannot be kept: {fault.strerror}", "error")
                return
            port = links.port
            address = address_of(link, token, port, str(place) if place != Place() else "")
            until = f"It works while 'workbench serve' runs, until {link.until[:10]}. "
            until += f"'workbench link --revoke {link.id}' ends it before."
            lines = [TextLine(address, "accent"), TextLine(""), *text_lines(until)]
            if not answers(port):
                lines.append(TextLine(f"Nothing answers at port {port} now.", "warning"))
            title: tuple[Span, ...] = (("Read-only link", "title"), (f"  {name}", "name"))
            later(services.push_unasked, Sheet(TextRows(lines, title, copy=address)))
            later(services.copy, address, f"a read-only link to {name}")

        self._host.in_background(work, "link")

    def _tags(self, target: AnnotationTarget) -> None:
        before = target.labels.tags

        def done(text: str) -> str | None:
            try:
                wanted = tuple(dict.fromkeys(map(check_tag, text.split())))
            except AnnotationError as fault:
                return str(fault)
            gone = tuple(tag for tag in before if tag not in wanted)
            new = tuple(tag for tag in wanted if tag not in before)
            if new or gone:
                parts = [" ".join(f"#{tag}" for tag in new), *(f"#{tag} removed" for tag in gone)]
                said = ", ".join(part for part in parts if part)
                self._write(target, Change(target.place, tags=new, untag=gone), f"{target.name}: {said}.")
            return None

        def words() -> tuple[str, ...]:
            return known_tags(target.project.store)

        self._host.ask(
            f"tags of {target.name}",
            value="".join(f"{tag} " for tag in before),
            extends=True,
            placeholder="words separated by spaces · delete a word to remove it",
            done=done,
            words=words,
            between=" ",
        )

    def _score(self, target: AnnotationTarget) -> None:
        before = target.labels.score

        def done(text: str) -> str | None:
            if not text.strip():
                if before is not None:
                    self._write(target, Change(target.place, drop_score=True), f"{target.name}: score removed.")
                return None
            try:
                score = check_score(text.strip())
            except AnnotationError as fault:
                return str(fault)
            self._write(target, Change(target.place, score=score), f"{target.name}: score {score_words(score)}.")
            return None

        value = score_words(before)
        self._host.ask(f"score of {target.name}", value=value, placeholder="a number · empty for none", done=done)

    def _note(self, target: AnnotationTarget) -> None:
        before = target.labels.notes

        def written(text: str | None) -> None:
            if text is None:
                return
            notes = (text,) if text.strip() else ()
            said = "Note saved" if notes else "Note removed"
            self._write(target, Change(target.place, notes=notes, drop_notes=before), f"{said}: {target.name}.")

        self._host.services.push_screen(NoteDialog(target.name, "\n\n".join(before)), written)

    def _write(self, target: AnnotationTarget, change: Change, said: str) -> None:
        services, later = self._host.services, self._host.later

        def work() -> None:
            try:
                for run_id in target.run_ids:
                    later(target.taken, run_id, annotated(target.project, run_id, change))
            except (StoreError, AnnotationError) as fault:
                later(services.say, f"{fault}", "error")
                return
            later(services.say, said)

        # A group of its own: what was asked for is written, whatever is asked for next.
        self._host.in_background(work, f"annotate {next(self._numbers)}")
