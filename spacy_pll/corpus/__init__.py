"""Texts in, scores out, at any size: readers, rows, files, shards, runs."""
