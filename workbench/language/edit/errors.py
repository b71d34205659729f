"""Why an edit of a file is refused."""

from __future__ import annotations


class EditError(ValueError):
    """An edit that cannot be made as text; the message says why."""
