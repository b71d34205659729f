"""The filter language of runs: ``status:failed tokens>8000 text:"rate limit"``, parsed with a column for every mistake.

All terms must hold; ``or`` separates alternatives; ``-`` before a term means not. A term is ``field:value`` or a
comparison, or a bare word that the names, input, output or notes of a run hold; commas give several values.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.engine.journal.annotations import DOWN, UP
from workbench.store.summary import STATUSES, WAITING, RunSummary
from workbench.store.text_search import Hit, Phrase, TextSearch, excerpt

# The values of a filter: numbers with units, lengths of time, and moments, which may be whole months or days.

Operator = Literal[":", "=", ">", ">=", "<", "<="]

_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*|\.\d+)(k|m)?", re.IGNORECASE)
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?")
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MOMENT = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T_](\d{1,2}):(\d{2}))?)?)?")


class BadValue(ValueError):
    """A value that its field cannot take; the message says what it takes."""


class Period(Struct, frozen=True):
    """From ``start`` up to, not including, ``end``."""

    start: datetime
    end: datetime


def number(text: str) -> float:
    """``8000``, ``8,000``, ``8k``, ``1.5M``, ``$0.05``. Raises BadValue."""
    found = _NUMBER.fullmatch(text.removeprefix("$"))
    if found is None:
        raise BadValue(f"'{text}' is not a number")
    digits, unit = found.groups()
    try:
        value = float(re.sub(r",(?=\d{3}\b)", "", digits))
    except ValueError:
        raise BadValue(f"'{text}' is not a number") from None
    return value * {"k": 1e3, "m": 1e6, "": 1.0}[(unit or "").lower()]


def length(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``2m``, ``3h``, ``7d``, ``2w``, ``800ms``. Raises BadValue."""
    found = _LENGTH.fullmatch(text.lower())
    if found is None:
        raise BadValue(f"'{text}' is not a length of time such as 90s, 5m, 2h, 7d or 2w")
    return float(found[1]) * _UNITS[found[2] or ""]


def period(text: str, now: datetime) -> Period:
    """``today``, ``yesterday``, ``2026``, ``2026-11``, ``2026-11-01``, ``2026-11-01T14:30``, in the zone of ``now``.

    Raises BadValue.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    if text.lower() in ("today", "yesterday"):
        start = midnight if text.lower() == "today" else midnight - day
        return Period(start, start + day)
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise BadValue(f"'{text}' is not a date such as 2026-11-01, 2026-11, today or yesterday")
    year, month, date, hour, minute = (None if part is None else int(part) for part in found.groups())
    try:
        start = midnight.replace(year=year or 1, month=month or 1, day=date or 1, hour=hour or 0, minute=minute or 0)
        if hour is not None:
            return Period(start, start + timedelta(minutes=1))
        if date is not None:
            return Period(start, start + day)
        if month is not None:
            return Period(start, (start + 31 * day).replace(day=1))
        return Period(start, start.replace(year=start.year + 1))
    except (ValueError, OverflowError):
        raise BadValue(f"'{text}' is not a day of the calendar") from None


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ":": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


def compares(found: float | None, operator: Operator, wanted: float) -> bool:
    """Returns whether a number is as wanted; one that is not known never is."""
    return found is not None and _COMPARE[operator](found, wanted)


def lies(moment: datetime | None, operator: Operator, wanted: Period) -> bool:
    """Returns whether a moment lies in, before or after a period; one that is not known never does."""
    if moment is None:
        return False
    match operator:
        case ">":
            return moment >= wanted.end
        case ">=":
            return moment >= wanted.start
        case "<":
            return moment < wanted.start
        case "<=":
            return moment < wanted.end
        case _:
            return wanted.start <= moment < wanted.end


# What a filter can ask of a run: one table of fields, each with its sort of value.

Test = Callable[[RunSummary], bool]
Sort = Literal["words", "choice", "number", "length", "moment", "age", "text"]


class Field(Struct, frozen=True):
    """One field. ``get`` gives a run's value: texts, a number or an ISO time; None if unknown."""

    name: str
    sort: Sort
    help: str
    get: Callable[[RunSummary], object]
    choices: tuple[str, ...] = ()


