"""A context strategy: what enters a phase, what survives to a turn, what fits; one immutable value of named parts."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.part import EnteringPart, Part, PhaseInFile, Role, SurvivingPart
from workbench.context.parts.auto import Auto
from workbench.context.parts.budget import Budget
from workbench.context.parts.clear import Clear
from workbench.context.parts.entering import Inject, Selective, Snowball
from workbench.context.parts.entities import Entities
from workbench.context.parts.fidelity import Fidelity
from workbench.context.parts.loop import Loop
from workbench.context.parts.mask import Mask
from workbench.context.parts.slide import Slide
from workbench.context.scope import Arrival
from workbench.language.lint.environment import StrategyFacts
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path

# The parts that a strategy can be built of. A new one is a module under ``parts`` and a row here.

FROM_FILE: tuple[Callable[[PhaseInFile], Part | None], ...] = (
    Auto.from_file,
    Selective.from_file,
    Inject.from_file,
    Fidelity.from_file,
    Snowball.from_file,
    Mask.from_file,
    Loop.from_file,
    Budget.from_file,
)
"""The parts that the fields of a file can state without ``strategy:``. Of the parts that enter or fit, the first that
applies counts."""

PARTS: dict[str, type[Part]] = {
    part.NAME: part
    for part in (Selective, Snowball, Inject, Fidelity, Entities, Auto, Mask, Slide, Clear, Loop, Budget)
}
"""The parts that a spec can name."""


# The text of a strategy: ``selective+mask(after=3)``, the same on the command line, on screen and in YAML.

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_VALUE = re.compile(r"[^\s,()\[\]+=]+(?:\+[^\s,()\[\]+=]+)*?(?=\s*[,)\]])|[^\s,()\[\]+=]+")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
MAX_GRID = 10_000
"""Strategies that one grid may mean."""


class SpecError(ValueError):
    """A spec that cannot be read. ``column`` counts from 1."""

    def __init__(self, spec: str, column: int, message: str, hint: str = "") -> None:
        self.spec = spec
        self.column = column
        self.message = message
        self.hint = hint
        super().__init__(f"strategy '{spec}', column {column}: {message}" + (f" ({hint})" if hint else ""))


class Word(Struct, frozen=True):
    """A piece of the spec and its position."""

    text: str
    column: int


class Call(Struct, frozen=True):
    """``name(parameter=value, …)`` as written; each value is the list of its alternatives."""

    name: Word
    arguments: tuple[tuple[Word | None, tuple[Word, ...]], ...] = ()


class Reader:
    """Reads one spec from left to right."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._at = 0

    def calls(self) -> list[Call]:
        """All parts. Raises SpecError."""
        found = [self._call()]
        while self._take("+"):
            found.append(self._call())
        if self._at < len(self.spec):
            raise self.error(self._at, f"'{self.spec[self._at]}' is not expected here", "parts are joined by '+'")
        return found

    def error(self, at: int, message: str, hint: str = "") -> SpecError:
        return SpecError(self.spec, at + 1, message, hint)

    def _call(self) -> Call:
        name = self._word(_NAME, "the name of a strategy")
        if self._take(":"):
            return Call(name, ((None, (self._word(_VALUE, "a value"),)),))
        if not self._take("("):
            return Call(name)
        arguments: list[tuple[Word | None, tuple[Word, ...]]] = []
        while not self._take(")"):
            if arguments and not self._take(","):
                raise self.error(self._at, "')' or ',' is missing")
            arguments.append(self._argument())
        return Call(name, tuple(arguments))

    def _argument(self) -> tuple[Word | None, tuple[Word, ...]]:
        start = self._at
        self._space()
        if match := re.compile(rf"({_NAME.pattern})\s*=").match(self.spec, self._at):
            word = Word(match[1], self._at + 1)
            self._at = match.end()
            return word, self._values()
        self._at = start
        return None, self._values()

    def _values(self) -> tuple[Word, ...]:
        if not self._take("["):
            return (self._word(_VALUE, "a value"),)
        values = [self._word(_VALUE, "a value")]
        while self._take(","):
            values.append(self._word(_VALUE, "a value"))
        if not self._take("]"):
            raise self.error(self._at, "']' is missing")
        return tuple(values)

    def _word(self, pattern: re.Pattern[str], what: str) -> Word:
        self._space()
        match = pattern.match(self.spec, self._at)
        if match is None:
            found = f"'{self.spec[self._at]}'" if self._at < len(self.spec) else "the end"
            raise self.error(self._at, f"{what} is missing before {found}")
        self._at = match.end()
        return Word(match[0], match.start() + 1)

    def _take(self, mark: str) -> bool:
        self._space()
        if not self.spec.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _space(self) -> None:
        while self._at < len(self.spec) and self.spec[self._at].isspace():
            self._at += 1


