"""Embeds texts: through litellm (one try, one deadline, every fault typed), or by their words alone."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from workbench.context.scoring import words
from workbench.engine.contracts import EmbeddedTexts, ModelFault
from workbench.models import calls
from workbench.models.collect import whole_count
from workbench.models.destinations import located
from workbench.models.faults import build, fault_of
from workbench.models.litellm import CONNECT
from workbench.models.names import NO_KEY, NoKey, Resolved
from workbench.models.prices import PriceTable
from workbench.models.tape import NotSent, Tape, Unreached

LEXICAL = "lexical-256"
LEXICAL_SIZE = 256
"""Elements of a vector."""


class LexicalEmbedder:
    """Implements ``Embedder`` for any model name: no model, no network, the same vectors on every machine.

    Two texts are near if they share words. It does not compare meanings, and its name says so.
    """

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        return EmbeddedTexts(tuple(map(vector_of, texts)), LEXICAL, 0, 0.0)


def vector_of(text: str) -> tuple[float, ...]:
    """A unit vector. Each word adds 1 + ln(frequency) to the element given by its hash, or subtracts it, so that words
    that share an element do not make texts similar. All zeros for a text without words.
    """
    vector = [0.0] * LEXICAL_SIZE
    for word, number in sorted(words(text).items()):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[digest[0]] += (1 + math.log(number)) * (1 if digest[1] & 1 else -1)
    length = math.sqrt(math.fsum(x * x for x in vector))
    return tuple(round(x / length, 6) for x in vector) if length else tuple(vector)


class LiteLLMEmbedder:
    """Implements ``Embedder``. The name of the lexical embedder is answered here, without a call.

    ``resolve`` says how a model name is sent, and raises NoKey. In ``env`` (default: the process's environment)
    litellm looks for keys and addresses. ``timeout_s``: the deadline of one request, in seconds.
    """

    def __init__(
        self,
        resolve: Callable[[str], Resolved],
        prices: PriceTable,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300.0,
    ) -> None:
        self._resolve = resolve
        self._env = os.environ if env is None else env
        self._prices = prices
        self._timeout = timeout_s

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        if model == LEXICAL:
            return await LexicalEmbedder().embed(texts, model)
        tape = Tape()
        await asyncio.to_thread(calls.client)
        try:
            resolved = await located(self._resolve(model), self._env, embeds=True)
        except NoKey as fault:
            raise ModelFault(fault.kind, str(fault)) from fault
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                response = await self._asked(resolved, texts, tape)
        except (Exception, NotSent, Unreached) as error:  # noqa: BLE001 - litellm raises what it likes: all are faults
            if deadline.expired():
                raise build("timeout", f"no embeddings within {self._timeout:g} s", tape, resolved) from None
            raise fault_of(error, tape, resolved) from None
        finally:
            await tape.close()
        return self._embedded(response, texts, resolved, model, tape, time.perf_counter() - begin)

    async def _asked(self, resolved: Resolved, texts: Sequence[str], tape: Tape) -> Any:
        return await calls.embedding(
            self._env,
            tape,
            direct=resolved.direct,
            model=resolved.litellm_name,
            input=list(texts),
            api_key=resolved.api_key or NO_KEY,
            api_base=resolved.base_url or None,
            timeout=httpx.Timeout(self._timeout + 10, connect=CONNECT),
        )

    def _embedded(
        self, response: Any, texts: Sequence[str], resolved: Resolved, model: str, tape: Tape, seconds: float
    ) -> EmbeddedTexts:
        """The vectors in the order of the texts. Raises ModelFault unless there is one finite vector for each."""
        try:
            rows = sorted((int(one["index"]), one["embedding"]) for one in response.data)
            vectors = tuple(tuple(float(x) for x in vector) for _, vector in rows)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise build("bad_answer", f"the embeddings of {model} cannot be read: {error}", tape, resolved) from None
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != len(texts) or len(sizes) > 1 or not all(map(math.isfinite, (x for v in vectors for x in v))):
            said = f"{len(vectors):,} vectors for {len(texts):,} texts"
            raise build("bad_answer", f"the embeddings of {model} cannot be used: {said}", tape, resolved)
        tokens = whole_count(getattr(response.usage, "prompt_tokens", None)) if "usage" in tape.said else None
        price = self._prices.price(model, tokens or 0)
        spent = None if tokens is None or price.input is None else tokens * price.input
        return EmbeddedTexts(vectors, str(response.model or model), tokens, spent, seconds)
