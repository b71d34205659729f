"""Names of tools that the language gives a meaning of their own."""

SHELL = "linux_shell"
"""Runs the command of a pipeline's node."""
ASK_HUMAN = "ask_human"
"""Asks a person; the answer is ``state.<phase>``."""
SET_STATE = "set_state"
ROUTE_TO = "route_to"
"""Offered where a phase has a choice of what comes next; no tool to list."""
