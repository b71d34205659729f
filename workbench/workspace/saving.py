"""Reports a run that cannot be saved, and at its end moves the records in memory to a place with space."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType

from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.store.journal.journal import Journal


class JournalWatch:
    """Watches the journal of one run; a context manager inside that of the journal.

    ``notify`` gets ``unsaved`` when records begin to wait in memory, with a ``message`` for a person, and ``saved``
    when they have reached the disk after all. What still waits at the end is written below ``elsewhere`` (``doctor``
    finds it there), else into a new temporary folder, and told to ``note``.
    """

    def __init__(
        self,
        journal: Journal,
        notify: Callable[[Notice], None],
        note: Callable[[str], None],
        elsewhere: Path,
    ) -> None:
        self._journal = journal
        self._notify = notify
        self._note = note
        self._elsewhere = elsewhere
        self._told = False
        self._told_durable = False

    def __call__(self, event: Event) -> None:
        """Look after each event, which is in the journal or waits to be."""
        if self._journal.not_durable and not self._told_durable:
            self._told_durable = True
            where = f"({self._journal.not_durable}; {self._journal.folder})"
            text = f"the run is saved, but may not outlive a power cut: the disk cannot sync {where}"
            self._note(text)
            self._notify(Notice("told", event.place, {"message": text}))
        fault = self._journal.fault
        if bool(fault) == self._told:
            return
        self._told = bool(fault)
        if fault:
            message = f"the run is not saved: {fault} ({self._journal.folder}); it goes on in memory"
            self._notify(Notice("unsaved", event.place, {"message": message}))
        else:
            self._notify(Notice("saved", event.place, {"message": "all of the run is saved again"}))

    def __enter__(self) -> JournalWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.sync()
        if not (waiting := self._journal.unsaved):
            return
        folder, why = self._journal.folder, self._journal.fault
        head = f"{waiting} records of the run are not in {folder} ({why})"
        try:
            file = self._journal.rescue(self._elsewhere)
            text = f"{head}: they are in {file}; 'workbench doctor --fix' puts them back"
        except OSError:
            try:
                text = f"{head}: they are in {self._journal.rescue(Path(mkdtemp(prefix='workbench-unsaved-')))}"
            except OSError as fault:
                text = f"{head}, and are lost: {fault.strerror} in {self._elsewhere} and in the temporary folder"
        self._note(text)
        self._notify(Notice("unsaved", Place(), {"message": text}))
