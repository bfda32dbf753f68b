"""Texts in, scores out, at any size: readers, rows and formats, files, results that can be resumed, runs."""
