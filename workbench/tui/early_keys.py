"""Keys typed faster than what they are meant for opens: they wait, and are given to it in their order. A screen that
opens by itself takes none that was typed before anybody can have seen it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from textual import events
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from workbench.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from workbench.views.keys import Key

AT_ONCE = frozenset({"app.palette", "app.help", "app.theme", "app.interrupt", "app.suspend", "app.quit"})
"""Commands that need neither a session nor a workspace."""
MOST_SENT = 64
"""Keys that may be on their way at once."""
PATIENCE = 0.5
"""Seconds after which a screen gets its keys although nothing on it has the focus."""
MOST_PATIENCE = 5.0
"""Seconds after which keys are given away although earlier ones are still on their way."""
REACTION = 0.3
"""Seconds that a person needs at least to see what opened by itself: what is typed until then is not meant for it."""


class KeyPassed(Message):
    """Follows a key through the widgets to the app: when it is there, the key was taken, or has come up before it."""

    def __init__(self, number: int) -> None:
        """``number``: of the key."""
        super().__init__()
        self.number = number


class Host(Protocol):
    """The app as early keys need it."""

    keys: tuple[Key, ...]

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""
        ...

    @property
    def screen_stack(self) -> list[Screen[Any]]:
        """All screens that are open, the Bench first."""
        ...

    @property
    def focused(self) -> Widget | None:
        """The widget that takes keys."""
        ...

    def say(self, text: str) -> None:
        """Show a short message in the last line."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> object:
        """Call something after so many seconds."""
        ...

    def call_after_refresh(self, callback: Callable[..., Any], *arguments: Any) -> bool:
        """Call something when what changed is drawn."""
        ...

    def post_message(self, message: events.Key) -> bool:
        """Press a key."""
        ...

    async def on_event(self, event: events.Event) -> None:
        """Take a key at once."""
        ...


