# Before a commit, in the environment of CONTRIBUTING.md.
.PHONY: check
check:
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	pytest
