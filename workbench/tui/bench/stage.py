"""Protocols: what the controllers of the Bench need of its screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from workbench.tui.bench.panes import Panes
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.tabs import Tab
    from workbench.tui.contracts import Services
    from workbench.workspace.session import Session


class Stage(Protocol):
    """The Bench as its controllers see it."""

    panes: Panes
    presenter: Presenter | None

    @property
    def services(self) -> Services:
        """The services of the app for its screens."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether the Bench is on top, and nothing is being written in its prompt."""
        ...

    def live(self) -> tuple[Session, Presenter] | None:
        """The session and what shows it, once they are there."""
        ...

    def redraw(self) -> None:
        """Draw every pane and the footer from the state."""
        ...

    def soon(self) -> None:
        """Look at the queues of the engine sooner than at the next frame."""
        ...

    def ask(self, label: str, **options: Any) -> None:
        """Open the one-line prompt; see ``Prompt`` for the options."""
        ...

    def focus_pane(self, name: str) -> None:
        """Put the focus on a pane, and show it where only one shows at a time."""
        ...

    def show_tab(self, name: Tab) -> None:
        """Show a tab of the lower pane."""
        ...

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        ...

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        ...


class Layout(Stage, Protocol):
    """The Bench with the sizes and places of its panes."""

    tree_width: int | None
    """Cells that the user chose for the tree; None for as wide as it is by itself."""
    dock_height: int | None
    """Lines that the user chose for the lower pane; None for as high as it is by itself."""
    last_pane: str
    """The pane that has the focus, or had it last."""

    @property
    def is_zoomed(self) -> bool:
        """Whether one pane has the whole screen."""
        ...

    def zoom(self) -> None:
        """Give the focused pane the whole screen, or give it back."""
        ...

    def size_panes(self) -> None:
        """Give the panes the sizes that the user chose."""
        ...

    def after_refresh(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something when what changed is laid out and drawn."""
        ...
