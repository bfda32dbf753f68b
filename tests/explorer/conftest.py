from ..cli.test_render import browser  # noqa: F401
