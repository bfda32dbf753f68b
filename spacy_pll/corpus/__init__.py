"""Score corpora of any size: read the texts, make the rows, write them in a format, and resume interrupted runs."""