def kinds_of(run: RunSummary) -> tuple[str, ...]:
    """Returns the kinds of a run that ``is:`` can name."""
    kind = run.parent_kind or ("fork" if run.parent_run else "")
    facts = {
        "fork": kind in ("fork", "replay"),
        "rerun": kind == "rerun",
        "child": run.depth > 0,
        "edited": run.edited > 0,
        "imported": run.imported,
        "damaged": bool(run.fault) or run.damaged,
        "unfinished": run.resumable,
        "redefined": run.redefined,
        "annotated": any(run.all_labels),
    }
    return tuple(name for name, holds in facts.items() if holds)


def statuses_of(run: RunSummary) -> tuple[str, ...]:
    """A run that waits for a person is running, too, or has stopped at the question."""
    return (run.status, WAITING) if run.unanswered else (run.status,)


KINDS = ("fork", "rerun", "child", "edited", "imported", "damaged", "unfinished", "redefined", "annotated")

FIELDS: tuple[Field, ...] = (
    Field("status", "choice", "how it ended, or running: waiting (for a person)", statuses_of, (*STATUSES, WAITING)),
    Field(
        "is",
        "choice",
        "what it is: a fork or rerun, a child of another run, unfinished, annotated …",
        kinds_of,
        KINDS,
    ),
    Field("session", "words", "its session id", lambda r: (r.session_id,)),
    Field("id", "words", "its run id", lambda r: (r.run_id,)),
    Field("cascade", "words", "the cascade's id", lambda r: (r.cascade_id,)),
    Field("file", "words", "the cascade's file", lambda r: (r.cascade_file,)),
    Field("phase", "words", "a phase that it visited", lambda r: r.phases),
    Field("model", "words", "a model that answered, or was asked", lambda r: (*r.models, *r.model.split(", "))),
    Field("parent", "words", "session or run that it came from", lambda r: (r.parent_session, r.parent_run)),
    Field("source", "words", "the format that it was imported from", lambda r: (r.source,)),
    Field("reason", "words", "why it ended so, or what is wrong with it", lambda r: (r.reason, r.fault)),
    Field("user", "words", "who ran it, of runs on a team's server", lambda r: (r.user,)),
    Field("machine", "words", "the machine that it ran on, likewise", lambda r: (r.machine,)),
    Field("calls", "number", "model calls; recorded answers are none", lambda r: r.calls),
    Field("tools", "number", "tool calls", lambda r: r.tools),
    Field("tokens", "number", "tokens in and out", lambda r: r.tokens_in + r.tokens_out),
    Field("in", "number", "tokens in", lambda r: r.tokens_in),
    Field("out", "number", "tokens out", lambda r: r.tokens_out),
    Field("cost", "number", "US dollars, billed or predicted; an unknown one never matches", lambda r: r.spent.total),
    Field("seconds", "length", "from start to end: 90, 2m", lambda r: r.seconds),
    Field("warnings", "number", "warnings", lambda r: r.warnings),
    Field("edits", "number", "edits by hand", lambda r: r.edited),
    Field("date", "moment", "when it started: 2026-11-01, 2026-11, today, yesterday", lambda r: r.started),
    Field("age", "age", "how long ago it started: age<2h, age>7d", lambda r: r.started),
    Field("input", "words", "in its input", lambda r: (r.input,)),
    Field("output", "words", "in its output", lambda r: (r.output,)),
    Field(
        "tag", "words", "a tag of it or of one of its calls", lambda r: tuple(t for x in r.all_labels for t in x.tags)
    ),
    Field(
        "note",
        "words",
        "in a note on it or on one of its calls",
        lambda r: tuple(n for x in r.all_labels for n in x.notes),
    ),
    Field(
        "score",
        "number",
        "the score of it or of one of its calls",
        lambda r: tuple(x.score for x in r.all_labels if x.score is not None),
    ),
    Field(
        "thumb",
        "choice",
        "a thumb on it or on one of its calls",
        lambda r: tuple(x.thumb for x in r.all_labels),
        (UP, DOWN),
    ),
    Field("text", "text", 'words in its messages, results, errors and output: text:"rate limit"', lambda r: None),
)

