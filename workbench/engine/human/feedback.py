"""Feedback of a person to a running phase: heard between calls, within the phase's budget."""

from __future__ import annotations

from workbench.context.assembly import Kind
from workbench.context.place import Place
from workbench.engine.conversation import Conversation
from workbench.engine.human.people import within
from workbench.language.model.cascade import Audibles

HEADER = "[User feedback]:"
NOTE = "feedback of a person"
STEERED = Audibles(budget=1000)
"""Of the nodes of a pipeline: a manager may speak to each of them, and so may a person."""


class PhaseFeedback:
    """Messages of a person to one execution of a phase."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.given = 0
        """How often a person gave feedback."""

    async def hear(self, place: Place, *, redo: bool) -> bool:
        """Take what a person has to say: before the call of ``place``, or (``redo``) after its turn, which is then
        taken again. True when something joined the history; it is journaled before it does."""
        text = await self.listen(place, redo=redo)
        if text is not None:
            self.join(place, text, redo=redo)
        return text is not None

    def join(self, place: Place, text: str, *, redo: bool) -> None:
        """Add what a person said to the history: before the call of ``place``, or after it."""
        joins = place._replace(call=place.call + 1) if redo else place
        self._conversation.add(Kind.USER, f"{HEADER}\n{text}", joins, note=NOTE)

    async def listen(self, place: Place, *, redo: bool, tool: int = 0) -> str | None:
        """The same, without letting it join yet. ``tool``: the number of the tool call that waits to be run."""
        services = self._conversation.engine
        is_pipeline = services.definition.graph.format == "dot"
        rule = self._conversation.phase.audibles or (STEERED if is_pipeline else None)
        if rule is None or not rule.enabled or self.given >= rule.budget or (redo and not rule.allow_retry):
            return None
        about = {"index": self.given + 1, "redo": redo, **({"tool": tool} if tool else {})}
        ports, journal = services.ports, services.journal
        try:
            heard = ports.audibles.hear(place, redo=redo, tool=tool)
            feedback = await within(ports.clock, heard, None if rule is STEERED else rule.timeout_seconds)
        except TimeoutError:
            journal.emit("audible", place, **about, text=None, timed_out=True, left=rule.budget - self.given)
            return None
        if feedback is None:
            return None
        self.given += 1
        text, _ = ports.redact(feedback.text)
        journal.emit("audible", place, **about, text=text, left=rule.budget - self.given)
        journal.sync()
        return text
