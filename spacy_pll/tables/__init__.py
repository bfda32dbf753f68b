"""Scored docs as rows of tables."""
