"""Annotations of runs and calls in words and signs: lists, cards, the tree and commands show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workbench.views.cells import Span, flat
from workbench.views.signs import sign
from workbench.views.value import Block, Cell, TextBlock, View

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.journal.annotations import Annotations, Labels


def call_words(place: Place) -> str:
    """``triage:3``; in full if a phase was visited or tried more than once, or on a branch."""
    plain = not place.branch and place.turn and (place.visit, place.attempt, place.call) == (1, 1, 1)
    return f"{place.phase}:{place.turn}" if plain else str(place)


def score_words(score: float | None) -> str:
    """``4``, ``0.75``; empty without a score."""
    return "" if score is None else f"{score:g}"


def verdict(labels: Labels) -> str:
    """Score and thumb, as a column shows them."""
    thumb = sign(f"thumb {labels.thumb}")[0] if labels.thumb else ""
    return f"{score_words(labels.score)} {thumb}".strip()


def tag_words(labels: Labels) -> str:
    """``#good #slow``."""
    return " ".join(f"#{flat(tag)}" for tag in labels.tags)


def label_words(labels: Labels) -> str:
    """All but the notes in one line of words: ``#good  score 4  thumb up``."""
    parts = (
        tag_words(labels),
        f"score {score_words(labels.score)}" if labels.score is not None else "",
        f"thumb {labels.thumb}" if labels.thumb else "",
    )
    return "  ".join(part for part in parts if part)


def label_spans(labels: Labels) -> tuple[Span, ...]:
    """A few cells for a row of the tree: that there are notes, which no tag pushes out, then tags, score and thumb."""
    if not labels:
        return ()
    words = " ".join(filter(None, (tag_words(labels), verdict(labels))))
    note: tuple[Span, ...] = (sign("note"), (" " if words else "", "plain")) if labels.notes else ()
    return (("  ", "plain"), *note, (words, "accent"))


def found_words(place: Place, labels: Labels) -> str:
    """A call by its place, with all that people said of it: ``triage:3 #good 4 ↑ ✎ ask Ben``."""
    notes = [f"{sign('note')[0]} {flat(note, 200)}" for note in labels.notes]
    return " ".join(filter(None, (flat(call_words(place)), tag_words(labels), verdict(labels), *notes)))


def below_spans(labels: Sequence[Labels]) -> tuple[Span, ...]:
    """The cells of a folded row: whether notes, or other annotations, are below it."""
    if not any(labels):
        return ()
    return ((" ", "plain"), sign("note") if any(one.notes for one in labels) else ("#", "accent"))


def searched_words(labels: Sequence[Labels]) -> str:
    """All that people said, for a search."""
    return flat(" ".join(word for one in labels for word in (label_words(one), *one.notes) if word))


class AnnotationsView(View):
    """The annotations of one run."""

    def __init__(self, name: str, annotations: Annotations) -> None:
        """``name`` is what people call the run."""
        self.name = name
        self.annotations = annotations

    def blocks(self) -> Iterator[Block]:
        said = [(self.name, self.annotations.run)] if self.annotations.run else []
        said += [(f"{self.name}@{call_words(place)}", labels) for place, labels in self.annotations.calls()]
        for name, labels in said:
            yield (Cell(name, "name"), "   ", Cell(label_words(labels), "accent"))
            for note in labels.notes:
                yield TextBlock(note, "  ")

    def json(self) -> dict[str, Any]:
        return {"session": self.name, **self.annotations.to_json()}
