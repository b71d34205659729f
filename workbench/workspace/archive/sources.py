"""Where the runs of an archive lie: in a store of this machine or a shared folder, or at a URL that fsspec opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from workbench.store.store import Store


class RunPlace(Struct, frozen=True):
    """A place that every worker can reach by the same name."""

    root: str
    """The folder of a store."""
    fixed: str = ""
    """A further one that is only read."""

    @classmethod
    def of(cls, store: Store) -> RunPlace:
        """Where a store lies."""
        own = (store.journals, store.pulled)
        fixed = [str(folder.parent) for folder in store.readable if folder not in own]
        return cls(str(store.root), fixed[0] if fixed else "")

    @contextmanager
    def open(self, run_ids: Sequence[str]) -> Iterator[Store]:
        """A store that has these runs, as far as they are there."""
        yield Store(Path(self.root), fixed=Path(self.fixed) if self.fixed else None)
