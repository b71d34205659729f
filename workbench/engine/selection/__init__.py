"""Selects what a call sees: tools, messages, summaries, retrieved texts."""
