"""The explorer: a local page to try out texts, models and metrics. `spacy-pll explore` starts it.

The script has a folder of its own, because Streamlit puts its folder before all
others in which Python looks for modules.
"""

MAX_CHARACTERS = 2000  # how much a page scores at once
