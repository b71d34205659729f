"""The state of a run at one moment: state, outputs, finished visits. A candidate works on a copy of its own."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from workbench.context.assembly import Item
from workbench.context.message import canonical, sha256
from workbench.context.scope import StateWrite, VisitRecord
from workbench.engine.contracts import ToolResult
from workbench.engine.journal.event import Event
from workbench.language.model.candidates import LATER_TEMPLATE_NAMES, REFINEMENT
from workbench.language.model.cascade import LAST_ERROR, CachedTool, ToolCaching


class Sounding(Struct, frozen=True):
    """The candidate that a world belongs to."""

    index: int = 0
    factor: int = 1
    inside: bool = False
    model: str = ""
    """Model of all phases of a walk of the whole cascade, if its soundings assign one."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Sent with that model's calls."""
    refinement: str = ""
    """The task of a refined walk, if its templates ask for it (``input._refinement_context``)."""


REUSED = "cache"
"""The ``sandbox`` of a result that was not made anew."""


class _CachedResult(Struct, frozen=True):
    tool: str
    result: ToolResult
    until: float
    """Of the monotonic clock."""


class ToolCache:
    """Results by tool and arguments; the least recently used goes first."""

    def __init__(self, rules: ToolCaching | None) -> None:
        self._rules = rules if rules is not None and rules.enabled else None
        self._kept: OrderedDict[str, _CachedResult] = OrderedDict()

    def copy(self) -> ToolCache:
        """A copy for a candidate; later changes of either do not affect the other."""
        other = ToolCache(self._rules)
        other._kept = self._kept.copy()
        return other

    def find(self, tool: str, arguments: Mapping[str, Any], now: float) -> ToolResult | None:
        """A result that is still valid; None if the tool is not cached or has none."""
        rule = self._rule(tool)
        if rule is None:
            return None
        key = _key(tool, arguments, rule)
        kept = self._kept.get(key)
        if kept is None or kept.until <= now:
            self._kept.pop(key, None)
            return None
        self._kept.move_to_end(key)
        if not rule.hit_message:
            return kept.result
        text = f"{rule.hit_message}\n{kept.result.text}"
        return ToolResult(text, sandbox=REUSED, value=kept.result.value, whole=kept.result.whole)

    def keep(self, tool: str, arguments: Mapping[str, Any], result: ToolResult, now: float) -> None:
        """Remember a result that is no error."""
        rule = self._rule(tool)
        if rule is None or self._rules is None or result.is_error:
            return
        written = "ttl" in rule.model_fields_set
        seconds = rule.ttl if written else self._rules.global_ttl
        self._kept[_key(tool, arguments, rule)] = _CachedResult(tool, result, now + seconds)
        while len(self._kept) > self._rules.max_cache_size:
            self._kept.popitem(last=False)

    def invalidate(self, event: str) -> None:
        """Forget what ``phase_start``, ``phase_complete``, ``tool:NAME`` or ``state:KEY`` ends."""
        if self._rules is None:
            return
        ended = {name for name, rule in self._rules.tools.items() if event in rule.invalidate_on}
        for key in [key for key, kept in self._kept.items() if kept.tool in ended]:
            del self._kept[key]

    def _rule(self, tool: str) -> CachedTool | None:
        if self._rules is None:
            return None
        rule = self._rules.tools.get(tool)
        return rule if rule is not None and rule.enabled else None


def _key(tool: str, arguments: Mapping[str, Any], rule: CachedTool) -> str:
    """``query`` and ``sql_hash`` look at the query alone, without its layout; all else at all arguments."""
    query = arguments.get("query", arguments.get("sql"))
    if rule.key in ("query", "sql_hash") and isinstance(query, str):
        text = " ".join(query.split())
        return f"{tool}:{text.lower() if rule.key == 'query' else text}"
    return f"{tool}:{sha256(canonical(dict(arguments)))}"


