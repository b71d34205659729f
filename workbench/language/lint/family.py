"""The cascades that a cascade leads to: missing files, state and outputs that children return, calls among them."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from workbench.language.lint.environment import LintEnvironment
from workbench.language.load import load
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.read.source import Source

_DEPTH = 5
"""Nested cascades that the engine allows; a longer chain is not a finding of its own."""


class Member(Struct, frozen=True):
    """One cascade of the family, by the path that leads to it; ``cascade`` is None when its file does not load."""

    ref: str
    cascade: Cascade | None
    text: str

    @property
    def name(self) -> str:
        return self.cascade.cascade_id if self.cascade else self.ref


_ENDINGS = (".yaml", ".yml", ".json")
"""Of the files of cascades."""


class Family:
    """The children of one cascade, read through its surroundings, each file once."""

    def __init__(self, source: Source, cascade: Cascade, around: LintEnvironment) -> None:
        self._around = around
        self._self = Member("", cascade, source.text)
        self._members: dict[str, Member] = {}

    def missing(self, ref: str) -> bool:
        """Returns whether a file is known not to be there."""
        return self._around.read is not None and self._around.read(ref) is None

    def elsewhere(self, ref: str) -> str:
        """The longest end of a path that leads to a file, if the whole path does not, and for a cascade with another
        ending; empty if none does."""
        path = PurePosixPath(ref)
        endings = [path.suffix, *(one for one in _ENDINGS if path.suffix in _ENDINGS and one != path.suffix)]
        named = (path.with_suffix(ending).parts for ending in endings if path.name)
        ends = ("/".join(parts[start:]) for parts in named for start in range(len(parts)))
        return next((end for end in ends if self._around.read is not None and self._around.read(end) is not None), "")

    def recursion(self, ref: str) -> tuple[str, ...]:
        """The names from this cascade down to a running one, if calling ``ref`` leads there; else empty."""
        child = self._member(ref, "")
        return self._descend(child, (self._self,), set()) if child else ()

    def _descend(self, member: Member, above: tuple[Member, ...], done: set[str]) -> tuple[str, ...]:
        if any(member.text == other.text for other in above):
            return (*(other.name for other in above), member.name)
        if member.ref in done or member.cascade is None or len(above) >= _DEPTH:
            return ()
        done.add(member.ref)
        for child in self._children(member):
            if found := self._descend(child, (*above, member), done):
                return found
        return ()

    def called_by_tool(self, name: str) -> tuple[str, ...]:
        """As ``recursion``, for a cascade that is listed as a tool or named as a validator."""
        child = self._tool(name)
        return self._descend(child, (self._self,), set()) if child else ()

    @cached_property
    def returning(self) -> tuple[Member, ...]:
        """The sub-cascades, at any depth, whose state and outputs return to this cascade."""
        found: dict[str, Member] = {}
        queue = [self._self]
        while queue:
            for member in self._sub_cascades(queue.pop()):
                if member.ref not in found:
                    found[member.ref] = member
                    queue.append(member)
        return tuple(found.values())

    @cached_property
    def cascades(self) -> tuple[Cascade, ...]:
        """This cascade first, and all others that a run of it may start: by file, as a tool, as a validator."""
        queue = deque([self._self])
        for name in self._around.tools or ():
            if (tool := self._tool(name)) is not None:
                queue.append(tool)
        for name, facts in (self._around.validators or {}).items():
            if facts.text is not None:
                queue.append(self._made(f"validator {name}", facts.text))
        found: dict[str, Cascade] = {}
        while queue:
            member = queue.popleft()
            if member.cascade is not None and member.ref not in found:
                found[member.ref] = member.cascade
                queue += self._children(member)
        return tuple(found.values())

    @property
    def readable(self) -> bool:
        """Whether all that comes back is known."""
        return all(member.cascade is not None for member in self.returning)

    def _sub_cascades(self, parent: Member) -> Iterator[Member]:
        for phase in _phases(parent):
            for sub in phase.sub_cascades:
                if sub.context_out:
                    yield self._member(sub.ref, parent.ref) or Member(sub.ref, None, "")

    def _children(self, parent: Member) -> Iterator[Member]:
        for phase in _phases(parent):
            refs = [ref for _, ref in phase.refs]
            tools = [self._tool(name) for name in phase.tools]
            yield from (m for m in [*(self._member(ref, parent.ref) for ref in refs), *tools] if m is not None)

    def _tool(self, name: str) -> Member | None:
        facts = self._around.tool(name)
        if facts is None or facts.kind != "cascade" or facts.text is None:
            return None
        return self._made(f"tool {name}", facts.text)

    def _member(self, ref: str, parent: str) -> Member | None:
        """The cascade of a path as its parent writes it: beside the parent's file, else in the workspace."""
        if self._around.read is None:
            return None
        for path in dict.fromkeys((posixpath.normpath(posixpath.join(posixpath.dirname(parent), ref)), ref)):
            text = self._around.read(path)
            if text is not None:
                return self._made(path, text)
        return None

    def _made(self, ref: str, text: str) -> Member:
        if ref not in self._members:
            plain = text.removeprefix("\ufeff")
            known = plain == self._self.text
            self._members[ref] = Member(ref, self._self.cascade if known else load(plain, ref).cascade, plain)
        return self._members[ref]


def _phases(member: Member) -> tuple[Phase, ...]:
    return member.cascade.phases if member.cascade else ()
