"""Guesses about what the user may have meant: each is a function from what was read to a message, or None if nothing
looks odd. `giving` warns of what they find. None is an error, and none changes a score.
"""
