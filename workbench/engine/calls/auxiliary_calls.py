"""Calls that the engine makes beside the turns: an evaluator, a rewriter, the Quartermaster (turn 0, with a count)."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.context.assembly import Assembly, Item
from workbench.context.direct import direct_assembly
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.calls.model_call import call_model
from workbench.engine.edits import Edit, SetState
from workbench.engine.gate import EditFault, Stop, checked
from workbench.engine.model_name import split_effort
from workbench.engine.services import Services
from workbench.engine.world import World


class SideCall:
    """One exchange that enters no phase's context."""

    beside = True

    def __init__(self, services: Services, world: World, messages: Sequence[Message], model: str, place: Place) -> None:
        self.engine = services
        self.world = world
        self.added: list[Item] = []
        self.text = ""
        self._messages = tuple(messages)
        self._model, self._parameters = split_effort(model)
        self._place = place

    def assemble(self, place: Place, *, tool_choice: str = "") -> Assembly:
        """All messages, unchanged."""
        return direct_assembly(self._messages, self._model, self._parameters, place, self.engine.ports.counter)

    @property
    def history(self) -> None:
        """None: such a call belongs to no history."""

    def edit(self, stop: Stop, edits: Sequence[Edit]) -> None:
        """Only the state can be edited here: no history would keep an edit of the messages."""
        checked(edits, stop)
        for edit in edits:
            if not isinstance(edit, SetState):
                raise EditFault(f"{stop.place.words}: a call beside the turns cannot be edited")
            self.engine.edit_state(self.world, stop, edit)

    def preview(self, place: Place, tool_choice: str, edits: Sequence[Edit]) -> Assembly:
        """The messages of a call beside the turns cannot be edited, so the call is sent unchanged."""
        return self.assemble(place, tool_choice=tool_choice)

    async def heard(self, place: Place) -> bool:
        """False: people cannot speak to a call beside the turns."""
        return False

    def join(self, items: list[Item], /, *, carried: bool = False) -> None:
        self.text = items[-1].message.text


async def ask_model(
    services: Services, world: World, place: Place, purpose: str, messages: Sequence[Message], model: str
) -> str:
    """One answer as text. ``place`` names branch, phase and visit; the call is numbered. Raises PhaseFailed."""
    side = SideCall(services, world, messages, model, place)
    number = services.side_number(place)
    await call_model(side, place._replace(attempt=0, turn=0, call=number), purpose)
    return side.text
