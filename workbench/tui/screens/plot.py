"""A plot over the whole screen, which can be saved as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import BindingType

from workbench.extras import missing
from workbench.files import write_whole
from workbench.tui.bindings import bindings
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.sheet import Sheet
from workbench.views.text import DrawnRows


class PlotSheet(Sheet):
    """Shows a plot; its picture is drawn by matplotlib."""

    OFFERED: ClassVar[tuple[str, ...]] = ("sheet.close", "plot.export", "sheet.copy")
    PALETTE: ClassVar[tuple[str, ...]] = ("plot", "sheet", "list")
    BINDINGS: ClassVar[list[BindingType]] = bindings("plot")

    def __init__(self, rows: DrawnRows, folder: Path, name: str) -> None:
        """``folder``: where a relative file goes; ``name``: of the file that is proposed, without its ending."""
        super().__init__(rows)
        self._plot, self._folder, self._name = rows, folder, name.replace(" ", "-").replace("/", "-")

    def action_export(self) -> None:
        """Ask for a file; its ending says which kind of picture it becomes."""
        if fault := missing("charts"):
            self.services.say(f"{fault[:1].upper()}{fault[1:]}", "warning")
        elif self._plot.picture is None:
            self.services.say("Nothing to plot.")
        else:
            self.ask("export to", value=f"{self._name}.svg", done=self._chosen)

    def _chosen(self, text: str) -> str | None:
        file = Path(text.strip()).expanduser()
        if file.suffix not in (".svg", ".png"):
            return "A file that ends in .svg or .png"
        target = file if file.is_absolute() else self._folder / file
        if target.exists():
            # The prompt is about to go; a callback that it had asked for would go with it.
            self.call_later(self._ask_before_replacing, target)
        else:
            self._export(target)
        return None

    def _ask_before_replacing(self, target: Path) -> None:
        def answered(answer: str | None) -> None:
            if answer == "replace":
                self._export(target)

        answers = [("keep", "k", "Cancel"), ("replace", "r", "Replace it")]
        self.app.push_screen(ChoiceDialog(f"Replace {target.name}?", f"{target} already exists.", answers), answered)

    @work(thread=True, group="export", exit_on_error=False)
    def _export(self, target: Path) -> None:
        """In a worker: matplotlib takes its time to load."""
        assert self._plot.picture is not None
        try:
            write_whole(target, self._plot.picture("svg" if target.suffix == ".svg" else "png"))
        except OSError as fault:
            self.app.call_later(self.services.say, f"{target} cannot be written: {fault.strerror}", "error")
        else:
            self.app.call_later(self.services.say, f"Written: {target}")
