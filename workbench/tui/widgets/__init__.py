"""Widgets drawn line by line: each pane is one, whatever it holds."""
