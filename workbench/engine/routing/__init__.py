"""Routing in a DOT pipeline: outcomes of phases, and the edge that is taken. Pure."""
