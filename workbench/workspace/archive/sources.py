"""Where the runs of an archive lie: in a store of this machine or a shared folder, or at a URL that fsspec opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from workbench.store.faults import StoreError
from workbench.store.store import Store
from workbench.tools.sandbox.scratch import SCRATCH
from workbench.workspace.archive.remote import fetch_run, is_url, remote_run_ids
from workbench.workspace.input_file import CannotOpen


class RunPlace(Struct, frozen=True):
    """A place that every worker can reach by the same name."""

    root: str
    """The folder of a store, or its URL."""
    fixed: str = ""
    """A further one that is only read."""

    @classmethod
    def of(cls, store: Store) -> RunPlace:
        """Returns where a store lies."""
        own = (store.journals, store.pulled)
        fixed = [str(folder.parent) for folder in store.readable if folder not in own]
        return cls(str(store.root), fixed[0] if fixed else "")

    @classmethod
    def at(cls, text: str) -> RunPlace:
        """A store elsewhere: its folder, or that of its workspace, or its URL. Raises CannotOpen."""
        if is_url(text):
            return cls(text.rstrip("/"))
        for folder in (Path(text), Path(text) / ".workbench"):
            if (folder / "journal").is_dir():
                return cls(str(folder.resolve()))
        raise CannotOpen(f"{text}: error: no store: it must hold a folder 'journal'")

    @property
    def is_remote(self) -> bool:
        """Whether runs are copied from a URL before they are read."""
        return is_url(self.root)

    def run_ids(self) -> tuple[str, ...]:
        """All runs there, oldest first. Raises CannotOpen."""
        if self.is_remote:
            return tuple(remote_run_ids(self.root))
        with self.open() as store:
            return tuple(store.run_ids())

    @contextmanager
    def open(self, run_ids: Sequence[str] = ()) -> Iterator[Store]:
        """A store that has these runs, as far as they are there. Raises StoreError where a URL does not answer."""
        if not self.is_remote:
            yield Store(Path(self.root), fixed=Path(self.fixed) if self.fixed else None)
            return
        with SCRATCH.subfolder("runs") as folder:  # Cleared by the next process where this one is killed.
            store = Store(folder)
            try:
                for run_id in run_ids:
                    fetch_run(self.root, run_id, store.journals)
            except CannotOpen as fault:
                raise StoreError(str(fault)) from None
            yield store
