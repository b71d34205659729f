"""Settings: one table of what can be set, and where each value came from.

Order: flag, environment, ``workbench.yaml`` of the workspace, ``config.yaml`` of the user's config folder, default.
What could act outside the workspace (sandbox, prices, base URL, redaction) is never read from the workspace.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from workbench.files import read_plain
from workbench.language.clean import shown
from workbench.language.nearest import nearest
from workbench.tools.addresses import bad_host


class SecretText(str):
    """A value that is never shown."""

    __slots__ = ()


class Setting(Struct, frozen=True):
    """One row: name, type, default, the environment variables that set it, and one sentence of help."""

    name: str
    type: type
    default: Any
    help: str
    env: tuple[str, ...] = ()
    workspace: bool = True
    """Whether ``workbench.yaml`` of a workspace may set it."""
    choices: tuple[str, ...] = ()
    url: bool = False
    """Whether the value is the address of a web server."""
    least: float | None = None
    """The smallest number that makes sense."""
    unset: str = ""
    """The effect of an empty value, in a few words."""
    secret: bool = False
    """Whether the value is never shown."""
    of: str = ""
    """The type of each part of a list or a mapping: ``texts``, ``hosts``, ``mappings of numbers``, or ``MCP
    servers``."""


SANDBOXES = ("auto", "docker", "bwrap", "landlock", "none")
TABLE: tuple[Setting, ...] = (
    Setting(
        "default_model",
        str,
        "",
        "Model of phases that name none.",
        ("WORKBENCH_DEFAULT_MODEL", "WINDLASS_DEFAULT_MODEL"),
        unset="one at OpenRouter, if OPENROUTER_API_KEY is set",
    ),
    Setting(
        "base_url",
        str,
        "",
        "Base URL of an OpenAI-compatible server that answers all calls.",
        ("WORKBENCH_BASE_URL", "WINDLASS_PROVIDER_BASE_URL"),
        unset="the provider's",
        workspace=False,
        url=True,
    ),
    Setting(
        "data_dir",
        str,
        "",
        "Folder of the store.",
        ("WORKBENCH_DATA_DIR", "WINDLASS_DATA_DIR"),
        unset=".workbench",
        workspace=False,
    ),
    Setting(
        "timeout", float, 180.0, "Seconds that one try of a model call may take.", ("WORKBENCH_TIMEOUT",), least=0.1
    ),
    Setting("tries", int, 3, "Tries of a model call before the error ends it.", ("WORKBENCH_TRIES",), least=1),
    Setting(
        "backoff",
        float,
        1.0,
        "Seconds before the second try of a call, doubled for each further try; a wait that the provider names wins.",
        ("WORKBENCH_BACKOFF",),
        least=0,
    ),
    Setting("stream", bool, True, "Whether answers are streamed.", ("WORKBENCH_STREAM",)),
    Setting("tool_timeout", float, 120.0, "Seconds that a Python tool may take.", least=0.1),
    Setting(
        "sandbox",
        str,
        "auto",
        "Sandbox for shell and code tools.",
        ("WORKBENCH_SANDBOX",),
        workspace=False,
        choices=SANDBOXES,
    ),
    Setting(
        "allow_hosts",
        list,
        [],
        "Private hosts that tools may reach, such as localhost:8000 or 10.0.0.0/8; public hosts are always allowed.",
        ("WORKBENCH_ALLOW_HOSTS",),
        unset="public hosts only",
        workspace=False,
        of="hosts",
    ),
    Setting(
        "unscripted",
        str,
        "fail",
        "A call without an offline reply fails the run (fail), or gets a placeholder (ok).",
        ("WORKBENCH_UNSCRIPTED",),
        choices=("fail", "ok"),
    ),
    Setting(
        "redact",
        str,
        "all",
        "Secrets to replace: known values only (known), or also strings that look like keys (all).",
        ("WORKBENCH_REDACT",),
        workspace=False,
        choices=("all", "known"),
    ),
    Setting(
        "keep_recent_images",
        int,
        None,
        "Number of images of a phase's own turns that are sent, newest first.",
        ("WORKBENCH_KEEP_RECENT_IMAGES", "WINDLASS_KEEP_RECENT_IMAGES"),
        unset="all",
        least=0,
    ),
    Setting(
        "embedding_model",
        str,
        "",
        "Model that embeds messages for selection by similarity; lexical-256 needs no model.",
        ("WORKBENCH_EMBEDDING_MODEL", "WINDLASS_DEFAULT_EMBED_MODEL"),
        unset="selection by words",
    ),
    Setting(
        "rewrite_model",
        str,
        "",
        "Model that rewrites prompts (mutation_mode: rewrite).",
        ("WORKBENCH_REWRITE_MODEL", "WINDLASS_REWRITE_MODEL"),
        unset="the default model",
    ),
    Setting(
        "card_model",
        str,
        "",
        "Model that summarizes long messages for the menu of a selector model. Without it, and offline, they are cut.",
        ("WORKBENCH_CARD_MODEL",),
        unset="messages are cut",
    ),
    Setting(
        "tackle_dirs",
        list,
        ["tackle", "cascades", "examples"],
        "Folders searched for tools and validators.",
        ("WORKBENCH_TACKLE_DIRS",),
        of="texts",
    ),
    Setting(
        "mcp",
        dict,
        {},
        "MCP servers by name: command, args, env, cwd, or url and headers; tools, timeout, start_timeout.",
        unset="none",
        of="MCP servers",
    ),
    Setting(
        "graphs",
        bool,
        False,
        "Write the graph of each run, with the path it took, to graphs/SESSION.mmd when it ends.",
        ("WORKBENCH_GRAPHS",),
    ),
    Setting(
        "graph_dir",
        str,
        "",
        "Folder for graphs and Pareto files. Setting it switches graphs on.",
        ("WORKBENCH_GRAPH_DIR", "WINDLASS_GRAPH_DIR"),
        unset="graphs in the store",
        workspace=False,
    ),
    Setting("max_visits", int, 100, "Visits of one phase before a run fails.", least=1),
    Setting("max_depth", int, 5, "Depth of nested cascades before a run fails.", least=1),
    Setting("max_calls", int, None, "Model calls of a run before it is stopped.", unset="no limit", least=1),
    Setting("max_tokens", int, None, "Tokens of a run, in and out, before it is stopped.", unset="no limit", least=1),
    Setting("max_cost", float, None, "US dollars of a run before it is stopped.", unset="no limit", least=0),
    Setting("max_seconds", float, None, "Seconds of a run before it is stopped.", unset="no limit", least=0),
    Setting(
        "prices",
        dict,
        {},
        "Prices by model: input, output, cache_read, cache_write in US dollars per million tokens.",
        unset="the built-in price list",
        workspace=False,
        of="mappings of numbers",
    ),
    Setting(
        "use_clickhouse_server",
        bool,
        False,
        "Whether runs are shipped to a team's ClickHouse server, and SQL asks it.",
        ("WORKBENCH_USE_CLICKHOUSE_SERVER", "WINDLASS_USE_CLICKHOUSE_SERVER"),
        workspace=False,
    ),
    Setting(
        "clickhouse_host",
        str,
        "localhost",
        "Host of that server.",
        ("WORKBENCH_CLICKHOUSE_HOST", "WINDLASS_CLICKHOUSE_HOST"),
        workspace=False,
    ),
    Setting(
        "clickhouse_port",
        int,
        None,
        "Its HTTP port, not that of the native protocol.",
        ("WORKBENCH_CLICKHOUSE_PORT", "WINDLASS_CLICKHOUSE_PORT"),
        unset="8123, or 8443 with TLS",
        workspace=False,
        least=1,
    ),
    Setting(
        "clickhouse_database",
        str,
        "workbench",
        "Database on that server; created if missing.",
        ("WORKBENCH_CLICKHOUSE_DATABASE", "WINDLASS_CLICKHOUSE_DATABASE"),
        workspace=False,
    ),
    Setting(
        "clickhouse_user",
        str,
        "default",
        "User on that server.",
        ("WORKBENCH_CLICKHOUSE_USER", "WINDLASS_CLICKHOUSE_USER"),
        workspace=False,
    ),
    Setting(
        "clickhouse_password",
        str,
        "",
        "Password on that server; better in the environment than in a file.",
        ("WORKBENCH_CLICKHOUSE_PASSWORD", "WINDLASS_CLICKHOUSE_PASSWORD"),
        unset="none",
        workspace=False,
        secret=True,
    ),
    Setting(
        "clickhouse_tls",
        bool,
        False,
        "Whether that server is reached over TLS.",
        ("WORKBENCH_CLICKHOUSE_TLS", "WORKBENCH_CLICKHOUSE_SECURE"),
        workspace=False,
    ),
    Setting(
        "clickhouse_ca_cert",
        str,
        "",
        "File with the certificates that vouch for that server.",
        ("WORKBENCH_CLICKHOUSE_CA_CERT",),
        unset="the system's",
        workspace=False,
    ),
    Setting(
        "clickhouse_cluster",
        str,
        "",
        "Cluster on which its tables are made, replicated and sharded.",
        ("WORKBENCH_CLICKHOUSE_CLUSTER",),
        unset="a server by itself",
        workspace=False,
    ),
    Setting(
        "clickhouse_retention_days",
        int,
        None,
        "Days after which that server drops what was shipped; 0 keeps it forever.",
        ("WORKBENCH_CLICKHOUSE_RETENTION_DAYS",),
        unset="as the server has it",
        workspace=False,
        least=0,
    ),
    Setting(
        "user",
        str,
        "",
        "Your name in lists of runs of a team.",
        ("WORKBENCH_USER",),
        unset="your login name",
        workspace=False,
    ),
    Setting(
        "machine",
        str,
        "",
        "How this machine is named there.",
        ("WORKBENCH_MACHINE",),
        unset="its host name",
        workspace=False,
    ),
    Setting("theme", str, "workbench-dark", "Colour theme of the app.", ("WORKBENCH_THEME",)),
    Setting("keys", dict, {}, "Keys of the app by command.", unset="the usual keys", of="texts"),
)

_FOLDERS = {"tackle": "WINDLASS_TACKLE_DIR", "cascades": "WINDLASS_CASCADES_DIR", "examples": "WINDLASS_EXAMPLES_DIR"}
"""Folders of ``tackle_dirs`` that a variable names otherwise."""
_NOT_HONOURED = {
    "WINDLASS_LOG_DIR": "journals lie in the store; data_dir moves it",
    "WINDLASS_STATE_DIR": "the state of a run is in its journal; data_dir moves the store",
    "WINDLASS_IMAGE_DIR": "images lie in the store; data_dir moves it",
    "RABBITIZE_RUNS_DIR": "what a browser session leaves lies in the store, in browser/",
    "RABBITIZE_SERVER_URL": "the browser runs here, without a server",
    "RABBITIZE_AUTO_START": "the first browser tool starts the browser; no server is needed",
    "AUTO_CONTEXT_INTRA_PHASE_ENABLED": "write intra_context: {enabled: false}, or auto_context.intra_phase",
    "AUTO_CONTEXT_CARDS_ENABLED": "cards are made where a selector needs them; card_model is the model that sums up",
    "AUTO_CONTEXT_INTER_PHASE_ENABLED": "write auto_context: {inter_phase: {enabled: false}}",
    "AUTO_CONTEXT_LLM_SELECTION_ENABLED": "write selection: {strategy: heuristic}",
}
_OF_OTHERS = ("WINDLASS_", "LARS_", "AUTO_CONTEXT_", "RABBITIZE_")


def not_honoured(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of the original and its later editions that are set and have no effect here, each with what to do
    instead."""
    ours = {"WINDLASS_ROOT": "WORKBENCH_ROOT", **{name: setting.env[0] for setting in TABLE for name in setting.env}}
    known = {*_FOLDERS.values(), *ours}
    found: dict[str, str] = {}
    for name in sorted(env):
        before = f"WINDLASS_{name.removeprefix('LARS_')}" if name.startswith("LARS_") else name
        plain = before.removeprefix("WINDLASS_") if before.startswith("WINDLASS_AUTO_CONTEXT_") else before
        if name.startswith(_OF_OTHERS) and name not in known:
            meant = f"set {ours[before]}" if before in ours else "no setting has this name"
            found[name] = _NOT_HONOURED.get(plain) or meant
    return found


