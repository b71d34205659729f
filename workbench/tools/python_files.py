"""The Python files of ``tools/`` folders: read once, hashed, and imported from exactly the bytes that were hashed."""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

FOLDER = "tools"
MAX_FILE_BYTES = 1_000_000
_PREFIX = "workbench_tackle_"


class PythonFolder(Struct, frozen=True, dict=True):
    """A ``tools/`` folder as it was when it was read: the bytes of its Python files by path relative to the folder."""

    path: Path
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> PythonFolder:
        """Read every ``*.py`` below a folder. Links and files over 1 MB are left out: they cannot be imported.

        Raises OSError when a file cannot be read.
        """
        files: dict[str, bytes] = {}
        for found in sorted(path.rglob("*.py")):
            inside = found.resolve().is_relative_to(path.resolve())
            if inside and found.is_file() and found.stat().st_size <= MAX_FILE_BYTES:
                files[found.relative_to(path).as_posix()] = found.read_bytes()
        return cls(path, files)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Sha256 of each file by relative path."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}

    @property
    def entries(self) -> list[str]:
        """The files that may define tools: those of the folder itself whose names begin with a letter."""
        return [name for name in self.files if "/" not in name and name[0].isalpha()]

    @cached_property
    def package(self) -> str:
        """Name of the package that the files are imported as."""
        digest = hashlib.sha256(str(self.path.resolve()).encode("utf-8", "surrogateescape"))
        return _PREFIX + digest.hexdigest()[:12]

    def module_name(self, entry: str) -> str:
        return f"{self.package}.{entry.removesuffix('.py')}"


def python_folders(*beside: Path) -> list[Path]:
    """The ``tools/`` folders directly inside the given folders, each real folder once.

    A ``tools`` that is a link is passed over: what it points to is not part of the workspace.
    """
    found: list[Path] = []
    for parent in beside:
        folder = parent / FOLDER
        if folder.is_dir() and not folder.is_symlink() and folder.resolve() not in found:
            found.append(folder.resolve())
    return found


def make_importable(folder: PythonFolder) -> None:
    """From now on the folder's modules can be imported under its package name, fresh, from the bytes read.

    They stay importable, because a tool may import a sibling when it is called. Byte-code caches and binary modules
    are never used: they would not be what was hashed.
    """
    for name in [n for n in sys.modules if n == folder.package or n.startswith(folder.package + ".")]:
        del sys.modules[name]
    for old in [f for f in sys.meta_path if isinstance(f, _Finder) and f.folder.package == folder.package]:
        sys.meta_path.remove(old)
    sys.meta_path.insert(0, _Finder(folder))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, folder: PythonFolder) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.folder.package and not fullname.startswith(self.folder.package + "."):
            return None
        inner = fullname.removeprefix(self.folder.package).lstrip(".").replace(".", "/")
        for name, is_package in ((f"{inner}.py", False), (f"{inner}/__init__.py".lstrip("/"), True)):
            if name in self.folder.files:
                return self._spec(fullname, name, is_package)
        if any(name.startswith(f"{inner}/") for name in self.folder.files) or not inner:
            return self._spec(fullname, "", True)
        raise ModuleNotFoundError(f"no module '{inner}' in {self.folder.path}", name=fullname)

    def _spec(self, fullname: str, file: str, is_package: bool) -> importlib.machinery.ModuleSpec:
        origin = str(self.folder.path / file) if file else None
        loader = _Loader(self.folder.files.get(file, b""), origin or str(self.folder.path))
        spec = importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=is_package)
        spec.has_location = origin is not None
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, source: bytes, origin: str) -> None:
        self.source = source
        self.origin = origin

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(self.source, self.origin, "exec", dont_inherit=True), module.__dict__)
