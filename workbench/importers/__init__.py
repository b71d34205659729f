"""Runs of other tools: their files, read into conversations, and conversations written as journals."""
