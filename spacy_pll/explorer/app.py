"""The script that Streamlit runs. Its argument is a JSON object with the `PipelineSettings` to begin with."""

import json
import sys

# Streamlit runs this file as a script, which has no package to import from relatively.
from spacy_pll.errors import shown_errors
from spacy_pll.explorer.page import show_page
from spacy_pll.explorer.views import show_error
from spacy_pll.pipelines import PipelineSettings

with shown_errors(show_error):
    show_page(PipelineSettings(**json.loads(sys.argv[1]) if sys.argv[1:] else {}))
