"""The explorer: a local page to try out texts, models and metrics. `python -m spacy pll explore` starts it.

`app.py` is what Streamlit runs. Only `page` and `views` import Streamlit.
"""
