"""Screens: the Bench, sheets that show one thing large, dialogs, the help."""
