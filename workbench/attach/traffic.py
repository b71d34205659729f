"""One request of a client and its reply, as they pass the proxy, and the Protocols of those that handle them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from msgspec import Struct

from workbench.context.assembly import Assembly, Entry, Request
from workbench.context.place import Place
from workbench.engine.edits import SetModel
from workbench.engine.gate import ClientWait
from workbench.importers.journal import ContextWriter


class Ask(Struct, frozen=True):
    """A request that asks a model, or how many tokens it would take."""

    number: int
    """Counts the requests of the session from 1."""
    provider: str
    path: str
    """Behind the provider's address."""
    body: Any
    """Its JSON."""
    counts: bool = False
    """It asks for a number of tokens: it is no call, and has no place in the run."""
    size: int = 0
    """Bytes of its body."""


def unchanged(entry: Entry) -> bool:
    """Returns whether a message is sent as the client wrote it."""
    return entry.sent is not None and entry.item.edited in ("", "moved") and entry.sent == entry.item.message


class Placed(Struct, frozen=True):
    """Where a request stands in the run."""

    place: Place
    context: ContextWriter
    """Its context, which nothing changes before the request is answered."""
    assembly: Assembly
    """The assembly that is sent."""

    @property
    def request(self) -> Request:
        return self.assembly.request

    @property
    def altered(self) -> bool:
        """Whether anything is sent otherwise than the client wrote it."""
        context = self.context
        moved = any(origin != i for i, origin in enumerate(context.origins))
        return moved or context.settings != SetModel() or not all(map(unchanged, self.assembly.entries))


BY_HAND = "a person"
"""Who gave a reply that was written in the Bench."""


class Reply(Struct, frozen=True):
    """The reply that a client got for a request."""

    status: int
    content_type: str
    body: bytes
    """Unpacked; of one that was too long to be kept its beginning."""
    seconds: float
    first_byte_s: float | None = None
    fault: str = ""
    """Why it did not arrive whole, in words; empty where it did."""
    by: str = "provider"
    """provider, recording, offline, a person or workbench (which told the client that it could not be answered)."""
    remark: str = ""
    """A remark for people; empty if there is none."""


class Made(Struct, frozen=True):
    """A reply that no provider gave."""

    status: int
    content_type: str
    body: bytes
    by: str
    remark: str = ""
    """A remark for people; empty if there is none."""

    def reply(self, seconds: float) -> Reply:
        """Returns it as the record keeps it; ``seconds`` after the request."""
        return Reply(self.status, self.content_type, self.body, seconds, by=self.by, remark=self.remark)


class Witness(Protocol):
    """Is told of each exchange, in order."""

    def asked(self, ask: Ask, *, sent: bool = True) -> Future[Placed | None]:
        """A request came, and is ``sent`` as it is. The result is where it stands in the run, None where its body
        cannot be read."""
        ...

    def replied(self, ask: Ask, reply: Reply) -> None:
        """Its client has got this."""
        ...

    def caught_up(self) -> Future[Any] | None:
        """What the next request has to wait for, where the record is so far behind that memory would run out, or not
        ready."""
        ...

    def warn(self, message: str, placed: Placed | None, code: str) -> None:
        """Something is not done as it was asked for, or is not recorded."""
        ...

    def passing(self, number: int, words: str) -> None:
        """A large request is on its way, which is told as a call when it is answered. ``words``: what a person has to
        know of it if that never comes; empty once the call is told, or if it is none."""
        ...

    def secret(self, value: str) -> None:
        """A credential that a client sent: it is not to be journaled."""
        ...


class Outgoing(Struct, frozen=True):
    """The decision about a request before it is sent."""

    path: str
    body: bytes
    made: Made | None = None
    """The answer of a person: nothing is sent."""
    placed: Placed | None = None
    watched: bool = False
    """The answer may be paused, so that it is handed on as a whole."""


class Control(Protocol):
    """May pause an exchange on its way, and change it."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is to be paused or changed now: they need not be placed in the run before they are sent,
        and wait for nothing."""
        ...

    async def outgoing(self, ask: Ask, body: bytes, client: ClientWait) -> Outgoing:
        """Returns the request to send now. A cancelled one was given up by its client, which is recorded."""
        ...

    async def incoming(self, ask: Ask, reply: Reply, outgoing: Outgoing, client: ClientWait) -> Made | None:
        """Returns the reply to hand back for one that was ``watched``; None for the reply itself. Ends its record."""
        ...


class Answers(Protocol):
    """Answers requests instead of a provider."""

    alone: bool
    """No provider is asked for what it has no reply to."""

    async def answer(self, ask: Ask, placed: Future[Placed | None]) -> Made | None:
        """The reply; None where the provider is to be asked."""
        ...