_WEB = re.compile(r"https?://[^/\s]\S*\Z", re.IGNORECASE)
_IN_WORDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}
_BY_NAME = {setting.name: setting for setting in TABLE}


class SettingsError(Exception):
    """A setting that cannot be used; the message names where it was set."""


class Settings(Struct, frozen=True):
    """All values, and the origin of each."""

    values: Mapping[str, Any]
    origins: Mapping[str, str] = field(default_factory=dict)
    """By name: ``flag``, ``environment WORKBENCH_…``, a file, or ``default``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None


def load_settings(
    root: Path, env: Mapping[str, str], config_dir: Path | None = None, flags: Mapping[str, Any] | None = None
) -> Settings:
    """Read all sources. Raises SettingsError for a value of the wrong type, an unknown choice or an unreadable file."""
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if config_dir is not None:
        layers.append((str(config_dir / "config.yaml"), _file(config_dir / "config.yaml")))
    workspace = root / "workbench.yaml"
    layers.append((str(workspace), _allowed(workspace, _file(workspace))))
    values = {setting.name: setting.default for setting in TABLE}
    origins = {setting.name: "default" for setting in TABLE}
    for origin, layer in layers:
        for name, value in layer.items():
            values[name], origins[name] = checked_value(setting_named(name, origin), value, origin), origin
    for setting in TABLE:
        variable = next((v for v in setting.env if env.get(v)), None)
        if variable is not None:
            origin = f"environment {variable}"
            values[setting.name], origins[setting.name] = checked_value(setting, env[variable], origin), origin
    named = [variable for variable in _FOLDERS.values() if env.get(variable)]
    if named and origins["tackle_dirs"] == "default":
        values["tackle_dirs"] = [env.get(variable) or folder for folder, variable in _FOLDERS.items()]
        origins["tackle_dirs"] = f"environment {', '.join(named)}"
    for name, value in (flags or {}).items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            values[name], origins[name] = checked_value(setting_named(name, "flag"), value, option), "flag"
    return Settings(values, origins)


def _file(path: Path) -> Mapping[str, Any]:
    try:
        text = read_plain(path).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise SettingsError(f"{path}:1:1: error: cannot be read: {fault}") from fault
    try:
        value = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise SettingsError(f"{path}:{where}: error: not valid YAML: {fault.problem}") from fault
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        why = "nested too deeply" if isinstance(fault, RecursionError) else str(fault).splitlines()[0]
        raise SettingsError(f"{path}:1:1: error: not valid YAML: {why}") from fault
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(f"{path}:1:1: error: settings are a mapping of names to values")
    return value


def _allowed(path: Path, values: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in values:
        setting = _BY_NAME.get(name)
        if setting is not None and not setting.workspace:
            raise SettingsError(
                f"{path}:1:1: error: '{name}' cannot be set by a workspace (set it in the user's config)"
            )
    return values


def setting_named(name: str, origin: str = "") -> Setting:
    """``origin``: the file or variable that names it. Raises SettingsError."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = nearest(name, _BY_NAME)
    hint = f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(_BY_NAME))}"
    raise SettingsError(f"{origin}{': error: ' if origin else ''}unknown setting '{name}' ({hint})")


