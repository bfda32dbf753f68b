"""Texts in, scores out, at any size: readers, rows and formats, files, shards to resume from, runs."""
