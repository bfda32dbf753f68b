# Before a commit, in the environment of CONTRIBUTING.md.
.PHONY: check
check:
	ruff check .
	ruff format --check .
	mdformat --check $$(git ls-files '*.md')
	mypy
	lint-imports
	pytest
