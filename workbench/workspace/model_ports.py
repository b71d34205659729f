"""Builds the ports that answer and price the calls of a run: model, embedder, counter and prices, by the choice of the
model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.engine.contracts import Embedder, Model
from workbench.models.embeddings import LexicalEmbedder, LiteLLMEmbedder
from workbench.models.encodings import encodings
from workbench.models.litellm import LiteLLM
from workbench.models.names import NoKey, Resolved, answered_at, resolve
from workbench.models.offline import Offline
from workbench.models.prices import PriceTable, answered_by
from workbench.workspace.model_choice import ModelChoice
from workbench.workspace.offline_replies import replies_of
from workbench.workspace.project import Project
from workbench.workspace.system import SystemClock


def prices_of(project: Project, choice: ModelChoice, env: Mapping[str, str]) -> PriceTable:
    """Prices by provider: a model resold by another provider has that provider's; a base URL has no known prices."""

    def via(name: str) -> str:
        return answered_by(name) if choice.offline else answered_at(name, choice.base_url, env)

    return PriceTable(project.settings.prices, via)


def model_for(
    project: Project, choice: ModelChoice, file: Path | None, env: Mapping[str, str], prices: PriceTable
) -> Model:
    """Answers the calls of a run of a cascade file: a provider, or the replies beside the file. Raises RepliesError."""
    if choice.offline:
        placeholders = project.settings.unscripted == "ok"
        return Offline(replies_of(file), SystemClock(), encodings(), prices, placeholders=placeholders, why=choice.why)

    def resolved(name: str) -> Resolved:
        if choice.missing and name == choice.default_model:
            raise NoKey(choice.missing, "no_model")
        return resolve(name, choice.base_url, env)

    settings = project.settings
    return LiteLLM(
        resolved,
        prices,
        env=env,
        timeout_s=settings.timeout,
        stream=settings.stream,
    )


def embedder_for(project: Project, choice: ModelChoice, env: Mapping[str, str], prices: PriceTable) -> Embedder:
    """Offline there is no model: texts are embedded by their words, and the vectors say so."""
    if choice.offline:
        return LexicalEmbedder()
    timeout = project.settings.timeout
    return LiteLLMEmbedder(lambda name: resolve(name, choice.base_url, env), prices, env=env, timeout_s=timeout)
