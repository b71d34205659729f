"""Makes the pictures that panes ask for small, in a worker, and has them drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual import work

from workbench.tui.screens.bench_tests import FreezeActions
from workbench.tui.widgets.rowview import RowView

if TYPE_CHECKING:
    from workbench.tui.presenter import Presenter
    from workbench.workspace.session import Session


class Pictures(FreezeActions):
    """The dark room of the Bench."""

    _developing = False

    def hang_pictures(self, presenter: Presenter) -> None:
        """Let the panes ask for pictures, where the terminal can show them."""
        presenter.gallery.enabled = self._has_colours()
        presenter.gallery.wake = lambda: self.app.call_later(self._develop_soon)

    def _has_colours(self) -> bool:
        """Sixteen colours show no picture."""
        many = self.app.console.color_system in ("256", "truecolor")
        return many and not self.app.current_theme.ansi and not os.environ.get("NO_COLOR")

    def _develop_soon(self) -> None:
        session, presenter = self.app.session, self.presenter
        if session is not None and presenter is not None and not self._developing:
            self._developing = True
            self._develop(session, presenter)

    @work(thread=True, group="pictures", exit_on_error=False)
    def _develop(self, session: Session, presenter: Presenter) -> None:
        """Make all that were asked for, the newest first."""
        from workbench.store.faults import StoreError
        from workbench.tui.rows.picture import CannotDraw, make

        gallery, run_id = presenter.gallery, presenter.state.shown.run_id
        try:
            while (wanted := gallery.next()) is not None:
                try:
                    gallery.put(wanted, make(session.project.store.image(run_id, wanted.digest), wanted))
                except (CannotDraw, StoreError, OSError) as fault:
                    gallery.put(wanted, str(fault))
        finally:
            self.app.call_later(self._developed)

    def _developed(self) -> None:
        """Draw the panes of every screen again; only lines that changed are."""
        self._developing = False
        for screen in self.app.screen_stack:
            for view in screen.query(RowView):
                view.redraw()
        if self.presenter is not None and self.presenter.gallery.next() is not None:
            self._develop_soon()
