"""Writes the journal of one run: numbers events, stores each body once, and turns requests into splices."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from workbench.context.assembly import Assembly, Item
from workbench.context.message import Image, Message, canonical, sha256
from workbench.context.pictured import sniff
from workbench.context.place import Place
from workbench.context.remembered import forget_oldest
from workbench.engine.journal.event import Event
from workbench.engine.journal.repeats import PastEvents

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

SOON = 0.05
"""Seconds between two writes to the disk if no one waits for them."""


class Clock(Protocol):
    """Time. Durations come from ``monotonic``, never from ``now``."""

    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and ``Z``."""
        ...

    def monotonic(self) -> float:
        """Seconds."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class RecordedTimes(Protocol):
    """The times of events that a run takes from a recording."""

    def __call__(self, kind: str, place: Place, data: Mapping[str, Any], /) -> str:
        """The recorded time of the event that is next; empty for one that happens now. Asked once for each event."""
        ...


class Sink(Protocol):
    """Takes events. Appending never loses an event without an error."""

    def append(self, event: Event) -> None:
        """Write one record."""
        ...

    def blob(self, digest: str, data: bytes) -> None:
        """Keep bytes (an image) under their sha256, before the record that names them."""
        ...

    def sync(self) -> None:
        """Make everything appended so far durable."""
        ...


@runtime_checkable
class SharedSink(Protocol):
    """The sink of a run among others on one event loop."""

    async def synced(self) -> None:
        """As ``Sink.sync``, together with the other runs, none of which is held up."""
        ...


class JournalWriter:
    """The only writer of a run's events. ``observe`` sees each event after it is in the journal."""

    def __init__(
        self,
        run_id: str,
        clock: Clock,
        sink: Sink,
        observe: Callable[[Event], None],
        journaled: Sequence[Event] = (),
        *,
        recorded_at: RecordedTimes | None = None,
        bodies: int = 0,
    ) -> None:
        """``journaled``: a resumed run's events. An emitted event that is among them is skipped; a new one is appended
        behind them, the first one after a ``run_resumed``. ``bodies``: how many are remembered at most; 0 for all of
        them, and the bytes of images. One that comes again later is stored once more.
        """
        self.run_id = run_id
        self._past = PastEvents(journaled) if journaled else None
        """Journaled events that were not emitted again yet."""
        self.repeated = False
        """Whether the event that was emitted last happened before the run was resumed."""
        self._last_seq = journaled[-1].seq if journaled else 0
        """Of the journal's last record."""
        self._matched: dict[str, int] = {}
        """By branch, the number of the last event that was found again."""
        self.seq = 0
        self.last_at = ""
        """The run's time: of its last event. A pause in what a recording tells does not move it."""
        self.images: dict[str, bytes] = {}
        """Image bytes by digest, for the wire."""
        self._clock = clock
        self._recorded_at = recorded_at
        self._repeats_recording = False
        """Whether the run's time is that of a recording."""
        self._sink = sink
        self._shared = sink if isinstance(sink, SharedSink) else None
        self._observe = observe
        self.ports: Mapping[str, str] = {}
        """Journaled with ``run_resumed``."""
        self.ran_until: Callable[[], str] = lambda: ""
        """When the runs inside it last did anything before it was resumed, ``Event.at``; empty if there are none."""
        self.outer: Callable[[], None] = lambda: None
        """Called before the run goes on: what it is inside of does, too."""
        self._resumed = False
        """Whether ``run_resumed`` is written."""
        self.resumed_at = 0
        """The number of that record; 0 as long as there is none."""
        self._has_news = False
        """Whether the run itself journaled something new since."""
        self._began = clock.now() if journaled else ""
        """When the run was resumed: to repeat a long past takes time before anything new is journaled."""
        self._behind = False
        """Whether something is to be made durable soon."""
        self._asking: list[asyncio.Future[None]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        """The timer of the next write of unwritten events, if one is set."""
        self._flushed_at = -SOON
        """By the event loop's clock."""
        self._seen: dict[str, None] = {}
        self._bodies = bodies
        self._wires: dict[str, tuple[str, ...]] = {}
        """By branch, the messages of the request that the journal's newest record of one comes to."""
        for event in journaled:
            if wire := event.data.get("wire"):
                self._wired(event.place.branch, wire)

    @property
    def is_shared(self) -> bool:
        """Whether the run is one among others on its event loop, with which it shares writes to the disk."""
        return self._shared is not None

    @property
    def repeats(self) -> bool:
        """Whether the run is resumed, and all that it and the runs inside it emitted so far happened before."""
        return self._past is not None and not self._resumed

    def time_to_ask(self, *, live: bool) -> str:
        """The time of a request that is about to go out: the run's; but now for the first ``live`` one behind a
        recording, since whose last event the provider's cache may have expired."""
        asked_first = self._past is not None and not self._has_news
        return self._clock.now() if live and (self._repeats_recording or asked_first) else self.last_at

    def begin_again(self) -> None:
        """The run, which ``repeats``, was paused until now: it is resumed now."""
        self._began = self._clock.now()

    def emit(self, kind: str, place: Place = Place(), /, **data: Any) -> Event:
        """Journal one event, or find it in the journal of the run that is resumed."""
        stops = kind == "run_finished" or data.get("status") == "stopped"  # Where the run went on, it stops anew.
        past = None if self._resumed and stops else self._past
        if past is not None and (known := past.find(kind, place, data)) is not None:
            self.repeated = True
            self.seq, self.last_at = known.seq, known.at
            self._observe(known)
            if kind != "blob":
                self._matched[place.branch] = known.seq
            return known
        self.repeated = False
        self.go_on(place.branch)
        self._has_news = True
        recorded = self._recorded_at(kind, place, data) if self._recorded_at is not None else ""
        if kind != "paused":
            self._repeats_recording = bool(recorded)
        return self._append(kind, place, data, recorded or self._clock.now())

    def go_on(self, branch: str) -> None:
        """Something new happens in a resumed run on a branch, or in a run that it started there: ``run_resumed`` is
        journaled first."""
        if self._past is None or self._resumed:
            return
        self._resumed = True
        self.outer()
        about = {"ports": self.ports, "branch": branch, "after": self._matched.get(branch, 0)}
        if (until := self.ran_until()) > self._past.last_at:
            about["until"] = until
        self.resumed_at = self._append("run_resumed", Place(), about, self._began).seq

    def _append(self, kind: str, place: Place, data: Mapping[str, Any], at: str) -> Event:
        self._last_seq += 1
        self.seq = self._last_seq
        if kind != "paused" or not self._repeats_recording:
            self.last_at = at
        if wire := data.get("wire"):
            data = {**data, "wire": self._spliced(place.branch, wire)}
        event = Event(self.seq, at, self.run_id, kind, place, data)
        self._sink.append(event)
        self._observe(event)
        return event

    def sync(self) -> None:
        """Make all written events durable."""
        self.rest()
        self._sink.sync()

    async def durable(self) -> None:
        """The same: at once where the run has the event loop for itself, which is faster, else together with the other
        runs."""
        if self._shared is None:
            self.sync()
        else:
            self.rest()
            await self._shared.synced()

    async def synced(self) -> None:
        """The same without holding up anybody else. Those that ask while the disk is busy share its next write."""
        if self._shared is not None:
            await self.durable()
        else:
            asked = asyncio.get_running_loop().create_future()
            self._asking.append(asked)
            self._begin()
            await asked

    def sync_soon(self) -> None:
        """The same as soon as the run waits for anything, unless that was done a moment ago: candidates end their turns
        together. What follows until then needs no write of its own."""
        self._behind = True
        if self._flushing is None and self._later is None:
            loop = asyncio.get_running_loop()
            # Among others the end of the run, or its next turn, usually comes first and is enough.
            if (at := (self._flushed_at if self._shared is None else loop.time()) + SOON) > loop.time():
                self._later = loop.call_at(at, self._begin)
            else:
                self._begin()

    def rest(self) -> None:
        """Cancel the delayed write: all is durable now, or the run is over."""
        self._behind = False
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _begin(self) -> None:
        self._cancel_timer()
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        while self._behind or self._asking:
            self._behind, asking, self._asking = False, self._asking, []
            try:
                await (asyncio.to_thread(self._sink.sync) if self._shared is None else self._shared.synced())
            except Exception as fault:  # noqa: BLE001 - whatever it is, those who asked are told
                for asked in asking:
                    if not asked.done():
                        asked.set_exception(fault)
            else:
                for asked in asking:
                    if not asked.done():
                        asked.set_result(None)
            self._flushed_at = asyncio.get_running_loop().time()
            if not self._asking:
                break
        self._flushing = None
        if self._behind:
            self.sync_soon()

    def message(self, message: Message) -> str:
        """Store the body once; its hash."""
        digest = message.body_hash
        return digest if digest in self._seen else self._blob(digest, "message", message.to_json)

    def items(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        """Items in the journal's form, their bodies stored."""
        for item in items:
            self.message(item.message)
        return [item.to_json() for item in items]

    def tools(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Store a native tool list once; its hash, empty for no tools."""
        return self._blob(sha256(canonical(list(schemas))), "tools", lambda: list(schemas)) if schemas else ""

    def image(self, data: bytes, media_type: str, width: int = 0, height: int = 0) -> Image:
        """Store the bytes of an image once, and describe it. ``width`` and ``height`` (pixels), on which its tokens
        depend, are read from the bytes if they are 0.
        """
        digest = hashlib.sha256(data).hexdigest()
        if not self._bodies:
            self.images[digest] = data
        size = (width, height)
        if not all(size) and (found := sniff(data)) is not None:
            size = (found.width, found.height)
        described = Image(digest, media_type, len(data), *size)
        if digest not in self._seen:
            self._sink.blob(digest, data)
            self._blob(digest, "image", lambda: None, media_type=media_type, size=len(data))
        return described

    def keep_image(self, image: Image, data: bytes) -> None:
        """Keep the bytes of an image that stood in a text."""
        self.image(data, image.media_type, image.width, image.height)

    def whole(self, text: str) -> dict[str, Any]:
        """Keep the whole text of a cut result as bytes of its own. Returns their place, for ``tool_finished``."""
        if not text:
            return {}
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._seen:
            self._sink.blob(digest, data)
            self._blob(digest, "text", lambda: None, size=len(data))
        return {"whole": {"digest": digest, "chars": len(text)}}

    def splices(self, assembly: Assembly) -> list[dict[str, Any]]:
        """An assembly against the one before it, bodies stored."""
        for splice in assembly.splices:
            for entry in splice.entries:
                self.message(entry.item.message)
                if entry.sent is not None:
                    self.message(entry.sent)
        return [
            {"at": s.at, "remove": s.remove, "entries": [entry.to_json() for entry in s.entries]}
            for s in assembly.splices
        ]

    def wire(self, body: Mapping[str, Any] | None, *, style: str = "", beside: bool = False) -> dict[str, Any] | None:
        """A request body as sent: messages and tools by hash. The emitted form holds the messages as a splice against
        the journal's body before it.

        ``beside``: the body stands alone, and none is spliced against it. ``style``: how it became bytes.
        """
        if body is None:
            return None
        return {
            "beside": beside,
            "style": style,
            "order": list(body),
            "keys": {key: value for key, value in body.items() if key not in ("messages", "tools")},
            "at": 0,
            "remove": 0,
            "messages": [self._wire_part(message) for message in body.get("messages", ())],
            "tools": self._wire_part(body["tools"]) if "tools" in body else "",
        }

    def _spliced(self, branch: str, wire: Mapping[str, Any]) -> Mapping[str, Any]:
        """A body with all its messages, told by what it has other than the one before."""
        if wire["beside"]:
            return wire
        before, messages = self._wires.get(branch, ()), tuple(wire["messages"])
        at = _common(before, messages)
        tail = _common(before[at:][::-1], messages[at:][::-1])
        self._wires[branch] = messages
        return {
            **wire,
            "at": at,
            "remove": len(before) - at - tail,
            "messages": list(messages[at : len(messages) - tail]),
        }

    def _wired(self, branch: str, wire: Mapping[str, Any]) -> None:
        """Applies a journaled splice to the body before it."""
        if not wire.get("beside", False):
            before = self._wires.get(branch, ())
            after = before[wire["at"] + wire["remove"] :]
            self._wires[branch] = (*before[: wire["at"]], *wire["messages"], *after)

    def _wire_part(self, part: object) -> str:
        text = _encode(part)
        return self._blob(sha256(text), "wire", lambda: text)

    def _blob(self, digest: str, kind: str, body: Callable[[], Any], **data: Any) -> str:
        if digest not in self._seen:
            self._seen[digest] = None
            if self._bodies:
                forget_oldest(self._seen, self._bodies)
            self.emit("blob", Place(), hash=digest, kind=kind, body=body(), **data)
        return digest


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the common prefix."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
