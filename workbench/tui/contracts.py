"""The contract between the app and its screens, panes and controllers: its services, and its navigation.

They import this module in place of the app and of each other, so that imports run one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from workbench.tui.notices import Notices
from workbench.tui.notices import Severity as Severity

if TYPE_CHECKING:
    from textual.message_pump import MessagePump
    from textual.screen import Screen
    from textual.signal import Signal

    from workbench.context.place import Place
    from workbench.engine.debugger.stepper import Mode
    from workbench.engine.edits import Edit
    from workbench.engine.journal.parts import CallState
    from workbench.tools.capabilities import Capability
    from workbench.tui.palette import Palette
    from workbench.views.batch import BatchPosition
    from workbench.views.keys import Key
    from workbench.views.result import FoundPlace
    from workbench.views.tab_line import TabLabel
    from workbench.workspace.session import Reload, Session, Workspace
    from workbench.workspace.settings import Settings


class HasPalette(Protocol):
    """An app with the colours of a theme: all that a widget needs of it."""

    @property
    def palette(self) -> Palette:
        """The tokens of the visual language in the current theme."""
        ...


class Navigation(Protocol):
    """Opens screens, runs and files."""

    @property
    def batch(self) -> BatchPosition:
        """Where the screen of batches was left."""
        ...

    def to_bench(self, then: Callable[[], object] | None = None) -> None:
        """Go back to the Bench, whatever is on top of it, then call ``then``."""
        ...

    def show_file(self, file: Path) -> None:
        """Open a cascade in the Bench."""
        ...

    def show_run(self, run_id: str) -> None:
        """Show a stored run in the Bench, over its own file."""
        ...

    def show_call(self, run_id: str, found: FoundPlace) -> None:
        """Show a stored run in the Bench, at the call that ``found`` names, if it names one."""
        ...

    def show_annotated(self, run_id: str, places: Sequence[str]) -> None:
        """Show a stored run in the Bench, at the first of the calls at these places, which a filter fits."""
        ...

    def resume_run(self, run_id: str) -> None:
        """Show a stored run, and resume it; it pauses before its next call."""
        ...

    def fork_run(self, run_id: str, place: str) -> None:
        """Show a stored run, and start a fork of it that pauses before the call at a place."""
        ...

    def freeze_run(self, run_id: str) -> None:
        """Show a stored run, and freeze it as a test."""
        ...

    def open_session(self, workspace: Workspace, make: Callable[[Workspace], Session]) -> None:
        """Open a session of a workspace in a tab of its own."""
        ...

    def beside(self, then: Callable[[], object], source: str = "") -> None:
        """Open what is shown once more in a tab of its own, then call ``then``, which starts a run there. With a run as
        its ``source`` nothing opens where that cannot be read."""
        ...

    def begin(self, mode: Mode) -> None:
        """Start a run of what is shown."""
        ...

    def fork_here(
        self, run_id: str, place: str, said: str, edits: Sequence[Edit] = (), stop: str = "before_call"
    ) -> None:
        """In what is shown: start a fork of a run that pauses at a ``stop`` of the call at a place, which is named
        ``said``, with edits made there."""
        ...

    def rerun_here(self, run_id: str) -> None:
        """In what is shown: run the file again with the recorded answers of a run."""
        ...

    def step_tab(self, by: int) -> None:
        """Show the tab so many places to the right."""
        ...

    def close_tab(self) -> None:
        """Close the tab that is shown; asks while its run is active."""
        ...

    def open_editor(self, file: Path, line: int = 1, column: int = 1) -> None:
        """Open a cascade file in the app's editor, at a place."""
        ...

    def edit_outside(self, file: Path, line: int, column: int = 1) -> bool:
        """Open a file in $VISUAL or $EDITOR, at a place; returns when that program ends: whether it could be run."""
        ...


class Services(Protocol):
    """The services of the app for its screens, panes and controllers."""

    session: Session | None
    keys: tuple[Key, ...]
    """The table of keys, with the user's own."""
    given: dict[str, Any]
    """Inputs for the next run."""
    asked_to_allow: frozenset[Capability]
    """Capabilities that the user was asked to allow since the app began, whatever the answer was."""
    file_saved: Signal[Path]
    """A watched file has new content, or is gone."""

    @property
    def palette(self) -> Palette:
        """The tokens of the visual language in the current theme."""
        ...

    @property
    def navigation(self) -> Navigation:
        """Opens screens, runs and files."""
        ...

    @property
    def tab_labels(self) -> Sequence[TabLabel]:
        """The label of each open tab."""
        ...

    @property
    def calls(self) -> Sequence[CallState]:
        """The model calls of the run that the Bench shows, in their order."""
        ...

    def look_at_call(self, place: Place) -> None:
        """Look at a call of that run."""
        ...

    @property
    def draws_pictures(self) -> bool:
        """Whether images can be shown: a session is open, and the terminal has the colours."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of panes that the user chose, by the name of the border."""
        ...

    def choose_size(self, name: str, size: int | None) -> None:
        """Keep a size for all workspaces, or None for the size that the pane has by itself."""
        ...

    notices: Notices
    """The messages in the last line."""

    def say(self, text: str, severity: Severity = "information") -> None:
        """Show a short message in the last line."""
        ...

    def copy(self, text: str, what: str) -> None:
        """Copy text to the clipboard; the message names it as ``what``."""
        ...

    async def run_command(self, command: str) -> None:
        """Run a command of the key table by its id, or ``theme:name``."""
        ...

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None] | None = None) -> object:
        """Open a screen; ``callback`` gets what it is dismissed with."""
        ...

    def say_at_end(self, text: str) -> None:
        """Say something on the terminal when the app has ended, too."""
        ...

    def push_unasked(self, screen: Screen[Any], answered: Callable[[Any], None] | None = None) -> None:
        """Open a screen that no key asked for: it takes no key that was typed before it could be seen."""
        ...

    def press_early_keys(self) -> None:
        """There is something now that takes the keys pressed before: press them again."""
        ...

    def take_settings(self, settings: Settings) -> None:
        """Apply the settings that count at once: the theme and the keys."""
        ...

    def take_reload(self, reload: Reload) -> None:
        """Show what a second look at the cascade file found."""
        ...


def services_of(node: MessagePump) -> Services:
    """The services of the app that a screen or a widget belongs to."""
    return cast("Services", node.app)


def palette_of(node: MessagePump) -> Palette:
    """The palette of the app that a widget belongs to."""
    return cast("HasPalette", node.app).palette
