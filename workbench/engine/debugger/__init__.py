"""Holds a live run: modes, breakpoints and their conditions."""
