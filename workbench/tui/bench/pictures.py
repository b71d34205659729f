"""Makes the pictures that panes ask for small, in a thread, and has them drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.store.faults import StoreError
from workbench.views.picture import CannotDraw, make

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.tui.bench.stage import Stage


class Pictures:
    """Serves the gallery of the presenter."""

    def __init__(self, stage: Stage, drawn: Callable[[], None]) -> None:
        """``drawn`` draws the panes of every screen again."""
        self._stage = stage
        self._drawn = drawn
        self._developing = False

    def hang(self, *, enabled: bool) -> None:
        """Let the panes ask for pictures, where the terminal can show them."""
        if (presenter := self._stage.presenter) is not None:
            presenter.gallery.enabled = enabled
            presenter.gallery.wake = lambda: self._stage.later(self._develop_soon)

    def _develop_soon(self) -> None:
        if self._stage.live() is not None and not self._developing:
            self._developing = True
            self._stage.in_background(self._develop, "pictures")

    def _develop(self) -> None:
        """In a thread: make all that were asked for, the newest first."""
        try:
            if (live := self._stage.live()) is None:
                return
            session, presenter = live
            gallery, run_id = presenter.gallery, presenter.state.shown.run_id
            while (wanted := gallery.next()) is not None:
                try:
                    gallery.put(wanted, make(session.project.store.image(run_id, wanted.digest), wanted))
                except (CannotDraw, StoreError, OSError) as fault:
                    gallery.put(wanted, str(fault))
        finally:
            self._stage.later(self._developed)

    def _developed(self) -> None:
        """Draw the panes again; only lines that changed are."""
        self._developing = False
        self._drawn()
        if (presenter := self._stage.presenter) is not None and presenter.gallery.next() is not None:
            self._develop_soon()