def read_parts(spec: str) -> tuple[Part, ...]:
    """The parts that a spec names, without ranges. Raises SpecError."""
    reader = Reader(spec)
    return tuple(_part(reader, call) for call in reader.calls())


def read_grid(spec: str) -> tuple[tuple[Part, ...], ...]:
    """All combinations of a spec whose values may be ranges and lists: ``mask(after=1..8,step=[1,5])``."""
    reader = Reader(spec)
    choices = [_alternatives(reader, call) for call in reader.calls()]
    size = 1
    for alternatives in choices:
        size *= len(alternatives)
    if size > MAX_GRID:
        raise reader.error(0, f"the grid means {size:,} strategies", f"at most {MAX_GRID:,}")
    return tuple(itertools.product(*([_part(reader, call) for call in calls] for calls in choices)))


_OPEN_PART = re.compile(r"(?:^|[+\s])([A-Za-z_]\w*)\((?:[^()]*,)?\s*(\w*)$")
_LAST_PART = re.compile(r"(?:^|\+)\s*([A-Za-z_]\w*)$")


def completed(begun: str) -> tuple[str, ...]:
    """Texts that a spec may become with its last word completed: the name of a part, or of a parameter of the part
    whose bracket is open. Empty if nothing fits."""
    if found := _OPEN_PART.search(begun):
        kind, word = PARTS.get(found[1]), found[2]
        names = [f"{name}=" for name in kind.parameters()] if kind is not None else []
    elif found := _LAST_PART.search(begun):
        word = found[1]
        names = [f"{name}(" if name == word and part.parameters() else name for name, part in PARTS.items()]
    else:
        return ()
    before = begun[: len(begun) - len(word)]
    return tuple(before + name for name in names if name.startswith(word) and name != word)


def _alternatives(reader: Reader, call: Call) -> list[Call]:
    values = [[word for value in values for word in _spread(reader, value)] for _, values in call.arguments]
    names = [name for name, _ in call.arguments]
    chosen = itertools.product(*values)
    return [
        Call(call.name, tuple((name, (value,)) for name, value in zip(names, combination, strict=True)))
        for combination in chosen
    ]


def _spread(reader: Reader, value: Word) -> list[Word]:
    match = _RANGE.fullmatch(value.text)
    if match is None:
        return [value]
    first, last = int(match[1]), int(match[2])
    if last - first >= MAX_GRID:
        raise reader.error(value.column - 1, f"the range {value.text} is too long", f"at most {MAX_GRID:,} values")
    if last < first:
        raise reader.error(value.column - 1, f"the range {value.text} is empty", f"{last}..{first}?")
    return [Word(str(number), value.column) for number in range(first, last + 1)]


