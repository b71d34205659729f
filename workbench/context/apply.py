"""Writes a strategy into the text of a cascade: into the fields that express it, or as ``strategy:`` if no field does.

The new text is read again before it is returned, and its phases must then have exactly the requested strategy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from workbench.context.part import PhaseInFile
from workbench.context.parts.budget import Budget
from workbench.context.parts.loop import Loop
from workbench.context.parts.mask import Mask
from workbench.context.strategy import Strategy, with_named
from workbench.language.edit.edits import remove, replace
from workbench.language.edit.errors import EditError
from workbench.language.load import load
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path
from workbench.language.read.source import Source
from workbench.language.read.text import read_source

Edit = tuple[Path, Any]

_MASK = {
    "after": "mask_observations_after",
    "window": "window",
    "min_masked_size": "min_masked_size",
    "step": "step",
    "clear_at_least": "clear_at_least",
}
"""Parameters of ``mask`` that are always written: what a block leaves out is not what a spec leaves out."""
_SHARED: Path = ("auto_context", "intra_phase")


class ApplyError(ValueError):
    """A strategy that cannot be written into this file; the message says why."""


class AppliedStrategy(Struct, frozen=True):
    """A cascade's text with the strategy written into it."""

    text: str
    paths: tuple[Path, ...]
    """The paths that were written or removed; empty if the file said so already."""
    dropped: tuple[str, ...] = ()
    """What the phases had and have no longer, as in a spec: ``investigate: mask(window=16), loop(limit=3)``."""


class _Target(Struct, frozen=True):
    """The strategy to reach, and the file to change."""

    source: Source
    cascade: Cascade
    strategy: Strategy
    phases: tuple[tuple[int, Phase], ...]

    def wanted(self, phase: Phase) -> Strategy:
        return self.strategy.over(Strategy.of(self.cascade, phase))

    @property
    def is_everywhere(self) -> bool:
        return len(self.phases) == len(self.cascade.phases)


def apply(text: str, file: str, strategy: Strategy, phases: Collection[str]) -> AppliedStrategy:
    """The text with ``strategy`` laid over what it says for these phases; a token budget concerns all of them.

    Comments, order and layout stay. Raises ApplyError, and SpecError for a strategy in the file that cannot be read.
    """
    loaded = load(text, file)
    if loaded.cascade is None or not loaded.ok:
        raise ApplyError(f"{file}: the file has errors; nothing is written")
    cascade = loaded.cascade
    missing = sorted(set(phases) - {phase.name for phase in cascade.phases})
    if missing:
        raise ApplyError(f"{file} has no phase '{missing[0]}'")
    chosen = tuple(
        (i, phase) for i, phase in enumerate(cascade.phases) if phase.name in phases or strategy.fits is not None
    )
    target = _Target(loaded.source, cascade, strategy, chosen)
    if all(Strategy.of(cascade, phase) == target.wanted(phase) for _, phase in chosen):
        return AppliedStrategy(text, ())
    failure = ""
    for plan in (_as_fields, _as_spec):
        try:
            edits = list(plan(target))
            written = _written(text, file, edits)
        except EditError as fault:
            failure = str(fault)
            continue
        failure = _fault(target, written, file)
        if not failure:
            without, gone = _without_void(target, written, file)
            paths = (*(path for path, _ in edits), *gone)
            return AppliedStrategy(without, paths, tuple(_dropped(target, without, file)))
    raise ApplyError(failure)


def _written(text: str, file: str, edits: Sequence[Edit]) -> str:
    for path, value in edits:
        text = replace(read_source(text, file)[0], path, value)
    return text


def _fault(target: _Target, text: str, file: str) -> str:
    """Returns why the text does not express the requested strategy; empty if it does."""
    again = load(text, file)
    if again.cascade is None or not again.ok:
        return "the file would have errors"
    chosen = {index for index, _ in target.phases}
    for index, (before, after) in enumerate(zip(target.cascade.phases, again.cascade.phases, strict=True)):
        wanted = target.wanted(before) if index in chosen else Strategy.of(target.cascade, before)
        if Strategy.of(again.cascade, after) != wanted:
            return f"phase '{after.name}' would have another strategy"
    return ""


def _dropped(target: _Target, text: str, file: str) -> Iterator[str]:
    """Yields for each phase the parts that are gone, and the parameters that are back at their defaults."""
    again = load(text, file).cascade
    if again is None:
        return
    for before, after in zip(target.cascade.phases, again.phases, strict=True):
        now = {part.NAME: part for part in Strategy.of(again, after).parts}
        gone = []
        for part in Strategy.of(target.cascade, before).parts:
            kept = now.get(part.NAME)
            if kept is None:
                gone.append(str(part))
            elif lost := part.beyond(kept):
                gone.append(lost)
        if gone:
            yield f"{after.name}: {', '.join(gone)}"


