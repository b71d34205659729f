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
OPENS = frozenset({"list.open"})
"""Commands that open the row of a list."""
MOST_SENT = 64
"""Keys that may be on their way at once."""
PATIENCE = 0.5
"""Seconds after which a screen gets its keys although nothing on it has the focus."""
MOST_PATIENCE = 5.0
"""Seconds after which keys are given away although earlier ones are still on their way."""
STEP = 0.02
"""Seconds between two looks whether an early key was taken, and the step that it began is over."""
REACTION = 0.3
"""Seconds that a person needs at least to see what opened by itself: what is typed until then is not meant for it."""


class KeyPassed(Message):
    """Follows a key through the widgets to the app: when it is there, the key was taken, or has come up before it."""

    def __init__(self, number: int) -> None:
        """``number``: of the key; negative behind a key that opens a row."""
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

    @property
    def is_stepping(self) -> bool:
        """Whether the run that is shown is on its way to its next pause, or to its end."""
        ...

    def say(self, text: str) -> None:
        """Show a short message in the last line."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> object:
        """Call something after so many seconds."""
        ...

    def call_later(self, callback: Callable[..., Any], *arguments: Any) -> bool:
        """Call something when the messages that are there already are taken."""
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
        """Keys pressed before there was a session or a list to choose one from, and those behind them while the first
        are pressed again; None once all are."""
        self._pressed_until: float | None = None
        """When the early key that was pressed again last was typed; None while none is."""
        self._turn = 0
        """Of the early key that is pressed next: once, whoever asks for it first."""
        self._opening = 0
        """How many files and runs were about to be shown: what is typed behind each is meant for it."""
        self._is_opening = False
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
        if self._early is not None and self._is_early(event):
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
        if message.number < 0:
            if -message.number == self._opening:
                self.press_early()
            return
        self._on_the_way.pop(message.number, None)
        if self._waiting and not self._opens():
            await self.release()

    def _hold_for_what_opens(self, target: Widget) -> None:
        """A row is about to be opened, which its list says by a message: keys wait until that is taken, and longer
        where it opens a file or a run."""
        self.hold(PATIENCE)
        self._host.call_later(self._follow, target, KeyPassed(-self._opening))

    def _follow(self, target: Widget, message: KeyPassed) -> None:
        if target.is_attached:
            target.post_message(message)
        elif -message.number == self._opening:
            self.press_early()

    async def unhandled(self, event: events.Key) -> bool:
        """A key that nothing took and whose command would run now: not while something is opening, and not where it
        was on its way while another screen or a line to write in was opened. It is meant for that. Returns whether the
        key is still for the screen that is shown."""
        before, is_for_this = self._sent_to(event), False
        if self._is_too_soon(event):
            self._leave_out(event)
        elif self._is_opening and self._early is not None and self._is_early(event):
            event.prevent_default()
            self._early.append(event)
        elif self._opens():
            event.prevent_default()
            self._keep(event)
        elif before is not None and before is not self._target() and self._is_for(event, before):
            event.prevent_default()
            if self._waiting:
                self._keep(event)
            else:
                await self._host.on_event(_again(event))
        else:
            is_for_this = True
            if before is not None and self._is_bound(event, OPENS):
                self._hold_for_what_opens(before)
        return is_for_this

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

    def _is_early(self, event: events.Key) -> bool:
        """Returns whether a key has to wait for a session, for a list to choose one from, or for earlier ones. Those of
        the app work at once."""
        if self._is_opening:
            early = True
        elif self._pressed_until is not None:
            early = event.time > self._pressed_until
        else:
            stack = self._host.screen_stack
            early = bool(stack) and (self._host.screen is stack[0] or getattr(self._host.screen, "is_looking", False))
        return early and not self._is_bound(event, AT_ONCE)

    def _is_bound(self, event: events.Key, commands: frozenset[str]) -> bool:
        """Returns whether a key is that of one of the commands."""
        bound = (key.keys.split(",") for key in self._host.keys if key.id in commands)
        return any(event.key in (one.strip() for one in names) for names in bound)

    @property
    def is_opening(self) -> bool:
        """Whether a file or a run is about to be shown, and keys wait for it."""
        return self._is_opening

    def hold(self, patience: float = MOST_PATIENCE) -> None:
        """A file or a run is about to be shown in the place of what takes keys now: those that come wait for it until
        ``press_early``, or for ``patience`` (seconds)."""
        self._opening += 1
        self._is_opening, self._pressed_until = True, None
        self._early = self._early or []
        number = self._opening
        self._host.set_timer(patience, lambda: self.press_early() if number == self._opening else None)

    def press_early(self) -> None:
        """There is something now that takes the keys pressed before: press them again, each when what the one before
        did is on the screen. A key behind one that steps the run waits for the end of the step, as whoever typed it
        saw neither; when a step takes longer than MOST_PATIENCE, all are pressed."""
        self._is_opening = False
        if not self._early:
            self._early = None
        elif self._pressed_until is None:
            self._early.sort(key=lambda key: key.time)
            self._pressed_until = 0.0
            self._press_next_soon(monotonic() + MOST_PATIENCE, self._opening)

    def _press_next_soon(self, until: float, number: int) -> None:
        """Press the next one when what is there is drawn. The screen on top says when; one that closes before it has
        drawn says nothing, so that a timer does it, too."""
        self._turn += 1
        turn = self._turn

        def press() -> None:
            if turn == self._turn:
                self._turn += 1
                self._press_next(until, number)

        self._host.call_after_refresh(press)
        self._host.set_timer(PATIENCE, press)

    def _press_next(self, until: float, number: int) -> None:
        if number != self._opening:  # The key that was pressed last opens something: the others wait for that.
            return
        if not self._early:
            self._early = self._pressed_until = None
        elif self._pressed_until and (self._on_the_way or self._host.is_stepping) and monotonic() < until:
            self._host.set_timer(STEP, lambda: self._press_next(until, number))
        else:
            key = self._early.pop(0)
            is_late = monotonic() >= until
            self._pressed_until = key.time
            self._host.post_message(_again(key))
            self._press_next_soon(until if is_late else monotonic() + MOST_PATIENCE, number)


def _again(key: events.Key) -> events.Key:
    """The same key, typed when it was typed."""
    same = events.Key(key.key, key.character)
    same.time = key.time
    return same
