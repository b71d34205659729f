"""Annotations that people add to a run and to its calls afterwards: tags, notes, a score, a thumb.

An annotation is a late fact beside the journal, which stays unchanged. Each record has an id and names the records that
it replaces; a record is in force unless another one replaces it. So the order of records does not matter, and records
that two processes add at the same time are all kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal

from msgspec import Struct

from workbench.context.place import Place
from workbench.language.clean import clean, clean_line

Kind = Literal["tag", "note", "score", "thumb", "removed"]

UP, DOWN = "up", "down"
LONGEST_TAG, LONGEST_NOTE = 64, 10_000
"""Characters."""


class AnnotationError(ValueError):
    """An invalid tag, note, score or thumb; the message says what is allowed."""


class Annotation(Struct, frozen=True):
    """One record. ``value`` is the tag, the text of the note, the number, or ``up`` or ``down``."""

    id: str
    at: str
    """UTC, ISO 8601 with microseconds and ``Z``."""
    kind: Kind
    value: str | float = ""
    place: Place = Place()
    """The call that it is about; that of the run is the empty one."""
    replaces: tuple[str, ...] = ()
    """Ids of the records that no longer hold."""

    def to_json(self) -> dict[str, Any]:
        """Without empty fields."""
        place = {"place": str(self.place)} if self.place != Place() else {}
        replaces = {"replaces": list(self.replaces)} if self.replaces else {}
        value = {} if self.kind == "removed" else {"value": self.value}
        return {"id": self.id, "at": self.at, "kind": self.kind, **value, **place, **replaces}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Annotation | None:
        """Read a record back; None for a kind that a later release writes. Raises KeyError, TypeError, ValueError for
        invalid records.
        """
        kind = body["kind"]
        if kind not in _CHECKED and kind != "removed":
            return None
        value = "" if kind == "removed" else _CHECKED[kind](body["value"])
        place = Place.parse(body["place"]) if "place" in body else Place()
        replaces = body.get("replaces", [])
        texts = (body["id"], body["at"], *replaces)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("an id and a time are texts")
        return cls(body["id"], body["at"], kind, value, place, tuple(replaces))


class Labels(Struct, frozen=True):
    """The tags, notes, score and thumb of one run, or of one call of it."""

    tags: tuple[str, ...] = ()
    """In the order in which they were given, each once."""
    notes: tuple[str, ...] = ()
    score: float | None = None
    """Of several given at the same time, the newest."""
    thumb: str = ""
    """``up`` or ``down``."""

    def __bool__(self) -> bool:
        return bool(self.tags or self.notes or self.thumb) or self.score is not None

    def to_json(self) -> dict[str, Any]:
        """All four, whether they are set or not."""
        return {"tags": list(self.tags), "notes": list(self.notes), "score": self.score, "thumb": self.thumb or None}


NO_LABELS = Labels()


def common(several: Sequence[Labels]) -> Labels:
    """Returns the labels that each of several runs has; no notes, which are written for one."""
    if len(several) == 1:
        return several[0]
    first = several[0]
    tags = tuple(tag for tag in first.tags if all(tag in one.tags for one in several))
    score = first.score if all(one.score == first.score for one in several) else None
    thumb = first.thumb if all(one.thumb == first.thumb for one in several) else ""
    return Labels(tags, (), score, thumb)


class Annotations:
    """All records of a run, and what holds of them."""

    def __init__(self, records: Iterable[Annotation] = ()) -> None:
        """The same record given twice counts once."""
        self.records = tuple({record.id: record for record in records}.values())
        gone = {id for record in self.records for id in record.replaces}
        self.holding = tuple(
            sorted(
                (one for one in self.records if one.id not in gone and one.kind != "removed"),
                key=lambda one: (one.at, one.id),
            )
        )
        """The records that hold, oldest first."""
        by_place: dict[Place, list[Annotation]] = {}
        for one in self.holding:
            by_place.setdefault(one.place, []).append(one)
        self._labels = {place: _labels(found) for place, found in by_place.items()}

    def __bool__(self) -> bool:
        return bool(self.holding)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Annotations) and self.holding == other.holding

    __hash__ = None  # type: ignore[assignment]

    @property
    def run(self) -> Labels:
        """Of the run itself."""
        return self.at(Place())

    def at(self, place: Place) -> Labels:
        """Of the call at a place; of the run for the empty one."""
        return self._labels.get(place, NO_LABELS)

    def calls(self) -> tuple[tuple[Place, Labels], ...]:
        """The calls that something is said of, in the order of their places."""
        return tuple(sorted((place, labels) for place, labels in self._labels.items() if place != Place()))

    def to_json(self) -> dict[str, Any]:
        """The labels of the run, and of its calls by place."""
        return self.run.to_json() | {"calls": {str(place): labels.to_json() for place, labels in self.calls()}}

    # -- changes -----------------------------------------------------------------------------------------------------

    def matching(self, place: Place, kind: Kind, value: str | float | None = None) -> list[Annotation]:
        """The records of a kind that hold at a place; with a value, those that say it."""
        return [
            one
            for one in self.holding
            if one.place == place and one.kind == kind and (value is None or one.value == value)
        ]


class Change(Struct, frozen=True):
    """Labels to add to a place, and to take away from it. One that holds already is not added again, and one that does
    not hold is not removed; to take a thing away and to add it adds it."""

    place: Place = Place()
    tags: tuple[str, ...] = ()
    untag: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    drop_notes: tuple[str, ...] = ()
    """Texts of notes that go."""
    score: float | None = None
    drop_score: bool = False
    thumb: str = ""
    drop_thumb: bool = False

    def records(self, now: Annotations, at: str, ids: Iterator[str]) -> list[Annotation]:
        """The records that make it so, given what holds ``now``. Raises AnnotationError."""
        made: list[Annotation] = []
        gone: list[Annotation] = []
        for tag in self.untag:
            gone += now.matching(self.place, "tag", check_tag(tag))
        for note in self.drop_notes:
            gone += now.matching(self.place, "note", note)
        if self.drop_score and self.score is None:
            gone += now.matching(self.place, "score")
        if self.drop_thumb and not self.thumb:
            gone += now.matching(self.place, "thumb")
        if gone:
            made.append(Annotation(next(ids), at, "removed", "", self.place, tuple(one.id for one in gone)))
        gone_ids = {one.id for one in gone}
        for kind, values in (("tag", self.tags), ("note", self.notes)):
            for value in dict.fromkeys(map(_CHECKED[kind], values)):
                if not [one for one in now.matching(self.place, kind, value) if one.id not in gone_ids]:  # type: ignore[arg-type]
                    made.append(Annotation(next(ids), at, kind, value, self.place))  # type: ignore[arg-type]
        if self.score is not None:
            made += self._single(now, "score", check_score(self.score), at, ids)
        if self.thumb:
            made += self._single(now, "thumb", check_thumb(self.thumb), at, ids)
        return made

    def _single(
        self, now: Annotations, kind: Kind, value: str | float, at: str, ids: Iterator[str]
    ) -> Iterator[Annotation]:
        """A value that a place has at most once: it replaces earlier ones."""
        before = now.matching(self.place, kind)
        if [one.value for one in before] != [value]:
            yield Annotation(next(ids), at, kind, value, self.place, tuple(one.id for one in before))


def check_tag(value: object) -> str:
    """A tag as it is kept: one word. Raises AnnotationError."""
    text = value.strip().removeprefix("#") if isinstance(value, str) else ""
    if not text or len(text) > LONGEST_TAG or any(letter.isspace() or letter in ',"' for letter in text):
        raise AnnotationError(
            f"'{clean_line(str(value), 40)}' is not a tag: one word without commas or quotes, "
            f"at most {LONGEST_TAG} characters"
        )
    return clean_line(text)


def check_note(value: object) -> str:
    """A note as it is kept. Raises AnnotationError."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise AnnotationError("a note needs a text")
    if len(text) > LONGEST_NOTE:
        raise AnnotationError(f"a note has at most {LONGEST_NOTE:,} characters; this one has {len(text):,}")
    return clean(text)


def check_score(value: object) -> float:
    """A score as it is kept. Raises AnnotationError."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else float("nan")
    except (ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise AnnotationError(f"'{clean_line(str(value), 40)}' is not a score: a number, such as 4 or 0.75")
    return number


def check_thumb(value: object) -> str:
    """A thumb as it is kept. Raises AnnotationError."""
    if value not in (UP, DOWN):
        raise AnnotationError(f"'{clean_line(str(value), 40)}' is not a thumb: {UP} or {DOWN}")
    return str(value)


_CHECKED: Mapping[str, Any] = {"tag": check_tag, "note": check_note, "score": check_score, "thumb": check_thumb}


def _labels(found: Iterable[Annotation]) -> Labels:
    tags: dict[str, None] = {}
    notes: dict[str, None] = {}
    score: float | None = None
    thumb = ""
    for one in found:
        match one.kind, one.value:
            case "tag", str(value):
                tags[value] = None
            case "note", str(value):
                notes[value] = None
            case "score", float(number):
                score = number
            case "thumb", str(value):
                thumb = value
    return Labels(tuple(tags), tuple(notes), score, thumb)
