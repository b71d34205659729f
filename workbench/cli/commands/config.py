"""``workbench config``: the settings, the origin of each, and checks of the files that set them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from textual.theme import BUILTIN_THEMES

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, project_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.cli.shell_completion import SettingName, SettingValue
from workbench.language.model.schema import json_schema
from workbench.resources import theme_folders
from workbench.themes import load_themes
from workbench.views.keys import command_of, resolve
from workbench.views.settings import SettingsView, value_text
from workbench.workspace.config_file import place_of, read_value, set_value, unset_value
from workbench.workspace.model_choice import choose_model, in_force, in_words
from workbench.workspace.settings import TABLE, SettingsError, setting_named

if TYPE_CHECKING:
    from workbench.workspace.config_file import Target, WrittenSetting
    from workbench.workspace.project import Project


@click.group(short_help="Show and check the settings and where they come from.")
def command() -> None:
    """Settings come, in this order, from flags, the environment, workbench.yaml of the workspace, config.yaml in the
    user's config folder, and the defaults. What could act outside (sandbox, prices, base URL, redaction) is never taken
    from a workspace.
    """


@command.command(short_help="Every setting, its value and its origin.")
@as_json
@plain
def show(json: bool, plain: bool) -> None:
    """Print every setting, its value and its origin; then the model that would answer, the address that would be asked
    and the variable that holds the key, without its value.

    \b
    Examples:
      workbench config show
      workbench config show --json | jq .timeout
    """
    project = project_here()
    settings = project.settings
    asked = in_force(project, choose_model(project, None, None))
    view = SettingsView(TABLE, settings, asked)
    if json:
        write_json(view.json())
        return
    Printer(plain).show(view.blocks())
    talk(f"model in force: {in_words(asked)}")
    for note in project.notes:
        talk(note, "warning")
    talk(f"workspace {project.root}; config folder {project.folders.config}; store {project.store.root}", "dim")


def _target(workspace: bool) -> Target:
    return "workspace" if workspace else "user"


@command.command("set", short_help="Write a setting into your file, or the workspace's.")
@click.argument("name", type=SettingName(), metavar="NAME[.KEY]")
@click.argument("value", type=SettingValue())
@click.option("--workspace", is_flag=True, help="Into workbench.yaml of the workspace.")
def set_(name: str, value: str, workspace: bool) -> None:
    """Write one setting into config.yaml of your config folder; comments and everything else stay. What could act
    outside of a workspace is never written into its file.

    \b
    Examples:
      workbench config set theme workbench-light
      workbench config set max_cost 0.50 --workspace
      workbench config set keys.app.quit ctrl+x
    """
    setting, key = _named(name)
    found = value if key else read_value(setting_named(setting), value)
    project = project_here()
    wrong = (
        _taken(project, key, value) if setting == "keys" else _no_theme(project, value) if setting == "theme" else ""
    )
    if wrong:
        raise Failure(Exit.USAGE, wrong)
    _told(set_value(project, setting, found, _target(workspace), key))


def _taken(project: Project, id: str, keys: str) -> str:
    """Returns why a command cannot have these keys; empty if it can."""
    others = {other: theirs for other, theirs in project.settings.keys.items() if other != id}
    return next((wrong for wrong in resolve({**others, id: keys})[1] if command_of(wrong) == id), "")


def _no_theme(project: Project, name: str) -> str:
    """Returns why a theme is missing; empty if it exists."""
    found = load_themes(theme_folders(project.folders.config))
    if name in found.by_name or name in BUILTIN_THEMES:
        return ""
    broken = f"; {'; '.join(found.problems)}" if found.problems else ""
    return f"there is no theme '{name}'; there are {', '.join(sorted(found.by_name))}{broken}"


@command.command(short_help="Remove a setting from your file, or the workspace's.")
@click.argument("name", type=SettingName(), metavar="NAME[.KEY]")
@click.option("--workspace", is_flag=True, help="From workbench.yaml of the workspace.")
def unset(name: str, workspace: bool) -> None:
    """Remove a setting from config.yaml of your config folder.

    \b
    Example:
      workbench config unset theme
    """
    setting, key = _named(name)
    _told(unset_value(project_here(), setting, _target(workspace), key))


def _named(name: str) -> tuple[str, str]:
    """``keys.app.quit`` is the entry ``app.quit`` of the setting ``keys``."""
    setting, _, key = name.partition(".")
    return setting, key


def _told(written: WrittenSetting) -> None:
    talk(f"written to {written.file}", "ok")
    if written.origin not in (str(written.file), "default"):
        talk(f"{written.origin} overrides it: {value_text(written.value)}", "warning")


@command.command(short_help="Check the settings files.")
@as_json
def validate(json: bool) -> None:
    """Read all sources of settings; exit code 2 with the place of the first mistake, be it a key that is
    taken or a theme that is not there.

    \b
    Example:
      workbench config validate
    """
    project = project_here()
    clashes = resolve(project.settings.keys)[1]
    if clashes:
        place = place_of(project.settings, "keys", command_of(clashes[0]))
        raise SettingsError(f"{place}: error: {clashes[0]}")
    if wrong := _no_theme(project, str(project.settings.theme)):
        raise SettingsError(f"{place_of(project.settings, 'theme')}: error: {wrong}")
    sources = sorted({origin for origin in project.settings.origins.values() if origin != "default"})
    if json:
        write_json({"valid": True, "sources": sources})
        return
    talk(f"the settings are valid; set by {', '.join(sources) if sources else 'defaults only'}", "ok")


@command.command(short_help="JSON Schema of the settings files.")
def schema() -> None:
    """Print the JSON Schema of workbench.yaml and config.yaml.

    \b
    Example:
      workbench config schema > settings.schema.json
    """
    write_json(_settings_schema())


def _settings_schema() -> dict[str, Any]:
    """JSON Schema of ``workbench.yaml`` and ``config.yaml``."""
    server = json_schema()["$defs"]["McpServer"]
    types = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
    parts: dict[str, Any] = {
        "texts": {"type": "string"},
        "hosts": {"type": "string"},
        "mappings of numbers": {"type": "object", "additionalProperties": {"type": "number"}},
        "MCP servers": server,
    }
    properties: dict[str, Any] = {}
    for setting in TABLE:
        properties[setting.name] = {"type": types[setting.type], "description": setting.help}
        if setting.of:
            properties[setting.name]["items" if setting.type is list else "additionalProperties"] = parts[setting.of]
        if setting.least is not None:
            properties[setting.name]["minimum"] = setting.least
        if setting.choices:
            properties[setting.name]["enum"] = list(setting.choices)
        if setting.default not in (None, "", [], {}):
            properties[setting.name]["default"] = setting.default
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cascade Workbench settings",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