BY_NAME = {field.name: field for field in FIELDS}

_ROW = ("session", "id", "cascade", "file", "phase", "model", "status", "reason", "tag", "note", "input", "output")
"""Texts that a bare word is searched in."""


_LABELS = ("tag", "note", "score", "thumb")
"""Fields of annotations."""


def row_test(word: str, names: Sequence[str] = _ROW) -> Test:
    """Returns whether a run's names, input, output or notes hold a word, as far as its summary has them."""
    tests = [words_test(BY_NAME[name], [word], ":") for name in names]
    return lambda run: any(test(run) for test in tests)


def hit_of(run: RunSummary, word: str) -> Hit | None:
    """The text of a run that holds a word, with its surroundings; None if only a name holds it."""
    wanted = word.casefold()
    annotated = (("", run.labels), *run.call_labels)
    notes = (("note", note, call) for call, labels in annotated for note in labels.notes)
    for place, text, call in (("input", run.input, ""), ("output", run.output, ""), *notes):
        if wanted in text.casefold():
            return Hit(place, excerpt(text, wanted), call)
    return None


def words_test(field: Field, values: Sequence[str], operator: Operator) -> Test:
    """``:`` finds a part of a text, or a pattern with ``*`` and ``?``; ``=`` wants it whole. Case does not matter."""
    wanted = [value.casefold() for value in values]

    def fits(text: str) -> bool:
        text = text.casefold()
        if operator == "=":
            return text in wanted
        return any(fnmatch.fnmatchcase(text, one) if set(one) & {"*", "?"} else one in text for one in wanted)

    def test(run: RunSummary) -> bool:
        found = field.get(run)
        assert isinstance(found, tuple)
        return any(fits(text) for text in found if text)

    return test


def choice_test(field: Field, values: Sequence[str]) -> Test:
    """One of the field's own words, or the beginning of it. Raises BadValue, which names the nearest."""
    chosen: set[str] = set()
    for value in values:
        close = [name for name in field.choices if name.startswith(value.lower())] if value else []
        if not close:
            raise BadValue(f"'{value}' is not a value of {field.name}")
        chosen.update(close)

    def test(run: RunSummary) -> bool:
        found = field.get(run)
        assert isinstance(found, tuple)
        return not chosen.isdisjoint(found)

    return test


def value_test(field: Field, operator: Operator, text: str, now: datetime) -> Test:
    """A comparison of a number, a length of time or a moment. Raises BadValue."""

    def measured(run: RunSummary) -> tuple[float, ...]:
        found = field.get(run)
        values = found if isinstance(found, tuple) else (found,)
        return tuple(float(value) for value in values if isinstance(value, int | float))

    def begun(run: RunSummary) -> datetime | None:
        try:
            return datetime.fromisoformat(str(field.get(run)))
        except ValueError:
            return None

    if field.sort == "moment":
        span = period(text, now)
        return lambda run: lies(begun(run), operator, span)
    wanted = number(text) if field.sort == "number" else length(text)
    if field.sort != "age":
        return lambda run: any(compares(found, operator, wanted) for found in measured(run))

    def age(run: RunSummary) -> float | None:
        start = begun(run)
        return None if start is None else (now - start).total_seconds()

    return lambda run: compares(age(run), operator, wanted)


# Runs that match a filter, in the order in which they are given; texts are searched only where they decide.