def _part(reader: Reader, call: Call) -> Part:
    kind = PARTS.get(call.name.text)
    if kind is None:
        hint = _nearest(call.name.text, list(PARTS)) or f"one of {', '.join(PARTS)}"
        raise reader.error(call.name.column - 1, f"'{call.name.text}' is not a strategy", hint)
    values: dict[str, Any] = {}
    names = list(kind.parameters())
    for position, (word, alternatives) in enumerate(call.arguments):
        value = alternatives[0]
        name, at = (word.text, word.column - 1) if word else (names[position] if position < len(names) else "", 0)
        if name not in names:
            raise _no_parameter(reader, kind, name, at if word else value.column - 1)
        if name in values:
            raise reader.error(at, f"'{name}' is given twice")
        if len(alternatives) > 1 or _RANGE.fullmatch(value.text):
            raise reader.error(value.column - 1, "several values are a grid, for sweep; here one is expected")
        values[name] = _value(reader, kind, name, value)
    try:
        part = kind(**values)
    except ValueError as fault:
        raise reader.error(call.name.column - 1, str(fault)) from None
    if reason := part.impossible():
        raise reader.error(call.name.column - 1, reason)
    return part


def _no_parameter(reader: Reader, kind: type[Part], name: str, at: int) -> SpecError:
    names = list(kind.parameters())
    if not names:
        return reader.error(at, f"{kind.NAME} takes no parameters")
    if not name:
        return reader.error(at, f"{kind.NAME} takes {len(names)} parameters", ", ".join(names))
    return reader.error(at, f"{kind.NAME} has no parameter '{name}'", _nearest(name, names) or ", ".join(names))


def _value(reader: Reader, kind: type[Part], name: str, word: Word) -> object:
    """The value of a parameter by its type."""
    hint = get_type_hints(kind)[name]
    allowed = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    text, lowered = word.text, word.text.lower()
    if NoneType in allowed and lowered == "none":
        return None
    for option in allowed:
        if option is bool and lowered in ("true", "false"):
            return lowered == "true"
        if option is int and re.fullmatch(r"\d[\d_]*", text):
            return int(text)
        if option is float and re.fullmatch(r"\d+(\.\d+)?|\.\d+", text):
            return float(text)
        if option is str:
            return text
        if get_origin(option) is Literal and lowered in get_args(option):
            return lowered
    raise reader.error(word.column - 1, f"{kind.NAME}: {name} must be {_expected(allowed)}, got '{text}'")


def _expected(allowed: Sequence[object]) -> str:
    words: Mapping[object, str] = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none"}
    said: list[str] = []
    for option in allowed:
        said += [str(choice) for choice in get_args(option)] if get_origin(option) is Literal else [words[option]]
    return " or ".join(said)


def _nearest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else ""


