"""Checks of a cascade beyond its form: one table of codes, and checks by subject over shared facts."""
