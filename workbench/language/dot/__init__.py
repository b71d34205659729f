"""Attractor pipelines: graphs written in DOT."""
