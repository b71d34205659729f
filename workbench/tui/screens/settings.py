"""Settings: every value with its origin, and every key; a change goes into a file, with its comments kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import Span, flat, width_of
from workbench.views.keys import ALWAYS, FOOTERS, KEYS, command_of, displayed, resolve
from workbench.views.model import Rows
from workbench.views.settings import KeyRows, SettingRows, order_words, setting_doc, value_text
from workbench.views.text import TextRows
from workbench.workspace.config_file import Target, file_of, place_of, read_value, set_value, take_over, unset_value
from workbench.workspace.settings import TABLE, SettingsError
from workbench.workspace.text_file import CannotSave

if TYPE_CHECKING:
    from workbench.workspace.project import Project

_DEFAULTS = {key.id: key.keys for key in KEYS}


class SettingsScreen(WorkbenchScreen[None]):
    """Two lists, settings and keys, with the details of the selected row."""

    CSS_PATH = "settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("settings")
    CLEARS: ClassVar[str] = "settings.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("settings", "list")
    needs_focus: ClassVar[bool] = True
    AUTO_FOCUS = "#list"

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._files = (file_of(project, "user"), file_of(project, "workspace"))
        self._tab = "settings"
        self._fault = ""
        """Why the files could not be read anew."""
        self._header = SpanLine(id="header")
        self.rows_pane = RowView(Rows(), id="list")
        self.doc_pane = RowView(Rows(), id="doc", selecting=False)

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.rows_pane
        yield self.doc_pane
        yield self.footer

    def on_mount(self) -> None:
        self._read()
        self.call_after_refresh(self.show_rows)

    def _read(self) -> None:
        """The files as they are now; what is wrong with them is shown, and the old values stay."""
        try:
            take_over(self._project)
        except SettingsError as fault:
            self._fault = self._brief(str(fault))
        else:
            self._fault = ""

    def _brief(self, fault: str) -> str:
        """The folder is in the lower pane; the place and the mistake must not be cut off for it."""
        return fault.replace(f"{self._files[0].parent}/", "").replace(f"{self._files[1].parent}/", "")

    # -- what is shown -----------------------------------------------------------------------------------------------

    def _problems(self) -> dict[str, str]:
        found: dict[str, str] = {}
        settings = self._project.settings
        theme = str(settings.theme)
        if theme not in self.app.available_themes:
            found["theme"] = f"there is no theme '{theme}'; there are {', '.join(sorted(self.app.available_themes))}"
        clashes = resolve(settings.keys)[1]
        if clashes:
            places = (place_of(settings, "keys", command_of(clash)) for clash in clashes)
            found["keys"] = "; ".join(self._brief(f"{at}: {it}") for at, it in zip(places, clashes, strict=True))
        return found

    def _in_force(self) -> dict[str, str]:
        """Returns the values that the file that is open in the Bench uses where a setting names none, in the words of
        its header."""
        session = self.services.session
        facts = session.header if session is not None else None
        return {"default_model": facts.model, "base_url": facts.base_url} if facts is not None else {}

    def _all_rows(self) -> SettingRows | KeyRows:
        settings = self._project.settings
        if self._tab == "keys":
            table, problems = resolve(settings.keys)
            return KeyRows(table, settings.keys, problems)
        return SettingRows(TABLE, settings, self._files, self._problems(), self._in_force())

    def show_rows(self, cursor: int | None = None) -> None:
        """Draw the list again; the cursor stays where it is."""
        rows = self._all_rows()
        on, off = ("tab-on", "tab") if self._tab == "settings" else ("tab", "tab-on")
        rows.title = (("Settings", on), (" │ ", "separator"), ("Keys", off))
        self.rows_pane.show(rows, cursor)
        self._offer()
        self._show_doc()
        token = "error" if self._fault else "dim"
        left: list[Span] = [(" settings ", "faint"), (flat(self._project.root.name), "bold"), ("   ", "plain")]
        words = self._fault or order_words(self.size.width - width_of(left))
        self._header.show((*left, (flat(words, 300), token)))

    def _offer(self) -> None:
        """The footer: keys are in the user's file alone, and the key of the tabs names the other one."""
        at_keys = self._tab == "keys"
        commands = (id for id in FOOTERS["settings"] if not (at_keys and id == "settings.workspace"))
        self.offer(commands, ALWAYS[:2], {"settings.tab": "settings"} if at_keys else {})

    def _index(self) -> int:
        """The row under the cursor among all rows; -1 for none."""
        return self.rows_pane.cursor if len(self.rows_pane.rows) else -1

    def _show_doc(self) -> None:
        index, inner = self._index(), self._all_rows()
        doc: Rows = TextRows([])
        if isinstance(inner, SettingRows) and 0 <= index < len(inner):
            setting = inner.settings[index]
            problem = self._problems().get(setting.name, "")
            doc = setting_doc(setting, self._project.settings, self._files, problem, self._in_force())
        elif isinstance(inner, KeyRows) and 0 <= index < len(inner):
            doc = inner.doc(index, _DEFAULTS)
        self.doc_pane.show(doc, 0)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.show_rows)

    @on(RowView.Chosen, "#list")
    def _chosen(self) -> None:
        self._show_doc()

    @on(RowView.Opened, "#list")
    def _opened(self) -> None:
        self.action_change("user")

    @on(RowView.TitleClicked, "#list")
    def _title_clicked(self) -> None:
        self.action_tab()

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_tab(self) -> None:
        """From the settings to the keys and back."""
        self._tab = "keys" if self._tab == "settings" else "settings"
        self.rows_pane.filter = ""
        self.show_rows(0)

    def action_change(self, target: Target) -> None:
        """Ask for another value, and write it into the user's file or the workspace's."""
        index, inner = self._index(), self._all_rows()
        if index < 0:
            return
        if isinstance(inner, KeyRows) and target == "workspace":
            self.services.say("A workspace may not set keys: they are in your own file.", "warning")
            return
        if isinstance(inner, KeyRows):
            self._change_key(inner.keys[index].id, inner.keys[index].keys)
            return
        setting = inner.settings[index]
        if setting.name == "keys":
            self.action_tab()
            return
        if target == "workspace" and not setting.workspace:
            self.services.say(f"A workspace may not set {setting.name}: it acts outside the workspace.", "warning")
            return

        def done(text: str) -> str | None:
            return self._tried(lambda: set_value(self._project, setting.name, read_value(setting, text), target))

        now = self._project.settings.values.get(setting.name)
        words = ", ".join(setting.choices) or ("true, false" if setting.type is bool else setting.help)
        shown = "" if now in (None, "", [], {}) else value_text(now)
        # A URL whose password is not shown must not be written back without it.
        value = shown if not isinstance(now, str) or shown == now else ""
        self.ask(f"{setting.name} in {target} file", value=value, placeholder=words, done=done)

    def _change_key(self, id: str, keys: str) -> None:
        def done(text: str) -> str | None:
            wanted = ",".join(name.strip() for name in text.split(",") if name.strip())
            if not wanted:
                return "at least one key, as in f5 or ctrl+r"
            others = {name: value for name, value in self._project.settings.keys.items() if name != id}
            problems = resolve({**others, id: wanted})[1]
            mine = [problem for problem in problems if problem.startswith(f"keys.{id}:")]
            if mine:
                return mine[0]
            return self._tried(lambda: set_value(self._project, "keys", wanted, "user", key=id))

        self.ask(f"keys of {id}", value=displayed(keys).replace(", ", ","), done=done)

    def action_unset(self) -> None:
        """Take the value out of the user's file."""
        index, inner = self._index(), self._all_rows()
        if index < 0:
            return
        if isinstance(inner, KeyRows):
            id = inner.keys[index].id
            objection = self._tried(lambda: unset_value(self._project, "keys", "user", key=id))
        else:
            name = inner.settings[index].name
            target: Target = "workspace" if self._from_workspace(name) else "user"
            objection = self._tried(lambda: unset_value(self._project, name, target))
        if objection:
            self.services.say(objection, "warning")

    def _from_workspace(self, name: str) -> bool:
        return self._project.settings.origins.get(name) == str(self._files[1])

    def _tried(self, change: Callable[[], Any]) -> str | None:
        """Make a change and show what counts now; the objection, if it cannot be made."""
        try:
            written = change()
        except (SettingsError, CannotSave) as fault:
            place, _, told = str(fault).partition(": error: ")
            # The place of a value that was typed is the setting's name, which the message has, too.
            return told if any(place == one.name for one in TABLE) else str(fault)
        self._read()
        self.services.take_settings(self._project.settings)
        self.show_rows()
        known = written.origin in (str(written.file), "default")
        wins = "" if known else f", but {written.origin} overrides it"
        self.services.say(f"Written to {written.file}{wins}.", "information" if known else "warning")
        return None

    def action_external(self) -> None:
        """Open the user's file in $EDITOR; what it says then counts."""
        file = self._files[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        self.services.navigation.edit_outside(file, 1)
        self._read()
        self.services.take_settings(self._project.settings)
        self.show_rows()

    def action_close(self) -> None:
        """Drop the filter; without one, back."""
        if not self.clear_found():
            self.dismiss()

    def pane(self) -> RowView:
        """The list, also where the text below it has the focus."""
        return self.rows_pane