def checked_value(setting: Setting, value: Any, origin: str) -> Any:
    """A value as it counts: of the right type, one of the choices. Raises SettingsError naming the origin."""
    if value is None or value == "":
        return setting.default
    try:
        converted = _of(setting.of, _converted(setting.type, value))
    except (TypeError, ValueError):
        wanted = " of ".join(filter(None, (_IN_WORDS[setting.type], setting.of)))
        raise SettingsError(f"{origin}: error: '{setting.name}' must be {wanted}, got {shown(value)}") from None
    for name, part in converted.items() if setting.of == "MCP servers" else ():
        if reason := _bad_server(name, part):
            raise SettingsError(f"{origin}: error: {setting.name}.{shown(name)}: {reason}")
    if setting.of == "hosts" and converted and (reason := bad_host(converted)):
        raise SettingsError(f"{origin}: error: '{setting.name}': {reason}")
    if setting.choices and converted not in setting.choices:
        raise SettingsError(f"{origin}: error: '{setting.name}' must be one of {', '.join(setting.choices)}")
    if setting.least is not None and not setting.least <= converted < math.inf:
        raise SettingsError(f"{origin}: error: '{setting.name}' must be at least {setting.least:g}, got {converted}")
    if setting.url and not _WEB.match(converted):
        raise SettingsError(f"{origin}: error: '{setting.name}' must begin with http:// or https:// and name a server")
    return SecretText(converted) if setting.secret else converted