class RunMatch(Struct, frozen=True):
    """A run that matches, and the places of the searched phrases."""

    run: RunSummary
    hits: Mapping[str, Hit] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    """The calls whose annotations make it match, by place: see ``Filter.calls``."""


def find_runs(
    runs: Iterable[RunSummary],
    wanted: Filter,
    search: TextSearch,
    going: Callable[[int], bool] = lambda looked: True,
) -> Iterator[RunMatch]:
    """The matching runs one by one. ``going`` is told before each search of a journal how many runs have been looked
    at, and ends it by saying False."""
    for looked, run in enumerate(runs):
        verdict = wanted.verdict(run)
        hits: dict[str, Hit] = {}
        if verdict is None:
            if not going(looked):
                return
            verdict, hits = _read(run, wanted, search)
        if verdict:
            words = {word: hit for word in wanted.words if (hit := hit_of(run, word)) is not None}
            yield RunMatch(run, {**words, **hits}, wanted.calls(run))


def _read(run: RunSummary, wanted: Filter, search: TextSearch) -> tuple[bool, dict[str, Hit]]:
    texts: dict[Phrase, bool] = {}
    hits: dict[str, Hit] = {}
    for phrase in wanted.phrases:
        if phrase.ends and not run.excerpt:
            continue  # Its summary has both in full.
        hit = search.find(run.run_id, phrase)
        texts[phrase] = hit is not None
        if hit is not None:
            hits[phrase.text] = hit
        verdict = wanted.verdict(run, texts)
        if verdict is not None:
            return verdict, hits
    return bool(wanted.verdict(run, texts)), hits


