"""One tab of the Bench: a session, what shows it, and what drives it. The one that is shown draws; the others only
take what their engines send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.views.header import run_label
from workbench.views.tab_line import RUN, TabLabel

if TYPE_CHECKING:
    from workbench.tui.bench.controllers import Controllers
    from workbench.tui.bench.panes import PanesLook
    from workbench.tui.bench.presenter import Presenter
    from workbench.workspace.session import Session


@dataclass(slots=True, eq=False)
class RunTab:
    """A session that is open in the app."""

    session: Session
    presenter: Presenter
    controllers: Controllers
    given: Mapping[str, Any]
    """Inputs for its next run."""
    look: PanesLook | None = None
    """How the panes were left; None while it is shown."""
    was: str = ""
    """What it did when that was looked at last."""
    news: bool = False
    """Whether something happened in it since it was shown last."""

    @property
    def doing(self) -> str:
        """``held``, ``asked``, ``running``, or how its run ended; empty where there is none."""
        state = self.presenter.state
        if state.current_question() is not None and state.alive:
            return "asked"
        if state.held is not None:
            return "held"
        if self.session.running and not state.started:
            return "running"
        return state.run.status if state.started else ""

    @property
    def is_blank(self) -> bool:
        """Whether it shows a file of which nothing was run here."""
        return not self.presenter.state.started and not self.session.running

    def shows(self, run_id: str) -> bool:
        """Whether a run is what it shows."""
        return bool(run_id) and run_id in (self.session.run_id, self.presenter.state.run.run_id)

    def label(self, *, current: bool) -> TabLabel:
        """What is said of it in the line of tabs."""
        run, file = self.presenter.state.run, self.presenter.file
        cascade = file.cascade.cascade_id if file is not None and file.cascade is not None else run.cascade_id
        named = cascade or self.session.file.stem
        name = run_label(run) if run.run_id else ""
        short = name if len(name) <= RUN else name.rpartition("-")[2]
        return TabLabel(named, short, self.doing, current, self.news and not current)

    def take(self) -> bool:
        """While it is hidden: take what its engine sent, without drawing. Whether it does something else now."""
        self.controllers.running.drain(self.session, self.presenter)
        before, self.was = self.was, self.doing
        self.news = self.news or before != self.was
        return before != self.was
