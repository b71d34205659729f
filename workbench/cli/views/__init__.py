"""Runs as text and as JSON: what a screen shows, printed."""
