"""One request of a client and its reply, as they pass the proxy, and who takes part in an exchange."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from msgspec import Struct

from workbench.context.assembly import Request
from workbench.context.place import Place


class Ask(Struct, frozen=True):
    """A request that asks a model."""

    number: int
    """Counts the requests of the session from 1."""
    provider: str
    path: str
    """Behind the provider's address."""
    body: Any
    """Its JSON."""


class Placed(Struct, frozen=True):
    """Where a request stands in the run."""

    place: Place
    request: Request


class Reply(Struct, frozen=True):
    """What a client was given for a request."""

    status: int
    content_type: str
    body: bytes
    """Unpacked; of one that was too long to be kept its beginning."""
    seconds: float
    first_byte_s: float | None = None
    fault: str = ""
    """Why it did not arrive whole, in words; empty where it did."""
    by: str = "provider"
    """provider, recording, offline or workbench (which told the client that it could not be answered)."""


class Made(Struct, frozen=True):
    """A reply that no provider gave."""

    status: int
    content_type: str
    body: bytes
    by: str


class Witness(Protocol):
    """Is told of each exchange, in order; never keeps a client waiting."""

    def asked(self, ask: Ask) -> Future[Placed | None]:
        """A request came. The result is where it stands in the run, None where its body cannot be read."""
        ...

    def replied(self, ask: Ask, reply: Reply) -> None:
        """Its client has got this."""
        ...

    def secret(self, value: str) -> None:
        """A credential that a client sent: it is not to be journaled."""
        ...


class Answers(Protocol):
    """Answers requests instead of a provider."""

    alone: bool
    """No provider is asked for what it has no reply to."""

    async def answer(self, ask: Ask, placed: Future[Placed | None]) -> Made | None:
        """The reply; None where the provider is to be asked."""
        ...
