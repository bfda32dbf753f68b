"""Variants of proteins, RNA and DNA: their scores, their files and pictures, and the command `spacy-pll variants`."""
