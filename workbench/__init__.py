"""The Cascade Workbench: see what every model call of an LLM workflow saw, why, and what it cost."""

__version__ = "0.1.0"