class EarlyKeys:
    """Holds keys back until there is something that takes them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._early: list[events.Key] | None = []
        """Keys pressed before there was a session or a list to choose one from; None once there is."""
        self._waiting: list[events.Key] = []
        """Keys typed for a prompt or a screen that does not have the focus yet."""
        self._settled: WeakSet[Screen[Any]] = WeakSet()
        """Screens on which something has had the focus."""
        self._sent: deque[tuple[events.Key, Widget | None]] = deque(maxlen=MOST_SENT)
        """Keys with what had the focus when they came."""
        self._on_the_way: dict[int, Widget] = {}
        """What the keys were sent to, by number, of which nobody knows yet whether they were taken."""
        self._number = 0
        """Of the key that was sent last."""
        self._kept_since = 0.0
        """When the oldest of those that wait was kept (monotonic seconds)."""
        self._unasked: tuple[Screen[Any] | None, float] = (None, 0.0)
        """The screen that opened last by itself, and from when on it takes keys."""

    def holds(self, event: events.Event) -> bool:
        """Returns whether an event that arrives is kept for later, or left out; else the app takes it now."""
        if isinstance(event, events.Key | events.MouseDown) and self._is_too_soon(event):
            self._leave_out(event)
            return True
        if not isinstance(event, events.Key):
            return False
        if self._early is not None and self._is_early(event.key):
            self._early.append(event)
            return True
        if self._opens() or (not event.is_forwarded and (self._waiting or self._overtakes())):
            self._keep(event)
            return True
        if not event.is_forwarded:
            self._sent.append((event, self._target()))
        return False

    def forwarded(self, event: events.Key) -> None:
        """A key that was not held has gone to what had the focus."""
        target = self._sent_to(event)
        if target is not None and target.is_attached:
            self._number += 1
            self._on_the_way[self._number] = target
            target.post_message(KeyPassed(self._number))

    async def passed(self, message: KeyPassed) -> None:
        """A key was taken, or is known not to be."""
        self._on_the_way.pop(message.number, None)
        if self._waiting and not self._opens():
            await self.release()

    async def unhandled(self, event: events.Key) -> None:
        """A key that nothing took and whose command would run now: not while something is opening, and not where it
        was on its way while another screen or a line to write in was opened. It is meant for that."""
        before = self._sent_to(event)
        if self._is_too_soon(event):
            self._leave_out(event)
        elif self._opens():
            event.prevent_default()
            self._keep(event)
        elif before is not None and before is not self._target() and self._is_for(event, before):
            event.prevent_default()
            if self._waiting:
                self._keep(event)
            else:
                await self._host.on_event(_again(event))

    # -- screens that open by themselves -----------------------------------------------------------------------------

    def expect(self, screen: Screen[Any]) -> None:
        """A screen opens that no key asked for. Keys and clicks from before it could be seen are not meant for it."""
        self._unasked = (screen, monotonic() + REACTION)

    def _is_too_soon(self, event: events.Key | events.MouseDown) -> bool:
        screen, since = self._unasked
        return event.time < since and bool(self._host.screen_stack) and self._host.screen is screen

    def _leave_out(self, event: events.Event) -> None:
        event.prevent_default()
        self._host.say("Keys pressed before this opened were ignored.")

    # -- prompts and screens that do not have the focus yet ----------------------------------------------------------

    def _target(self) -> Widget | None:
        """Returns the widget that takes keys now."""
        return (self._host.focused or self._host.screen) if self._host.screen_stack else None

    def _opens(self) -> bool:
        """Returns whether a prompt, or a screen that takes keys by its focus, was opened and does not have the focus
        yet."""
        if not self._host.screen_stack:
            return False
        screen = self._host.screen
        if getattr(screen, "needs_focus", False) and screen.focused is None and screen not in self._settled:
            return True
        return any(not prompt.ready for prompt in screen.query(Prompt))

    def _sent_to(self, event: events.Key) -> Widget | None:
        return next((target for sent, target in self._sent if sent is event), None)

    def _overtakes(self) -> bool:
        """Returns whether a key that is given away now could be there before one that was typed earlier: a key goes up
        through the widgets, and what it was sent to may have lost the focus meanwhile."""
        here = self._target()
        self._on_the_way = {n: one for n, one in self._on_the_way.items() if one.is_attached and one.is_running}
        return any(one is not here for one in self._on_the_way.values())

    def _keep(self, event: events.Key) -> None:
        if not self._waiting:
            self._kept_since = monotonic()
            self._host.set_timer(PATIENCE, self._give_up_waiting)
        self._waiting.append(event)

    def _is_for(self, event: events.Key, before: Widget) -> bool:
        """Returns whether what has the focus now was opened since, or writes the key down."""
        if not before.is_attached or before.screen is not self._host.screen:
            return True
        focused = self._host.focused
        return focused is not None and focused.check_consume_key(event.key, event.character)

    async def _give_up_waiting(self) -> None:
        if self._host.screen_stack:
            self._settled.add(self._host.screen)
            if self._waiting and self._overtakes() and monotonic() - self._kept_since < MOST_PATIENCE:
                self._host.set_timer(PATIENCE, self._give_up_waiting)
                return
            self._on_the_way.clear()
            await self.release()

    async def focused(self, widget: Widget) -> None:
        """A widget has the focus: its screen takes keys."""
        if widget.is_attached:
            self._settled.add(widget.screen)
        if self._waiting and not self._opens():
            await self.release()

    async def release(self) -> None:
        """Give the keys that waited to what has the focus now, in the order in which they were typed, unless one that
        was typed before is still on its way."""
        if self._overtakes():
            return
        waiting, self._waiting = sorted(self._waiting, key=lambda key: key.time), []
        for key in waiting:
            await self._host.on_event(_again(key))

    # -- before there is anything ------------------------------------------------------------------------------------

    def _is_early(self, name: str) -> bool:
        """Returns whether a key has to wait for a session, or for a list to choose one from. Those of the app work at
        once."""
        stack = self._host.screen_stack
        if not stack or not (self._host.screen is stack[0] or getattr(self._host.screen, "is_looking", False)):
            return False
        at_once = (key.keys.split(",") for key in self._host.keys if key.id in AT_ONCE)
        return not any(name in (one.strip() for one in names) for names in at_once)

    def press_early(self) -> None:
        """There is something now that takes the keys pressed before: press them again."""
        early, self._early = self._early or [], None
        if early:
            self._host.call_after_refresh(self._press, early)

    def _press(self, keys: list[events.Key]) -> None:
        """One after the other, each when what the one before did is on the screen."""
        first, *rest = keys
        self._host.post_message(_again(first))
        if rest:
            self._host.call_after_refresh(self._press, rest)


def _again(key: events.Key) -> events.Key:
    """The same key, typed when it was typed."""
    same = events.Key(key.key, key.character)
    same.time = key.time
    return same