def _without_void(target: _Target, text: str, file: str) -> tuple[str, list[Path]]:
    """Removes the fields that the new strategy makes void. Returns the text and the paths of these fields. A field that
    cannot be removed in place stays; the reader ignores it.
    """
    gone: list[Path] = []
    again = load(text, file).cascade
    if again is None or not (target.strategy.survives or target.strategy.enters):
        return text, gone
    for index, (before, after) in enumerate(zip(target.cascade.phases, again.phases, strict=True)):
        if (after.strategy or again.strategy) == (before.strategy or target.cascade.strategy):
            continue
        for field in target.strategy.void_fields:
            path: Path = ("phases", index, field)
            if field not in after.model_fields_set:
                continue
            with suppress(EditError):
                shorter = remove(read_source(text, file)[0], path)
                if not _fault(target, shorter, file):
                    text = shorter
                    gone.append(path)
    return text, gone


# -- as fields -------------------------------------------------------------------------------------------------------


def _as_fields(target: _Target) -> Iterator[Edit]:
    """``intra_context`` for masking and retries, ``token_budget`` for the budget."""
    shared = target.source.has(_SHARED) and {phase.name for _, phase in target.phases} >= {
        phase.name for phase in target.cascade.phases if phase.intra_context is None
    }
    bases = [
        _SHARED if shared and phase.intra_context is None else ("phases", index, "intra_context")
        for index, phase in target.phases
    ]
    if target.strategy.survives or target.strategy.enters is not None:
        for base, (_, phase) in dict(zip(bases, target.phases, strict=True)).items():
            yield from _block(target, base, _intra(target, phase))
    if target.strategy.fits is not None:
        yield from _block(target, ("token_budget",), _budget(target.strategy.fits))


def _block(target: _Target, base: Path, values: dict[str, Any]) -> Iterator[Edit]:
    """Edits of single fields if the block is written, so that the rest of it stays; else an edit of the whole block."""
    if not values:
        return
    if not isinstance(_at(target.source.data, base), dict):
        yield base, values
        return
    for name, value in values.items():
        path = (*base, name)
        if isinstance(value, dict) and isinstance(_at(target.source.data, path), dict):
            yield from _block(target, path, value)
        elif not target.source.has(path) or _at(target.source.data, path) != value:
            yield path, value


def _intra(target: _Target, phase: Phase) -> dict[str, Any]:
    """The fields of an ``intra_context`` block; empty if none is needed. Raises EditError if no fields can express the
    strategy.
    """
    survives: list[object] = list(target.wanted(phase).survives)
    if not survives:
        return {"enabled": False} if _in_force(target.cascade, phase) else {}
    mask, loops = survives[0], [part for part in survives[1:] if isinstance(part, Loop)]
    if not isinstance(mask, Mask) or len(loops) != len(survives) - 1 or len(loops) > 1:
        raise EditError("no field says this")
    values = {field: getattr(mask, name) for name, field in _MASK.items()}
    if None in values.values():
        raise EditError("no field says this")
    written = phase.intra_context.model_fields_set if phase.intra_context is not None else frozenset()
    for name in ("preserve_errors", "preserve_reasoning"):
        if name in written or not getattr(mask, name):
            values[name] = getattr(mask, name)
    values["compress_loops"] = bool(loops)
    if loops:
        values["loop_history_limit"] = loops[0].limit
    if phase.intra_context is not None and not phase.intra_context.enabled:
        values["enabled"] = True
    return values


def _in_force(cascade: Cascade, phase: Phase) -> bool:
    from_file = (Mask.from_file, Loop.from_file)
    index = next(i for i, one in enumerate(cascade.phases) if one is phase)
    return any(read(PhaseInFile(cascade, phase, ("phases", index))) is not None for read in from_file)


def _budget(budget: Budget) -> dict[str, Any]:
    if budget.max is None:
        raise EditError("no field says this")
    return {
        "max_total": budget.max,
        "reserve_for_output": budget.reserve,
        "strategy": budget.mode,
        "warning_threshold": budget.warn,
        "summarizer": {"target_size": budget.target},
    }


# -- as a spec -------------------------------------------------------------------------------------------------------


def _as_spec(target: _Target) -> Iterator[Edit]:
    """One ``strategy:`` of the cascade if it concerns every phase and no phase has its own; else one for each phase. It
    holds what the one that it replaces says and the chosen one leaves open.
    """
    cascade = target.cascade
    read = with_named(cascade.strategies)
    own = any(phase.strategy is not None for phase in cascade.phases)
    if target.is_everywhere and not own:
        yield ("strategy",), str(target.strategy.over(read(cascade.strategy)) if cascade.strategy else target.strategy)
        return
    for index, phase in target.phases:
        stands = phase.strategy or cascade.strategy
        yield ("phases", index, "strategy"), str(target.strategy.over(read(stands)) if stands else target.strategy)


def _at(data: Any, path: Path) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
