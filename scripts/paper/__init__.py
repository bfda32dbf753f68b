"""Kauf & Ivanova (2023), "A Better Way to Do Masked Language Model Scoring", step by step (below: K&I).

Each module is a command of project.yml: `assets` and `scores` come first, `report` comes last, the analyses between
them run in any order. Results are written atomically, so a result that exists is complete.
"""
