"""Names that become files: one pattern for ids, one function that joins them to a folder."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.store.faults import StoreError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_id(name: str) -> bool:
    """Whether a name may stand for a run on disk."""
    return _ID.fullmatch(name) is not None


def is_digest(name: str) -> bool:
    """Whether this is a sha256 in lower-case hex."""
    return _DIGEST.fullmatch(name) is not None


def safe_join(folder: Path, name: str) -> Path:
    """The path of an entry of a folder. Raises StoreError for anything that is no plain id, or is a link."""
    if not is_id(name):
        raise StoreError(f"{name[:80]!a} is no valid id (letters, digits, '.', '_', '-', at most 128)")
    path = folder / name
    if path.is_symlink():
        raise StoreError(f"{name} in the store is a link, and the store follows none")
    return path
