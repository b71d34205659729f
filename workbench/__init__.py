"""The Cascade Workbench: see what every model call of an LLM workflow saw, why, and what it cost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tools.registry import register_tackle

__version__ = "0.1.0"
__all__ = ["__version__", "register_tackle"]


def __getattr__(name: str) -> object:
    """``from workbench import register_tackle``, loaded when asked for: importing the package stays cheap."""
    if name == "register_tackle":
        from workbench.tools.registry import register_tackle

        return register_tackle
    raise AttributeError(f"module 'workbench' has no attribute '{name}'")
