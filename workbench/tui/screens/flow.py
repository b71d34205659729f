"""The flow: the graph of the phases with the walk of the run on it; it follows a run that goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from workbench.context.place import Place
from workbench.tui.screens.sheet import Sheet
from workbench.views.graph import FlowRows

LOOKS = 0.5
"""Seconds between two looks at the run."""


class FlowSheet(Sheet):
    """Shows the graph; enter on a phase, or on a way to it, goes to its last call in the Bench."""

    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "list.open", "sheet.find", "sheet.filter", "sheet.copy")
    SEARCHED: ClassVar[str] = "graph"

    def __init__(self, make: Callable[[], tuple[object, FlowRows]], go_to: Callable[[str, Place | None], None]) -> None:
        """``make`` gives the rows as they are now, and what they depend on; ``go_to`` gets a phase and its call."""
        self._key, rows = make()
        super().__init__(rows)
        self.view.selecting = True
        self._flow = rows
        self._make = make
        self._go_to = go_to

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(LOOKS, self._look)

    def _look(self) -> None:
        key, rows = self._make()
        if key != self._key:
            self._key, self._rows, self._flow = key, rows, rows
            self.view.show(rows)

    def opened(self, row: int) -> None:
        """Enter goes to the last call of the phase."""
        phase, call = self._flow.phase(row), self._flow.call(row)
        self.dismiss()
        self._go_to(phase, call)
