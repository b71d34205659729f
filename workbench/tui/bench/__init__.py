"""The Bench: the main screen, its panes, and the controllers behind its keys."""
