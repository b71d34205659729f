"""Asks a person: questions, forms, decisions, feedback."""
