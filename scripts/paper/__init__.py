"""Kauf & Ivanova (2023), "A Better Way to Do Masked Language Model Scoring", step by step (below: K&I).

Each module is a command of project.yml: `assets` and `scores` come first, `report` last, the
analyses between them in any order. What a command writes appears whole or not at all, so that
what is there can be taken for done.
"""
