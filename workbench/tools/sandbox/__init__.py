"""Runs commands that a model chose: the strongest level that works here, with limits, and nothing left running."""

from workbench.tools.sandbox.limits import LADDER, FinishedCommand, Level, Limits
from workbench.tools.sandbox.sandbox import Sandbox, SandboxUnavailable

__all__ = ["LADDER", "FinishedCommand", "Level", "Limits", "Sandbox", "SandboxUnavailable"]
