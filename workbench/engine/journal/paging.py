"""Takes what nobody looks at out of memory: into a file without a name, which goes with the process."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pickle import HIGHEST_PROTOCOL, dumps, loads
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, overload

from msgspec import Struct

from workbench.engine.journal.event import Event

MOST_READ = 8
"""Pages whose content is kept after it was read back."""
_ON_DISK = "/var/tmp"
"""Where temporary files outlive a restart, so that they are no memory, which /tmp may be."""


class Page(Struct, frozen=True, gc=False):
    """A stretch of the file."""

    at: int
    size: int


class Pages:
    """Values in a file, read back one by one. What was written stays as it is: to change a value, put it again."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self._read: OrderedDict[Page, Any] = OrderedDict()
        self._lock = Lock()
        self.full = False
        """Whether the disk took no more: what cannot be put stays in memory."""

    def put(self, value: object) -> Page | None:
        """Write a value that can be pickled; None if the disk does not take it."""
        if self.full:
            return None
        data = dumps(value, HIGHEST_PROTOCOL)
        try:
            if self._file is None:
                folder = _ON_DISK if "TMPDIR" not in os.environ and os.access(_ON_DISK, os.W_OK) else None
                self._file = TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 - as long as this lives
            left, at = memoryview(data), self._end
            while left:
                taken = os.pwrite(self._file.fileno(), left, at)
                left, at = left[taken:], at + taken
        except OSError:
            self.full = True
            return None
        page, self._end = Page(self._end, len(data)), at
        return page

    def get(self, page: Page) -> Any:
        """The value of a page. Raises OSError."""
        with self._lock:
            if page in self._read:
                self._read.move_to_end(page)
                return self._read[page]
            assert self._file is not None, "the page is of another file"
            value = self._read[page] = loads(os.pread(self._file.fileno(), page.size, page.at))
            if len(self._read) > MOST_READ:
                self._read.popitem(last=False)
            return value

    def taken(self, page: Page) -> Any:
        """The value of a page, for the caller alone, who may change it. Raises OSError."""
        value = self.get(page)
        with self._lock:
            self._read.pop(page, None)
        return value


EVENTS_OF_A_PAGE = 512


class PagedEvents(Sequence[Event]):
    """The events of a run in order. ``page_out`` leaves the newest in memory."""

    def __init__(self) -> None:
        self._pages = Pages()
        self._old: list[Page] = []
        """Pages of ``EVENTS_OF_A_PAGE``."""
        self._new: list[Event] = []

    def append(self, event: Event) -> None:
        """Add the next event."""
        self._new.append(event)

    def page_out(self) -> None:
        """Put all but the newest on disk: one to two pages stay."""
        while len(self._new) >= 2 * EVENTS_OF_A_PAGE:
            page = self._pages.put(self._new[:EVENTS_OF_A_PAGE])
            if page is None:
                return
            self._old.append(page)
            del self._new[:EVENTS_OF_A_PAGE]

    def __len__(self) -> int:
        return len(self._old) * EVENTS_OF_A_PAGE + len(self._new)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        page, inside = divmod(at, EVENTS_OF_A_PAGE)
        if page < len(self._old):
            found: Event = self._pages.get(self._old[page])[inside]
            return found
        return self._new[at - len(self._old) * EVENTS_OF_A_PAGE]
