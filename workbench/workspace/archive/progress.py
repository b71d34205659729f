"""The progress of work over an archive, for displays."""

from __future__ import annotations

import time

from msgspec import Struct, field


class ArchiveProgress(Struct):
    """Counts what is done."""

    total: int
    noun: str = "run"
    """What is counted."""
    done: int = 0
    """With what earlier commands did."""
    earlier: int = 0
    """Done by earlier commands."""
    lost: int = 0
    """Workers that ended before their share was done."""
    began: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float | None:
        """A second, of this command; None before the first."""
        took, ended = time.monotonic() - self.began, self.done - self.earlier
        return ended / took if took > 0 and ended else None

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at this rate."""
        return None if self.rate is None else (self.total - self.done) / self.rate
