"""The sections of a form as widgets: those that show, those that take an answer, and the columns that they stand in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Static, TextArea

from workbench.engine.forms.plain import how, image_line
from workbench.engine.forms.spec import (
    Accordion,
    AnySection,
    Code,
    Comparison,
    DataTable,
    FieldSection,
    Form,
    Image,
    Input,
    Layout,
    Markdown,
    Select,
    Tabs,
    Text,
)
from workbench.language.clean import clean
from workbench.tui.text import plain, styled
from workbench.tui.widgets.area import WritingArea
from workbench.tui.widgets.choices import Choices
from workbench.tui.widgets.entry import LineInput
from workbench.views.form import (
    card_pieces,
    choices_of,
    chosen_at_first,
    code_pieces,
    header_of,
    heading,
    is_multiple,
    markdown_pieces,
    names_of,
    table_pieces,
)
from workbench.views.picture import Drawn

WIDEST, AROUND = 150, 6
"""Cells of a form at most, as ``form.tcss`` says; and of them what frame, margins and the sign of a choice take more
than the numbers of a table's rows, which the choices do without."""
PADDED = 2
"""Cells beside what is only shown."""


class FormState(Struct, frozen=True):
    """The state that new widgets of a form take over from those that they replace."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    """By id of the section, as ``FieldBox.kept`` gave them."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """The mistake in an answer, by id of the section."""
    opened: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The positions of the panels that are open, by the identity of their section."""


def section_widget(section: AnySection, kept: FormState, width: int) -> Widget:
    """The widget of a section of the form, in a column of that width."""
    if isinstance(section, Accordion | Tabs):
        return PanelsBox(section, kept, width)
    if isinstance(section, FieldSection) and not (isinstance(section, DataTable) and section.selectable == "none"):
        return FieldBox(section, kept, width)
    return ShownBox(section, width)