class Strategy(Struct, frozen=True, eq=False):
    """Parts by the question they answer. ``str`` gives the spec text, which ``parse`` reads back."""

    enters: EnteringPart | None = None
    """None leaves it to the file."""
    survives: tuple[SurvivingPart, ...] = ()
    """If two parts decide about one message, the later one wins."""
    fits: Budget | None = None
    """None leaves it to the file."""
    name: str = ""
    """Under which it is known, if any."""
    whole: bool = False
    """The strategy replaces all that the file says; nothing is taken from there."""

    def __eq__(self, other: object) -> bool:
        """By the parts alone: a strategy is the same under another name."""
        return isinstance(other, Strategy) and self._parts == other._parts

    def __ne__(self, other: object) -> bool:
        return not self == other  # A struct's own would compare identities.

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.enters, self.survives, self.fits

    @classmethod
    def of(cls, cascade: Cascade, phase: Phase, base: Path = (), arrival: Arrival = Arrival()) -> Strategy:
        """Returns the strategy that the file states for a phase, whose path is ``base`` (found by identity if not
        given), reached as ``arrival`` says.

        A ``strategy:`` of the phase, else of the cascade, is laid over the other fields. Raises SpecError if one cannot
        be read.
        """
        if not base:
            base = ("phases", next((i for i, p in enumerate(cascade.phases) if p is phase), 0))
        file = PhaseInFile(cascade, phase, base, arrival)
        found = [part for read in FROM_FILE if (part := read(file)) is not None]
        written = replace(_composed([*found, Selective()]), whole=True)
        for spec, path in ((phase.strategy, (*base, "strategy")), (cascade.strategy, ("strategy",))):
            if spec is not None:
                named = with_named(cascade.strategies)(spec)
                placed = _composed([replace(part, written={"*": path}) for part in named.parts])
                return replace(placed, name=named.name).over(written)
        return written

    def over(self, base: Strategy) -> Strategy:
        """This strategy; what it leaves open is taken from ``base``.

        A strategy that sets what enters also sets what survives: if it names no such part, everything survives. One
        that does not set what enters keeps that of ``base``, and the parts that it names replace all surviving ones.
        The budget stays unless named.
        """
        survives = self.survives if self.survives or self.enters is not None else base.survives
        enters, fits = self.enters or base.enters, self.fits or base.fits
        return replace(self, enters=enters, survives=survives, fits=fits, whole=base.whole)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, in the order of the spec."""
        parts = (self.enters, *self.survives, self.fits)
        return tuple(cast(Part, part) for part in parts if part is not None)

    @property
    def void_fields(self) -> tuple[str, ...]:
        """The fields of a phase that this strategy makes void: those that set what enters, unless a part reads them
        itself, and the one that sets what survives.
        """
        named = [part for part in self.parts if part.ROLE is not Role.FITS]
        if not named:
            return ()
        read = {part.READS for part in named}
        enters = any(part.ROLE is Role.ENTERS and not isinstance(part, Selective) for part in named)
        entering = ("context", "inject_from", "fidelity", "thread_id") if enters else ()
        return (*(name for name in entering if name not in read), "intra_context")

    def __str__(self) -> str:
        return "+".join(str(part) for part in self.parts)


def strategy_facts(spec: str) -> StrategyFacts:
    """Returns how a spec treats the fields of a phase, for checks of a file; empty if the spec cannot be read."""
    try:
        strategy = parse(spec)
    except SpecError:
        return StrategyFacts()
    reads = frozenset(part.READS for part in strategy.parts if part.READS)
    return StrategyFacts(strategy.void_fields, reads, strategy.fits is not None)


def parse(spec: str) -> Strategy:
    """The strategy that a spec means. Raises SpecError with the column."""
    return _strategy(spec, read_parts(spec))


def with_named(strategies: Mapping[str, str]) -> Callable[[str], Strategy]:
    """A ``parse`` that also knows these strategies by their names."""

    def parse_named(spec: str) -> Strategy:
        name = spec.strip()
        known = strategies.get(name)
        if known is None:
            try:
                return parse(spec)
            except SpecError as fault:
                if not strategies or name in PARTS or not _NAME.fullmatch(name):
                    raise
                hint = _nearest(name, [*strategies, *PARTS]) or f"the file names {', '.join(strategies)}; {fault.hint}"
                raise SpecError(spec, fault.column, fault.message, hint) from None
        return replace(_strategy(known, read_parts(known)), name=spec.strip())

    return parse_named


def grid(spec: str) -> tuple[Strategy, ...]:
    """All strategies that a spec with ranges and lists means: ``mask(after=1..8,step=[1,5])``. Raises SpecError."""
    return tuple(_strategy(spec, parts) for parts in read_grid(spec))


def _strategy(spec: str, parts: Sequence[Part]) -> Strategy:
    for role, words in ((Role.ENTERS, "what enters"), (Role.FITS, "the budget")):
        named = [part.NAME for part in parts if part.ROLE is role]
        if len(named) > 1:
            at = spec.index(named[1], spec.index(named[0]) + len(named[0]))
            raise SpecError(spec, at + 1, f"'{named[1]}' and '{named[0]}' both say {words}", "name one of them")
    return _composed(parts)


def _composed(parts: Sequence[Part]) -> Strategy:
    """A strategy of these parts; of several that enter or fit, the first counts."""
    by_role: dict[Role, list[Part]] = {role: [part for part in parts if part.ROLE is role] for role in Role}
    enters, fits = by_role[Role.ENTERS], by_role[Role.FITS]
    return Strategy(
        cast(EnteringPart, enters[0]) if enters else None,
        tuple(cast(SurvivingPart, part) for part in by_role[Role.SURVIVES]),
        cast(Budget, fits[0]) if fits else None,
    )
