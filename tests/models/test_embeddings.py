"""Embeddings: the real litellm against a provider on this machine, and the lexical ones that need nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.loopback import Loopback
from tests.support.waiting import PATIENCE
from workbench.context.scoring import cosine
from workbench.engine.contracts import EmbeddedTexts, ModelFault
from workbench.models.embeddings import LEXICAL, LEXICAL_SIZE, LexicalEmbedder, LiteLLMEmbedder, vector_of
from workbench.models.names import NoKey, Resolved, resolve
from workbench.models.prices import PriceTable

KEY = "sk-" + "loop-0123456789abcdef"


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


def embedder(provider: Loopback, timeout: float = PATIENCE) -> LiteLLMEmbedder:
    def at(name: str) -> Resolved:
        return resolve(name, provider.url, {"WORKBENCH_API_KEY": KEY})

    return LiteLLMEmbedder(at, PriceTable({}), timeout_s=timeout)


def embed(provider: Loopback, *texts: str, model: str = "tiny", timeout: float = PATIENCE) -> EmbeddedTexts:
    return asyncio.run(embedder(provider, timeout).embed(texts, model))


def test_texts_are_sent_once_and_vectors_come_in_their_order(provider: Loopback) -> None:
    made = embed(provider, "a lamp", "a crane and a crane", "\ud7ff é")
    assert made.vectors == ((1.0, 0.0, 0.1), (0.0, 2.0, 0.1), (0.0, 0.0, 0.1))
    assert (made.model, made.tokens, made.cost) == ("tiny", 9, None)
    (request,) = provider.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")
    assert request.body["input"] == ["a lamp", "a crane and a crane", "\ud7ff é"]
    assert request.body["model"] == "tiny"


def test_a_known_price_gives_a_cost(provider: Loopback) -> None:
    def at(name: str) -> Resolved:
        return resolve(name, provider.url, {"WORKBENCH_API_KEY": KEY})

    prices = PriceTable({"tiny": {"input": 1.0}})
    made = asyncio.run(LiteLLMEmbedder(at, prices).embed(["two words"], "tiny"))
    assert made.cost == pytest.approx(2e-06)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("429", "rate_limit"),
        ("500", "server"),
        ("401", "authentication"),
        ("badjson", "bad_answer"),
        ("reset", "connection"),
    ],
)
def test_every_fault_is_typed_asked_once_and_hides_the_key(provider: Loopback, model: str, kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        embed(provider, "a", model=model)
    assert caught.value.kind == kind
    assert KEY not in caught.value.message + caught.value.body
    assert "second try" not in caught.value.message
    assert len(provider.requests) == 1


def test_the_deadline_holds(provider: Loopback) -> None:
    with pytest.raises(ModelFault, match=r"no embeddings within 0\.3 s"):
        embed(provider, "a", model="hang", timeout=0.3)


def test_without_a_key_nobody_is_asked(provider: Loopback) -> None:
    def nobody(name: str) -> Resolved:
        raise NoKey("no key for 'x': set X_KEY")

    with pytest.raises(ModelFault, match="set X_KEY"):
        asyncio.run(LiteLLMEmbedder(nobody, PriceTable({})).embed(["a"], "x"))
    assert provider.requests == []


def test_the_lexical_embedder_is_named_and_needs_nobody(provider: Loopback) -> None:
    made = embed(provider, "the broken lamp", "a lamp that is broken", "Shipping on Mondays", model=LEXICAL)
    assert provider.requests == []
    assert (made.model, made.tokens, made.cost) == ("lexical-256", 0, 0.0)
    first, second, third = made.vectors
    assert cosine(first, second) > 0.9 > 0.5 > cosine(first, third)
    assert asyncio.run(LexicalEmbedder().embed(["the broken lamp"], "any")).vectors[0] == first


@given(st.text(max_size=200))
def test_a_lexical_vector_is_a_unit_vector_or_zero_and_always_the_same(text: str) -> None:
    vector = vector_of(text)
    assert len(vector) == LEXICAL_SIZE
    assert sum(x * x for x in vector) == pytest.approx(1, abs=1e-4) or not any(vector)
    assert json.loads(json.dumps(vector)) == list(vector_of(text))