def _room(widget: Widget, width: int) -> int:
    """Cells for the row of a table in a column of that width."""
    columns = max(1, widget.app.size.width // width)
    return min(width, WIDEST // columns) - AROUND


class ShownBox(Vertical):
    """A section to look at."""

    def __init__(self, section: AnySection, width: int) -> None:
        super().__init__(classes="section")
        self._section = section
        self._width = width

    def compose(self) -> ComposeResult:
        section = self._section
        if section.title:
            yield Static(plain(section.title), classes="label")
        match section:
            case Text():
                yield Static(plain(section.text))
            case Markdown():
                yield Static(styled(markdown_pieces(section.text)))
            case Image():
                yield Static(styled([("▣ ", "$accent"), (image_line(section), "")]), classes="picture")
                yield Thumbnail(section)
            case Code():
                yield Static(styled(code_pieces(section)), classes="code")
            case DataTable():
                yield Static(styled(table_pieces(section, _room(self, self._width) - PADDED)), classes="code")


class Thumbnail(Static):
    """An image in cells, once somebody has drawn it; until then it takes no room."""

    def __init__(self, image: Image) -> None:
        super().__init__("", classes="thumbnail")
        self.image = image
        self.display = False

    @property
    def room(self) -> int:
        """Cells that its section is wide."""
        return self.parent.size.width if isinstance(self.parent, Widget) else 0

    def draw(self, drawn: Drawn) -> None:
        """Show rows of half blocks, each in two colours."""
        lines = ((text, token.replace("/", " on ")) for row in drawn for text, token in (*row, ("\n", "")))
        self.update(styled(lines))
        self.display = True

    def fail(self, reason: str) -> None:
        """Say why there is no picture."""
        self.update(plain(f"not shown: {reason}"))
        self.display = True


class LinesInput(WritingArea):
    """Several lines to write."""


WIDE = 100
"""Cells; with fewer, everything stands in one column."""


def columns_of(form: Form, width: int) -> tuple[tuple[int, ...], ...]:
    """The sections of each column, by position. Below ``WIDE`` cells everything stands in one."""
    positions = range(len(form.sections))
    layout = form.layout if width >= WIDE else "vertical"
    count = {"two-column": 2, "three-column": 3, "grid": 2, "sidebar-left": 2, "sidebar-right": 2}.get(layout, 1)
    if layout == "horizontal":
        count = min(4, len(form.sections))
    columns: list[list[int]] = [[] for _ in range(max(1, count))]
    for position in positions:
        columns[_column(form.sections[position], position, layout, count)].append(position)
    return tuple(tuple(column) for column in columns)


def _column(section: AnySection, position: int, layout: Layout, count: int) -> int:
    if count <= 1:
        return 0
    if section.column is not None:
        return min(section.column, count) - 1
    if layout.startswith("sidebar"):
        # What is looked at goes into the sidebar, what is answered beside it.
        aside = 0 if layout == "sidebar-left" else 1
        return aside if isinstance(section, Image | Code | Markdown | Text) else 1 - aside
    return position % count


def widths_of(layout: Layout, columns: int) -> tuple[int, ...]:
    """Returns how wide the columns are to each other."""
    if columns == 2 and layout == "sidebar-left":
        return 1, 2
    if columns == 2 and layout == "sidebar-right":
        return 2, 1
    return (1,) * columns


class FieldBox(Vertical):
    """A section that takes an answer, with room to say what is wrong with it."""

    def __init__(self, section: FieldSection, kept: FormState, width: int) -> None:
        super().__init__(classes="section field")
        self.section = section
        self.problem = ""
        self._given = kept.answers.get(section.id)
        self._wide = width >= WIDE
        self._width = width
        self._problem = Static("", classes="problem")
        self.tell(kept.problems.get(section.id, ""))

    def compose(self) -> ComposeResult:
        section = self.section
        room = _room(self, self._width)
        if words := heading(section):  # type: ignore[arg-type]
            yield Static(plain(words), classes="label")
        if section.help:
            yield Static(plain(section.help), classes="muted")
        side_by_side = isinstance(section, Comparison) and self._wide and len(section.options) <= 4
        if isinstance(section, Comparison) and side_by_side:
            cards = ([(o.label + "\n", "bold"), *card_pieces(o)] for o in section.options)
            yield Horizontal(*(Static(styled(card), classes="card") for card in cards), classes="cards")
        if isinstance(section, DataTable):
            yield Static(plain("  " + header_of(section, room)), classes="head")
        if isinstance(section, Input):
            yield self._entry(section)
        else:
            chosen = self._given.get("chosen", ()) if isinstance(self._given, Mapping) else chosen_at_first(section)
            if isinstance(section, Comparison) and side_by_side:
                offered = names_of(section)
            else:
                offered = choices_of(section, room)
            yield Choices(offered, chosen, multiple=is_multiple(section), classes="choices")
            if isinstance(section, Select) and section.other:
                other = self._given.get("other", "") if isinstance(self._given, Mapping) else ""
                yield LineInput(other, placeholder="or another answer")
        yield self._problem

    def _entry(self, section: Input) -> Widget:
        default = section.default
        if isinstance(default, float) and default.is_integer():
            default = int(default)
        default = "" if default is None else str(default)
        text = clean(str(default if self._given is None else self._given))
        if section.kind == "multiline":
            return LinesInput(text, soft_wrap=True, show_line_numbers=False, classes="lines", tab_behavior="focus")
        hint = section.placeholder or ("" if how(section) == "text" else how(section))
        return LineInput(text, placeholder=clean(hint))

    @property
    def answer(self) -> Any:
        """The answer for ``forms/values.py``; None where nothing was given."""
        if isinstance(self.section, Input):
            return self._typed() or None
        chosen = self.query_one(Choices).chosen
        other = self._typed()
        if other and not chosen:
            return other
        return list(chosen) if is_multiple(self.section) else chosen[0] if chosen else None

    @property
    def kept(self) -> Any:
        """The value to give to a new widget of the same section, so that it looks like this one."""
        if isinstance(self.section, Input):
            return self._typed()
        return {"chosen": tuple(self.query_one(Choices).chosen), "other": self._typed()}

    def _typed(self) -> str:
        for entry in self.query(LineInput):
            return entry.value
        for area in self.query(TextArea):
            return clean(area.text)
        return ""

    @on(Choices.Changed)
    def _chosen(self) -> None:
        """The last one counts: what is chosen, or what is typed beside it."""
        if isinstance(self.section, Select) and self.query_one(Choices).chosen:
            for entry in self.query(LineInput):
                entry.value = ""

    @on(LineInput.Changed)
    def _other_typed(self, event: LineInput.Changed) -> None:
        if isinstance(self.section, Select) and event.value:
            self.query_one(Choices).take_back()

    def tell(self, problem: str) -> None:
        """Say what is wrong with the answer, or nothing."""
        self.problem = problem
        self._problem.update(plain(f"✗ {problem}"))
        self._problem.display = bool(problem)

    def enter(self, *, scroll: bool = True) -> None:
        """Put the cursor where the answer is given."""
        for widget in self.query("Choices, LineInput, TextArea"):
            widget.focus(scroll_visible=scroll)
            return


class PanelsBox(Vertical):
    """Panels under their names: of an accordion any may be open, of tabs one is."""

    def __init__(self, section: Accordion | Tabs, kept: FormState, width: int) -> None:
        super().__init__(classes="section panels")
        self.section = section
        self._kept = kept
        self._width = width
        self._tabbed = isinstance(section, Tabs)
        opened = [at for at, panel in enumerate(section.panels) if panel.open]
        at_first = frozenset(opened[:1] or [0]) if self._tabbed else frozenset(opened)
        self.opened = kept.opened.get(id(section), at_first)

    def compose(self) -> ComposeResult:
        if self.section.title:
            yield Static(plain(self.section.title), classes="label")
        buttons = [
            Button(self._words(at), compact=True, classes="panel-name") for at in range(len(self.section.panels))
        ]
        bodies = [
            Vertical(*(section_widget(inner, self._kept, self._width) for inner in panel.sections), classes="panel")
            for panel in self.section.panels
        ]
        if self._tabbed:
            yield Horizontal(*buttons, classes="tab-names")
            yield from bodies
        else:
            for button, body in zip(buttons, bodies, strict=True):
                yield button
                yield body

    def on_mount(self) -> None:
        self._show()

    def _words(self, at: int) -> Content:
        title, is_open = self.section.panels[at].title, at in self.opened
        if self._tabbed:
            return styled([(f" {title} ", "bold underline" if is_open else "")])
        return styled([("▾ " if is_open else "▸ ", "$primary"), (title, "")])

    def _show(self) -> None:
        for at, body in enumerate(self._own(".panel")):
            body.display = at in self.opened
        for at, button in enumerate(self._own(".panel-name")):
            assert isinstance(button, Button)
            button.label = self._words(at)

    def _own(self, selector: str) -> list[Widget]:
        """The parts of this box, not those of boxes inside its panels."""
        return [widget for widget in self.query(selector) if _owner(widget) is self]

    @on(Button.Pressed, ".panel-name")
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        at = self._own(".panel-name").index(event.button)
        self.opened = frozenset({at}) if self._tabbed else self.opened ^ {at}
        self._show()

    def reveal(self, widget: Widget) -> None:
        """Open the panel that holds a widget."""
        for at, body in enumerate(self._own(".panel")):
            if body in widget.ancestors:
                self.opened = frozenset({at}) if self._tabbed else self.opened | {at}
        self._show()


def _owner(widget: Widget) -> PanelsBox | None:
    return next((parent for parent in widget.ancestors if isinstance(parent, PanelsBox)), None)