_TERM = re.compile(r"(?P<field>[A-Za-z_]+)(?P<operator>>=|<=|!=|[:=<>])")
_WORD = re.compile(r"\S+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'', re.DOTALL)
_ORDERED = ("number", "length", "moment", "age")
_PROSE = ("reason", "input", "output", "note")
"""Fields whose values are sentences: nobody writes one whole."""
_UNFIT = re.compile(r"""[\s,"']""")
"""In a value that would have to be quoted."""


class FilterError(ValueError):
    """A filter that cannot be read. ``column`` counts characters from 1; ``hint`` says what would be right."""

    def __init__(self, message: str, column: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        return f"column {self.column}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class Term(Struct, frozen=True):
    """One condition: a test of what is known of a run, or a phrase that its texts must hold."""

    negated: bool
    test: Test | None = None
    phrase: Phrase | None = None
    """The phrase to search in the journal if no test decides: for a word, if the summary has only part of the input or
    output.
    """
    inner: bool = False
    """It asks for what only a run inside another one is."""
    labels: Test | None = None
    """Whether the annotations of a run and its calls meet it; None for a term that asks for something else."""

    def verdict(self, run: RunSummary, texts: Mapping[Phrase, bool]) -> bool | None:
        """None until the phrase has been searched."""
        found = self.test(run) if self.test is not None else None
        if not found and self.phrase is not None and (run.excerpt or not self.phrase.ends):
            found = texts.get(self.phrase)
        return None if found is None else found is not self.negated


class Filter(Struct, frozen=True):
    """A filter that was understood: alternatives, each a row of terms that must all hold."""

    text: str
    alternatives: tuple[tuple[Term, ...], ...] = ()

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The phrases that may have to be searched in the texts of runs."""
        found = (term.phrase for terms in self.alternatives for term in terms if term.phrase is not None)
        return tuple(dict.fromkeys(found))

    @property
    def words(self) -> tuple[str, ...]:
        """The plain words that a run should hold."""
        terms = (term for terms in self.alternatives for term in terms if term.phrase and not term.negated)
        return tuple(dict.fromkeys(term.phrase.text for term in terms if term.phrase and term.phrase.ends))

    @property
    def reads(self) -> bool:
        """Whether it asks for texts of whole journals."""
        return any(not phrase.ends for phrase in self.phrases)

    @property
    def asks_inside(self) -> bool:
        """Whether it asks for runs inside other ones, which lists leave out otherwise."""
        return any(term.inner for terms in self.alternatives for term in terms)

    def verdict(self, run: RunSummary, texts: Mapping[Phrase, bool] | None = None) -> bool | None:
        """Returns whether a run matches, as far as ``texts`` (phrase to found) tells; None if a phrase decides that is
        not in it.
        """
        if not self.alternatives:
            return True
        verdicts = [_all(terms, run, texts or {}) for terms in self.alternatives]
        return True if True in verdicts else None if None in verdicts else False

    def calls(self, run: RunSummary) -> tuple[str, ...]:
        """The calls of a matching run, by place, whose tags, notes, score or thumb meet all that the run itself does
        not."""
        if not run.call_labels:
            return ()
        found = {at for terms in self.alternatives if _all(terms, run, {}) is not False for at in _calls(terms, run)}
        return tuple(at for at, _ in run.call_labels if at in found)


def _all(terms: tuple[Term, ...], run: RunSummary, texts: Mapping[Phrase, bool]) -> bool | None:
    found = [term.verdict(run, texts) for term in terms]
    return False if False in found else None if None in found else True


def _calls(terms: tuple[Term, ...], run: RunSummary) -> Iterator[str]:
    alone = replace(run, call_labels=())
    asked = [term for term in terms if term.labels is not None and not term.negated]
    lacking = [term.labels for term in asked if term.labels is not None and not (term.test and term.test(alone))]
    for at, labels in run.call_labels if lacking else ():
        of_call = replace(alone, labels=labels)
        if all(fits(of_call) for fits in lacking):
            yield at


def parse_filter(text: str, now: datetime) -> Filter:
    """Read a filter; an empty one lets everything pass. ``now`` (with its zone) is what ``today`` and ages go by.

    Raises FilterError.
    """
    alternatives: list[list[Term]] = [[]]
    dangling = 0
    for piece in _pieces(text):
        if piece.joint == "or":
            if not alternatives[-1]:
                raise FilterError("'or' needs a condition on both sides", piece.column, 'the word itself is "or"')
            alternatives.append([])
            dangling = piece.column
        elif not piece.joint:
            alternatives[-1].append(_term(piece, now))
    if not alternatives[-1] and len(alternatives) > 1:
        raise FilterError("'or' needs a condition on both sides", dangling, 'the word itself is "or"')
    return Filter(text.strip(), tuple(tuple(terms) for terms in alternatives if terms))


class _Piece(Struct, frozen=True):
    """A term as it is written; columns count from 1."""

    column: int
    value_column: int
    negated: bool = False
    field: str = ""
    operator: str = ""
    value: str = ""
    quoted: bool = False
    joint: str = ""
    """``and`` or ``or``, if the word is one of these and no term."""


def _pieces(text: str) -> Iterator[_Piece]:
    at, end = 0, len(text)
    while True:
        while at < end and text[at].isspace():
            at += 1
        if at == end:
            return
        start = at
        negated = text[at] == "-"
        at += negated
        if negated and (at == end or text[at].isspace()):
            raise FilterError(
                "'-' means not, and stands right before what it denies", start + 1, "as in -status:failed"
            )
        head = _TERM.match(text, at)
        field, operator = (head["field"], head["operator"]) if head else ("", "")
        at = head.end() if head else at
        value, quoted, after = _value(text, at)
        joint = value.lower() if not (head or quoted or negated) and value.lower() in ("or", "and") else ""
        yield _Piece(start + 1, at + 1, negated, field, operator, value, quoted, joint)
        at = after


def _value(text: str, at: int) -> tuple[str, bool, int]:
    """The value at a position, whether it was quoted, and its end."""
    if text[at : at + 1] in ('"', "'"):
        found = _QUOTED.match(text, at)
        if found is None:
            raise FilterError("the quote is not closed", at + 1)
        inner = found[1] if found[1] is not None else found[2]
        return re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL), True, found.end()
    word = _WORD.match(text, at)
    return (word[0], False, word.end()) if word else ("", False, at)


def _term(piece: _Piece, now: datetime) -> Term:
    if not piece.operator:
        labels = row_test(piece.value, ("tag", "note"))
        return Term(piece.negated, row_test(piece.value), Phrase(piece.value, ends=True), labels=labels)
    field = BY_NAME.get(piece.field.lower())
    if field is None:
        raise FilterError(
            f"there is no field '{piece.field}'", piece.column + piece.negated, _nearest_field(piece.field)
        )
    if not piece.value:
        raise FilterError(f"{field.name} needs a value after '{piece.operator}'", piece.value_column, field.help)
    unequal = piece.operator == "!="
    operator = cast("Operator", "=" if unequal else piece.operator)
    if operator not in (":", "=") and field.sort not in _ORDERED:
        raise FilterError(
            f"{field.name} has no order", piece.value_column - len(operator), f"{field.name}:{piece.value}"
        )
    negated = piece.negated is not unequal
    if field.sort == "text":
        return Term(negated, None, Phrase(piece.value))
    inner = field.name in ("id", "parent") or (field.name == "is" and "child".startswith(piece.value.lower()))
    values = [piece.value] if piece.quoted else [value for value in piece.value.split(",") if value]
    try:
        test = _test(field, operator, values or [piece.value], piece.value, now)
    except BadValue as fault:
        raise FilterError(str(fault), piece.value_column, _nearest_choice(field, piece.value)) from None
    return Term(negated, test, inner=inner, labels=test if field.name in _LABELS else None)


def _test(field: Field, operator: Operator, values: list[str], whole: str, now: datetime) -> Test:
    if field.sort == "words":
        return words_test(field, values, operator)
    if field.sort == "choice":
        return choice_test(field, values)
    return value_test(field, operator, whole, now)


def _nearest_field(name: str) -> str:
    names = [field.name for field in FIELDS]
    close = difflib.get_close_matches(name.lower(), names, 1, 0.6)
    return f"did you mean '{close[0]}'?" if close else "there are " + ", ".join(names) + "; quote it to find the word"


def _nearest_choice(field: Field, value: str) -> str:
    if not field.choices:
        return field.help
    close = difflib.get_close_matches(value.rpartition(",")[2].lower(), field.choices, 1, 0.6)
    return f"did you mean '{close[0]}'?" if close else "it is one of " + ", ".join(field.choices)


def complete_filter(text: str, runs: Iterable[RunSummary]) -> tuple[str, ...]:
    """Whole lines that a filter may go on as, the likeliest first: with a field in the place of the word that is being
    written, or with a value that ``runs`` have; none inside quotes."""
    last = re.split(r"\s", text)[-1]
    if not last.strip("-") or text.count('"') % 2 or text.count("'") % 2:
        return ()
    before, word = text[: len(text) - len(last)], last.removeprefix("-")
    before += "-" * (last != word)
    head = _TERM.match(word)
    if head is None:
        ends = {"number": ">", "length": ">", "age": "<"}
        return tuple(
            f"{before}{field.name}{ends.get(field.sort, ':')}" for field in FIELDS if field.name.startswith(word)
        )
    field = BY_NAME.get(head["field"].lower())
    if field is None or field.sort not in ("words", "choice") or field.name in _PROSE:
        return ()
    *earlier, value = word[head.end() :].split(",")
    before += ",".join((head[0] + ",".join(earlier), "")) if earlier else head[0]
    held = Counter(text for run in runs for text in cast("tuple[str, ...]", field.get(run)) if text)
    known = dict.fromkeys((*(text for text, _ in held.most_common()), *field.choices))
    return tuple(f"{before}{one}" for one in known if one.startswith(value) and not _UNFIT.search(one))
