"""Chooses what answers the calls of a run: a provider, or the offline model; and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from workbench.engine.definition import Definition
from workbench.engine.journal.redact import without_password
from workbench.engine.model_name import OFFLINE
from workbench.language.model.cascade import Cascade
from workbench.models.destinations import located
from workbench.models.names import ROUTER_KEY, NoKey, may_answer, may_need_a_key, resolve
from workbench.models.replies import SUFFIX
from workbench.workspace.project import Project

# Who would answer the calls of a run started now: provider, address and key, without values.


def in_force(project: Project, choice: ModelChoice) -> Mapping[str, str]:
    """The default model with its provider, the address asked, the variable that holds the key, or the problem.

    Keys: ``model``; then ``why`` where it is offline, ``problem`` where it cannot be asked, else ``provider``,
    ``address``, ``address_from``, ``key``. litellm is imported for it, which takes seconds.
    """
    if choice.offline:
        return {"model": choice.label, "why": choice.why}
    if choice.missing:
        return {"model": "none", "problem": choice.missing}
    name, env = choice.default_model, environment_of(project, None)
    try:
        resolved = asyncio.run(located(resolve(name, choice.base_url, env), env))
    except NoKey as fault:
        return {"model": name, "problem": str(fault)}
    origin = project.settings.origins["base_url"] if choice.base_url else resolved.base_variable
    key = resolved.key_variable or "credentials of this machine"
    if resolved.base_url and not resolved.api_key:
        key = f"none ({resolved.key_variable} is not set)" if resolved.key_variable else "none"
    return {
        "model": name,
        "provider": resolved.provider.title,
        "address": without_password(resolved.address or resolved.base_url),
        "address_from": origin or "the provider's own",
        "key": "none needed" if resolved.keyless else key,
    }


def in_words(facts: Mapping[str, str]) -> str:
    """The same in a line."""
    if "problem" in facts:
        return f"{facts['model']}: {facts['problem']}"
    if "why" in facts:
        return f"{facts['model']} ({facts['why']})"
    return f"{facts['model']}, asked at {facts['address']} ({facts['address_from']}), key: {facts['key']}"


OPENROUTER_DEFAULT = "google/gemini-2.5-flash-lite"
"""The default model if an OpenRouter key is set; offline, the model whose tokens are counted."""


class ModelChoice(Struct, frozen=True):
    """How calls are answered."""

    offline: bool
    default_model: str
    """Model of phases that name none; offline, the model that is simulated."""
    why: str = ""
    """Why it is offline, for the header."""
    base_url: str = ""
    missing: str = ""
    """Why the default model cannot be asked, with what to do; then a call that needs it fails with these words."""

    @property
    def label(self) -> str:
        return f"offline as {self.default_model}" if self.offline else self.default_model


def choose_model(
    project: Project, cascade: Cascade | None, file: Path | None, flag: str = "", pinned: str = ""
) -> ModelChoice:
    """Returns who answers the calls of a cascade file.

    ``flag`` is ``--model``: the default model, or ``offline``. ``pinned`` is the default model of a stored run. What a
    person names is asked. Nothing is offline unless a person says so, or scripted replies lie beside the file, no
    person named a model, and no model of the cascade can be asked with the variables that are set.
    """
    settings = project.settings
    base_url = settings.base_url
    named = pinned or (flag if flag != OFFLINE else "") or settings.default_model
    stand_in = named if named and named != OFFLINE else OPENROUTER_DEFAULT
    if flag == OFFLINE or named == OFFLINE:
        return ModelChoice(True, stand_in, "--model offline" if flag == OFFLINE else "the default model")
    if base_url:
        return ModelChoice(False, stand_in, base_url=base_url)
    env = environment_of(project, file)
    if flag:
        return ModelChoice(False, stand_in)
    default = named or (OPENROUTER_DEFAULT if env.get(ROUTER_KEY) else "")
    phases = cascade.phases if cascade is not None else ()
    wanted = {model for model in (default, *(phase.model for phase in phases)) if model}
    answering = any(may_answer(model, env) for model in wanted)
    needs_default = not phases or not all(phase.model for phase in phases)
    if (
        file is not None
        and file.with_name(file.stem + SUFFIX).is_file()
        and not (answering and (default or not needs_default))
    ):
        unnamed = "no provider key is set" if not wanted or not answering else "no model is named"
        if not _named_by_a_person(project) or may_need_a_key(named):
            return ModelChoice(True, stand_in, unnamed)
    return ModelChoice(False, stand_in, missing="" if default or not needs_default else NO_MODEL)


def chosen_for(project: Project, definition: Definition, flag: str, pinned: str) -> ModelChoice:
    """The same for a stored run: by its pinned text, and the replies beside its file."""
    file = project.root / definition.source.file if definition.source.file else None
    return choose_model(project, definition.cascade, file, flag, pinned)


NO_MODEL = (
    "no model is named, and OPENROUTER_API_KEY is not set: name one with --model PROVIDER/MODEL or "
    "WORKBENCH_DEFAULT_MODEL, or use scripted replies: --model offline"
)


def environment_of(project: Project, file: Path | None) -> Mapping[str, str]:
    """The variables that a run of a cascade file may use: with those of ``.env`` where a person trusts the folder. What
    is wrong with that file joins the project's notes."""
    if not (project.root / ".env").is_file():
        return project.env
    trusted = project.environment.trusted(file.parent if file is not None else project.root)
    if trusted:
        told = (str(problem) for problem in project.dotenv.problems)
        project.notes += [problem for problem in told if problem not in project.notes]
    return project.variables(trusted=trusted)


def _named_by_a_person(project: Project) -> bool:
    """Returns whether the default model is set by the user, and not by the workspace's file."""
    origin = project.settings.origins["default_model"]
    return origin != "default" and not origin.endswith("workbench.yaml")


class GoesOffline(Exception):
    """The offline model would resume a run that a provider answered, and was not asked for; says why."""


def goes_offline(project: Project, run_id: str, choice: ModelChoice, flag: str) -> bool:
    """Returns whether the offline model would go on with a run that a provider answered, though ``flag`` does not ask
    for it. Raises StoreError."""
    if not choice.offline or flag == OFFLINE:
        return False
    ports: Mapping[str, Any] = next(iter(project.store.events(run_id))).data.get("ports", {})
    return bool(ports.get("model", OFFLINE) != OFFLINE)
