"""The folders that a person has allowed to act, with their capabilities. Kept in the user's state folder only."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from workbench.files import write_whole
from workbench.tools.capabilities import Capability, Manifest

FILE = "trust.json"
_FORMAT = 1


class TrustDamaged(OSError):
    """The trust record cannot be read. Nothing is trusted until it is repaired or moved away."""


class Grant(Struct, frozen=True):
    """The capabilities granted to one folder."""

    folder: str
    at: str
    """UTC, ISO 8601."""
    keys: frozenset[str]


class Trust:
    """The record of grants in one state folder.

    A folder is known by its real path: a copy, a moved one, and one reached through a link are strangers. A capability
    is granted with its content: a changed tool is a new one. Taking capabilities away keeps trust.
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE

    def is_trusted(self, folder: Path, manifest: Manifest) -> bool:
        """True when every capability was granted to this folder, or when there is none that needs it."""
        return not self.missing(folder, manifest)

    def has_grant(self, folder: Path) -> bool:
        """Returns whether a person has allowed this folder anything at all, be it only its templates."""
        with contextlib.suppress(TrustDamaged):
            return not folder.is_symlink() and str(folder.resolve()) in self.grants()
        return False

    def missing(self, folder: Path, manifest: Manifest) -> tuple[Capability, ...]:
        """The capabilities that a person would have to allow; all of them where the record is damaged. None where only
        such are new as need no trust of their own."""
        granted: frozenset[str] = frozenset()
        with contextlib.suppress(TrustDamaged):
            grant = self.grants().get(str(folder.resolve()))
            if grant is not None and not folder.is_symlink():
                granted = grant.keys
        missing = tuple(capability for capability in manifest.capabilities if capability.key not in granted)
        return missing if Manifest(missing).needs_trust else ()

    def grant(self, folder: Path, manifest: Manifest, at: str) -> None:
        """Allow these capabilities to a folder, besides what it has: another cascade's are not removed.

        Raises ValueError for a link, TrustDamaged, or OSError when the record cannot be written.
        """
        if folder.is_symlink():
            raise ValueError(f"{folder} is a link; trust the folder that it points to")
        real = str(folder.resolve(strict=True))
        with self._changing() as folders:
            before = folders.get(real, {}).get("capabilities", ())
            keys = sorted({*before, *(capability.key for capability in manifest.capabilities)})
            folders[real] = {"at": at, "capabilities": keys}

    def revoke(self, folder: Path) -> bool:
        """Remove a folder's grant. False if it had none. Raises TrustDamaged or OSError."""
        with self._changing() as folders:
            return folders.pop(str(folder.resolve()), None) is not None

    def grants(self) -> dict[str, Grant]:
        """All grants by real path. Raises TrustDamaged."""
        return {
            folder: Grant(folder, str(body["at"]), frozenset(body["capabilities"]))
            for folder, body in self._read().items()
        }

    def _read(self) -> dict[str, Any]:
        try:
            body = json.loads(self.path.read_text("utf-8"))
            folders: dict[str, Any] = body["folders"]
            if body["format"] != _FORMAT or not all(
                isinstance(entry["at"], str) and isinstance(entry["capabilities"], list) for entry in folders.values()
            ):
                raise ValueError("unknown format")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            raise TrustDamaged(f"{self.path} cannot be read ({fault}); move it away to start anew") from fault
        return folders

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Read, change, and replace the record while no other process does."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.path.parent / f"{FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folders = self._read()
            yield folders
            text = json.dumps({"format": _FORMAT, "folders": folders}, indent=1, sort_keys=True)
            write_whole(self.path, text.encode("utf-8"), 0o600)
