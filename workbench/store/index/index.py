"""The database over a store: opened, brought to its schema, kept up to date, asked."""

from __future__ import annotations

from workbench.store.index.database import WRITES, Engine
from workbench.store.index.ingest import Ingester, Progress
from workbench.store.index.queries import Queries
from workbench.store.index.rebuild import NewerSchema, Schema, migrate
from workbench.store.store import Store


class Index(Queries):
    """The database as far as this process owns it. Close it in a ``finally``."""

    def __init__(self, store: Store) -> None:
        """Raises StoreBusy, which names the process that owns the index, and StoreError with the cause."""
        self.engine = Engine(store.root)
        self.notice = ""
        """A notice for people: that the database is only read, or that its last owner crashed."""
        if (last := self.engine.left_by) is not None:
            self.notice = f"the index was not closed by {last}: it is brought up to date from the journals"
        self._ingester: Ingester | None = None
        try:
            handle = self.engine.handle(WRITES)
            try:
                self.schema: Schema = migrate(handle)
            except NewerSchema as newer:
                self.schema, self.notice = newer.schema, str(newer)
            else:
                self._ingester = Ingester(store, self.engine)
                self._ingester.start()
            finally:
                self.engine.release(handle)
        except BaseException:
            self.engine.close()
            raise
        super().__init__(self.engine)

    def catch_up(self, seconds: float = 600.0) -> None:
        """Return when all that the journals hold now is in the tables. Raises StoreError."""
        if self._ingester is not None:
            self._ingester.catch_up(seconds)

    @property
    def progress(self) -> Progress:
        """How far the tables follow the journals."""
        return self._ingester.progress if self._ingester is not None else Progress()

    def close(self) -> None:
        """Send what was read, then close. May be called twice."""
        if self._ingester is None or self._ingester.stop():
            self.engine.close()  # Never under a writer that is still inside native code.

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
