"""Task decompositions: JSON (or YAML) with sub-tasks and what they depend on, read into the one graph."""