class World(Struct):
    """The changing part of a run."""

    input: Mapping[str, Any]
    state: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    """By phase: the text of its latest successful visit."""
    records: list[VisitRecord] = field(default_factory=list)
    """Finished visits in run order."""
    lineage: list[dict[str, Any]] = field(default_factory=list)
    visits: Counter[str] = field(default_factory=Counter)
    validated: Any = None
    """Parsed JSON of the last output that passed its schema."""
    error: Mapping[str, str] | None = None
    """How the last deterministic phase that failed did: message, phase, tool, type."""
    writes: list[StateWrite] = field(default_factory=list)
    """Changes of the state, in the order of the journal."""
    latest: dict[str, StateWrite] = field(default_factory=dict)
    """The last change of each key, in their order."""
    sounding: Sounding = Sounding()
    cache: ToolCache = field(default_factory=lambda: ToolCache(None))

    def copy(self, sounding: Sounding | None = None) -> World:
        """An independent copy; ``sounding`` names its candidate."""
        return World(
            self.input,
            copy.deepcopy(self.state),
            dict(self.outputs),
            list(self.records),
            list(self.lineage),
            Counter(self.visits),
            self.validated,
            self.error,
            list(self.writes),
            dict(self.latest),
            sounding or self.sounding,
            self.cache.copy(),
        )

    def join(self, other: World) -> None:
        """Merge the changes that a copy of this world made since it was copied into this world."""
        fresh = other.records[self._shared(self.records, other.records) :]
        self.records += fresh
        self.lineage += other.lineage[self._shared(self.lineage, other.lineage) :]
        written = other.writes[self._shared(self.writes, other.writes) :]
        for write in written:
            self._wrote(write)
        self.state |= {write.key: other.state[write.key] for write in written if write.key in other.state}
        for record in fresh:
            self.visits[record.phase] = max(self.visits[record.phase], record.visit)
            if record.status == "success":
                self.outputs[record.phase] = other.outputs[record.phase]
        self.error = other.error or self.error

    @staticmethod
    def _shared(own: Sequence[Any], others: Sequence[Any]) -> int:
        """Returns how many values both begin with."""
        pairs = enumerate(zip(own, others, strict=False))
        return next((i for i, (a, b) in pairs if a is not b), min(len(own), len(others)))

    @property
    def came_from(self) -> str:
        """The phase of the visit just before; empty for the first."""
        return self.records[-1].phase if self.records else ""

    def wrote(self, event: Event) -> None:
        """Keep what a ``state_set`` event says."""
        self._wrote(StateWrite(event.data["key"], event.data["value"], event.seq, event.place))

    def _wrote(self, write: StateWrite) -> None:
        self.writes.append(write)
        self.latest.pop(write.key, None)
        self.latest[write.key] = write

    def names(self, items: Sequence[Item], template: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the names that a template can use, with their values. ``items`` are the running visit's own
        messages."""
        input = self.input
        if self.sounding.refinement:
            input = {**input, REFINEMENT: self.sounding.refinement}
        names: dict[str, Any] = {
            "input": input,
            "state": self._aliases(input) | self.state,
            "outputs": self.outputs,
            "lineage": self.lineage,
            "sounding_index": self.sounding.index,
            "sounding_factor": self.sounding.factor,
            "is_sounding": self.sounding.inside,
        }
        names |= {later: names[name] for later, name in LATER_TEMPLATE_NAMES.items()}
        # Building the history costs O(messages); most templates never look at it.
        if "history" in template:
            past = [item for record in self.records for item in record.items]
            names["history"] = [
                {
                    "role": item.message.role,
                    "content": item.message.text,
                    "phase": item.place.phase,
                    "turn": item.place.turn,
                }
                for item in [*past, *items]
            ]
        return names | dict(extra)

    def _aliases(self, input: Mapping[str, Any]) -> dict[str, Any]:
        aliases: dict[str, Any] = {"input": input}
        aliases |= {f"output_{phase}": output for phase, output in self.outputs.items()}
        if self.validated is not None:
            aliases["validated_output"] = self.validated
        if self.error is not None:
            aliases[LAST_ERROR] = self.error
        return aliases
