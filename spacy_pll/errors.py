"""What is raised where a user has to change something."""


class InputError(ValueError):
    """The input cannot be read. The message says where, what is wrong, and what to do."""
