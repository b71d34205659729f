"""Who answers the calls of a run: a provider, or the offline model; and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.dataclass import dataclass
from workbench.language.model import Cascade
from workbench.workspace.project import Project

OFFLINE = "offline"
OPENROUTER_DEFAULT = "google/gemini-2.5-flash-lite"
"""The default model where an OpenRouter key is set; offline, what unnamed calls are counted as."""


@dataclass(frozen=True)
class ModelChoice:
    """How calls are answered."""

    offline: bool
    default_model: str
    """Model of phases that name none; offline, the model that is stood in for."""
    why: str = ""
    """Why it is offline, for the header."""
    base_url: str = ""

    @property
    def label(self) -> str:
        return f"offline as {self.default_model}" if self.offline else self.default_model


def choose_model(project: Project, cascade: Cascade | None, flag: str = "", pinned: str = "") -> ModelChoice:
    """``flag`` is ``--model``: the default model, or ``offline``. ``pinned`` is the default model of a stored run."""
    settings = project.settings
    base_url = settings.base_url
    named = pinned or (flag if flag != OFFLINE else "") or settings.default_model
    stand_in = named if named and named != OFFLINE else OPENROUTER_DEFAULT
    if flag == OFFLINE or named == OFFLINE:
        return ModelChoice(True, stand_in, "asked for")
    if base_url:
        return ModelChoice(False, stand_in, base_url=base_url)
    keys = _keys(project.env)
    if not keys:
        return ModelChoice(True, stand_in, "no provider key is set")
    if named:
        return ModelChoice(False, named)
    if project.env.get("OPENROUTER_API_KEY"):
        return ModelChoice(False, OPENROUTER_DEFAULT)
    if cascade is not None and all(phase.model for phase in cascade.phases):
        return ModelChoice(False, stand_in)
    return ModelChoice(True, stand_in, "no model is named: set WORKBENCH_DEFAULT_MODEL")


class GoesOffline(Exception):
    """Nobody asked for the offline model, and it would go on with a run that a provider answered; says why."""


def goes_offline(project: Project, run_id: str, choice: ModelChoice, flag: str) -> bool:
    """Whether the offline model would go on with a run that a provider answered, though ``flag`` does not ask for it.
    Raises StoreError."""
    if not choice.offline or flag == OFFLINE:
        return False
    ports: Mapping[str, Any] = next(iter(project.store.events(run_id))).data.get("ports", {})
    return bool(ports.get("model", OFFLINE) != OFFLINE)


def _keys(env: Mapping[str, str]) -> list[str]:
    """The variables that hold a provider's key."""
    return [name for name, value in env.items() if name.endswith("_API_KEY") and value]
