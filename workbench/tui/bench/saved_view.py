"""The Bench as it was left: how it looks now, and back to how it looked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from workbench.context.place import Place
from workbench.tui.bench.tabs import TABS
from workbench.workspace.view_states import ViewState

if TYPE_CHECKING:
    from workbench.tui.bench.presenter import Detail, Presenter
    from workbench.tui.bench.stage import Layout

_KEPT_DETAILS = ("message", "why", "wire")


class SavedView:
    """Takes and restores a ``ViewState``."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.restored = ""
        """The run that is shown because it was shown last, not because somebody asked for it now."""

    def now(self) -> ViewState | None:
        """Returns how the Bench looks; None before there is anything to look at."""
        layout, panes = self._layout, self._layout.panes
        if (presenter := layout.presenter) is None:
            return None
        state = presenter.state
        return ViewState(
            run_id=state.run.run_id,
            call=str(state.selected) if state.selected is not None and not state.following else "",
            phase=presenter.phase,
            pane=layout.last_pane,
            tab=panes.tab,
            zoomed=layout.is_zoomed,
            row=max(0, panes.context.cursor),
            top=round(panes.context.scroll_y),
            node=panes.tree_id or (),
            folded=tuple(sorted(id for id, unfolded in state.folding.items() if not unfolded)),
            unfolded=tuple(sorted(id for id, unfolded in state.folding.items() if unfolded)),
            tree_width=layout.tree_width,
            dock_height=layout.dock_height,
            detail=presenter.detail_mode if presenter.detail_mode in _KEPT_DETAILS else "",
            full=state.full,
            dropped=state.unfold,
        )

    def restore(self, view: ViewState | None) -> None:
        """Show the session as it was left, if a view of it was kept; say which phases of the file changed since."""
        if (live := self._layout.live()) is None:
            return
        session, presenter = live
        drifted = session.viewed.drifted if session.viewed is not None else None
        if presenter.state.started and drifted:
            presenter.state.changed = drifted
            names = ", ".join(sorted(drifted))
            self._layout.services.say(f"{session.file.name} has changed since this run: {names}", "warning")
        if view is None:
            self._layout.redraw()
            return
        self._lay_out(view)
        self.restored = view.run_id if view.run_id == session.run_id else ""
        if self.restored:
            self._look_again(presenter, view)
        self._layout.redraw()
        if self.restored and presenter.state.selected is not None and view.call:
            self._layout.panes.context.show(None, view.row)
            self._layout.after_refresh(self._scroll_back, view.row, view.top)

    def _lay_out(self, view: ViewState) -> None:
        """Sizes, panes and tabs: they are the same whatever is shown."""
        layout = self._layout
        layout.tree_width, layout.dock_height = view.tree_width, view.dock_height
        tab = next((name for name, _ in TABS if name == view.tab), None)
        if tab is not None:
            layout.panes.tab = tab
        if any(view.pane == pane.id for pane in layout.panes.all):
            layout.focus_pane(view.pane)
        if view.zoomed:
            layout.after_refresh(layout.zoom)
        else:
            layout.size_panes()

    def _look_again(self, presenter: Presenter, view: ViewState) -> None:
        """The call, and what was folded: they belong to the run."""
        state = presenter.state
        state.folding = {**dict.fromkeys(view.folded, False), **dict.fromkeys(view.unfolded, True)}
        state.full, state.unfold = view.full, view.dropped
        if view.detail in _KEPT_DETAILS:
            presenter.detail_mode = cast("Detail", view.detail)
        if any(phase.name == view.phase for phase in presenter.outline):
            presenter.phase = view.phase
        try:
            selected = bool(view.call) and state.select(Place.parse(view.call))
        except ValueError:
            selected = False
        self._layout.panes.stay_on(state.selected)
        if view.node:
            self._layout.panes.tree_id = view.node
        if not selected and not view.call and not state.run.calls:
            state.selected = None

    def _scroll_back(self, row: int, top: int) -> None:
        context = self._layout.panes.context
        context.scroll_to(y=top, animate=False, force=True)
        context.show(None, row)
