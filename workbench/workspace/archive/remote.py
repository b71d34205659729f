"""Files and runs at URLs, which fsspec opens: object stores, web servers and other protocols."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from workbench.extras import missing
from workbench.store.journal.disk import is_id
from workbench.workspace.input_file import CannotOpen

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "az"), "adlfs"),
    "sftp": "paramiko",
}
"""The packages that hold the file systems of the large stores, as fsspec's documentation lists them."""


def is_url(text: str) -> bool:
    """Returns whether this is a URL and not a path."""
    return _URL.match(text) is not None


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises CannotOpen where it cannot be reached."""
    if absent := missing("archive"):
        raise CannotOpen(f"{url}: error: {absent}")
    core: Any = import_module("fsspec.core")  # It takes 60 ms.
    try:
        system, path = core.url_to_fs(url)
    except ImportError:
        raise CannotOpen(f"{url}: error: {_package_for(url)}") from None
    except (ValueError, OSError) as fault:
        raise CannotOpen(f"{url}: error: {_words(fault)}") from None
    return system, path


def _package_for(url: str) -> str:
    """Returns the package to install for a file system that misses it; fsspec knows most protocols by the package's
    name."""
    protocol = url.partition("://")[0].lower()
    package = _PACKAGES.get(protocol)
    known = f": pip install {package}" if package else ", which fsspec does not come with"
    return f"'{protocol}://' needs a package of its own{known}"


def _words(fault: BaseException) -> str:
    told = str(fault).strip().splitlines()
    if isinstance(fault, FileNotFoundError):
        return "no such file"
    return (told[0] if told else type(fault).__name__)[:200]


def expanded(url: str) -> list[str]:
    """The files that a URL means: one, those below a folder, or those that match ``*``. Raises CannotOpen."""
    system, path = _system(url)
    try:
        if "*" in path:
            found = sorted(system.glob(path))
        elif system.isdir(path):
            found = sorted(system.find(path))
        else:
            found = [path]
    except Exception as fault:  # noqa: BLE001 - each file system has faults of its own
        raise CannotOpen(f"{url}: error: cannot be listed: {_words(fault)}") from None
    if not found:
        raise CannotOpen(f"{url}: error: there is no file")
    return [str(system.unstrip_protocol(one)) for one in found]


def size_of_url(url: str) -> int:
    """Bytes of a file; 0 where the server does not say. Raises CannotOpen where there is none."""
    system, path = _system(url)
    try:
        return int(system.size(path) or 0)
    except Exception as fault:  # noqa: BLE001 - each file system has faults of its own
        raise CannotOpen(f"{url}: error: cannot be read: {_words(fault)}") from None


@contextmanager
def opened_url(url: str) -> Iterator[BinaryIO]:
    """A file, to be read from its beginning. Raises CannotOpen."""
    system, path = _system(url)
    try:
        stream = system.open(path, "rb")
    except Exception as fault:  # noqa: BLE001 - each file system has faults of its own
        raise CannotOpen(f"{url}: error: cannot be read: {_words(fault)}") from None
    with stream:
        yield stream


def _below(path: str, name: str) -> str:
    """A path inside of a folder. The top of an archive is an empty path, and none of its files begins with ``/``."""
    return f"{path.rstrip('/')}/{name}" if path else name


def remote_run_ids(url: str) -> list[str]:
    """The runs below a store's folder at a URL, oldest first as far as their ids tell. Raises CannotOpen."""
    system, path = _system(url)
    try:
        found = system.ls(_below(path, "journal"), detail=False)
    except Exception as fault:  # noqa: BLE001 - each file system has faults of its own
        raise CannotOpen(f"{url}: error: cannot be listed: {_words(fault)} (it must hold a folder 'journal')") from None
    return sorted({name for one in found if is_id(name := str(one).rstrip("/").rpartition("/")[2])})


def fetch_run(url: str, run_id: str, journals: Path) -> None:
    """Copy the records of a run into a folder of runs; nothing where there are none. Raises CannotOpen."""
    system, path = _system(url)
    try:
        for one in system.find(_below(path, f"journal/{run_id}")):
            name = str(one).rstrip("/")
            inner = name[name.rindex(f"/{run_id}/") + len(run_id) + 2 :]
            target = journals / run_id / inner
            if not target.resolve().is_relative_to((journals / run_id).resolve()) or inner.endswith(".lock"):
                continue
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            system.get_file(one, str(target))
    except CannotOpen:
        raise
    except Exception as fault:  # noqa: BLE001 - each file system has faults of its own
        raise CannotOpen(f"{url}: error: run {run_id} cannot be read: {_words(fault)}") from None