def _of(parts: str, value: Any) -> Any:
    """A list or a mapping whose parts are what they must be: a digit that stands for a key is a text. Raises
    TypeError."""
    if parts == "mappings of numbers":
        if not all(isinstance(part, dict) and all(map(_is_number, part.values())) for part in value.values()):
            raise TypeError(value)
    elif parts and parts != "MCP servers" and isinstance(value, dict):
        if any(isinstance(part, bool) or not isinstance(part, (str, int)) for part in value.values()):
            raise TypeError(value)
        return {str(name): str(part) for name, part in value.items()}
    elif parts in ("texts", "hosts") and not all(isinstance(part, str) for part in value):
        raise TypeError(value)
    return value


def _bad_server(name: object, fields: object) -> str:
    from workbench.language.diagnose import bad_server  # pydantic: 0.2 s, and most workspaces have no server

    return bad_server(name, fields)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _converted(wanted: type, value: Any) -> Any:
    if wanted is bool and isinstance(value, str):
        if value.lower() in ("1", "true", "yes", "on"):
            return True
        if value.lower() in ("0", "false", "no", "off"):
            return False
        raise ValueError(value)
    if wanted in (int, float) and isinstance(value, bool):
        raise TypeError(value)
    if wanted is list and isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if (wanted in (list, dict, bool) or isinstance(value, (list, dict))) and not isinstance(value, wanted):
        raise TypeError(value)
    return wanted(value)
