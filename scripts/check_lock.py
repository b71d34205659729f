"""Do the two locks still fit ``pyproject.toml``? Answered without a network, from installed metadata.

``requirements.lock`` is what the README's first command installs: the project with what its examples need.
``requirements-dev.lock`` holds the same versions and all that development needs. Prints one line per finding and exits
with 1 if there is one. ``make lock`` writes both anew.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Locked:
    """One entry of the lock; ``marker`` is empty where it holds everywhere."""

    name: str
    version: Version
    marker: str
    hashes: int


def read_lock(text: str) -> list[Locked]:
    """The entries of a requirements file whose hashes stand on continued lines. Raises ValueError for anything else."""
    entries = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        requirement, *hashes = line.split("--hash=")
        try:
            parsed = Requirement(requirement.strip())
        except ValueError as error:
            raise ValueError(f"'{line.strip()[:80]}' is no pinned requirement: {error}") from None
        pins = [s.version for s in parsed.specifier if s.operator == "=="]
        if len(pins) != 1 or len(parsed.specifier) != 1:
            raise ValueError(f"'{parsed}' is not pinned by ==")
        good = sum(1 for value in hashes if HASH.fullmatch(f"--hash={value.strip()}"))
        entries.append(Locked(canonicalize_name(parsed.name), Version(pins[0]), str(parsed.marker or ""), good))
    return entries


LOCKS = {"requirements.lock": "examples", "requirements-dev.lock": "dev"}
"""The locks, each with the extra that it is made for."""


def declared(pyproject: str, extra: str) -> list[Requirement]:
    """What the project asks for itself: dependencies, an extra with those that it names, and the build backend."""
    data = tomllib.loads(pyproject)
    extras, own = data["project"].get("optional-dependencies", {}), data["project"]["name"]
    found = [Requirement(text) for text in (*data["project"]["dependencies"], *data["build-system"]["requires"])]
    wanted = [extra]
    while wanted:
        for text in extras[wanted.pop()]:
            requirement = Requirement(text)
            if requirement.name == own:
                wanted += requirement.extras
            else:
                found.append(requirement)
    return found


def _asked_by(name: str, extras: frozenset[str]) -> Iterator[tuple[Requirement, bool]]:
    """What an installed package asks for with these extras, and whether it does so on this platform.

    Nothing when the package is not installed here: an entry for another platform.
    """
    try:
        requires = distribution(name).requires or []
    except PackageNotFoundError:
        return
    for text in requires:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None:
            yield requirement, True
            continue
        here = any(marker.evaluate({"extra": extra}) for extra in (*extras, ""))
        if here or "extra" not in str(marker):
            yield requirement, here


def findings(pyproject: str, lock: str, extra: str) -> list[str]:
    """Everything that is wrong: missing hashes, unmet requirements, entries that nothing asks for."""
    entries = read_lock(lock)
    found = [f"{entry.name}=={entry.version}: no hash" for entry in entries if not entry.hashes]
    versions: dict[str, list[Version]] = {}
    for entry in entries:
        versions.setdefault(entry.name, []).append(entry.version)

    todo = [(requirement, True, "pyproject.toml") for requirement in declared(pyproject, extra)]
    seen: set[tuple[str, frozenset[str]]] = set()
    reached: set[str] = set()
    while todo:
        requirement, here, source = todo.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        reached.add(name)
        if name not in versions:
            if here:
                found.append(f"{requirement} (asked by {source}) is not in the lock")
            continue
        if here and not any(requirement.specifier.contains(v, prereleases=True) for v in versions[name]):
            shown = ", ".join(str(v) for v in versions[name])
            found.append(f"{requirement} (asked by {source}) is not met by the locked {shown}")
        if (name, extras) not in seen:
            seen.add((name, extras))
            todo += [(wanted, holds, name) for wanted, holds in _asked_by(name, extras)]
    found += [f"{name} is locked, but nothing asks for it" for name in versions if name not in reached]
    return sorted(set(found))


def main() -> int:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    texts = {name: (ROOT / name).read_text("utf-8") for name in LOCKS}
    found = [f"{name}: {line}" for name, extra in LOCKS.items() for line in findings(pyproject, texts[name], extra)]
    small, large = ({f"{one.name}=={one.version}" for one in read_lock(texts[name])} for name in LOCKS)
    found += [f"requirements-dev.lock: has not {entry} of requirements.lock" for entry in sorted(small - large)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
