"""Whether the search of the documentation site finds what people type: the rank of the right page for each query.

    mkdocs build --strict
    python -m scripts.docs_site.search

It needs the group `test-all`, Chromium and chromedriver, and prints a table. It fails if neither the right page nor the
one that answers questions is among the first three for more than one query in 20.
"""

import argparse
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
QUESTIONS, FIRST = "how-do-i.html", 3
# Of a query, the pages with an answer.
QUERIES = {
    "surprisal of each word": ["reading.html"],
    "compare two sentences": ["analysis.html", "evaluation.html"],
    "perplexity of a corpus with BERT": ["perplexity.html"],
    "GPU batch size": ["speed.html"],
    "use ESM": ["proteins.html", "models.html"],
    "BLiMP on my checkpoint": ["evaluation.html", "test-sets.html"],
    "what is word_l2r": ["metrics.html"],
    "cite": ["citing.html"],
    "my language has no spaces": ["settings.html"],
    "why is the score of a longer sentence lower": ["normalised-scores.html"],
    "tutorial": ["tutorial.html"],
    "out of memory": ["speed.html", "settings.html"],
    "compare two models": ["analysis.html", "evaluation.html"],
    "Windows": ["install.html"],
    "R": ["from-r.html"],
    "plot": ["analysis.html", "tutorial.html"],
    "install": ["install.html"],
    "cloze probability": ["slots.html"],
    "speech recognition n-best": ["rescoring.html"],
    "GPT-2": ["models.html"],
    "eye tracking": ["reading.html"],
    "acceptability judgments": ["evaluation.html", "test-sets.html"],
    "continue after a crash": ["corpora.html"],
    "mutation": ["proteins.html"],
    "Chinese": ["settings.html"],
    "my own metric": ["metrics.html"],
    "entropy": ["settings.html", "analysis.html"],
    "CSV columns": ["formats.html"],
    "Slurm": ["distributed.html"],
    "spacy pipeline": ["spacy.html"],
    "proxy": ["install.html"],
    "word frequency": ["reading.html", "normalised-scores.html"],
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def pages_found(driver, query: str) -> list[str]:
    """The pages that the search lists for a query, in its order."""
    field = driver.find_element("css selector", "input.md-search__input")
    driver.execute_script("arguments[0].value = ''; arguments[0].focus()", field)
    field.send_keys(query)
    listed, end = [], time.monotonic() + 15
    while time.monotonic() < end:  # until the list stays as it is
        time.sleep(0.7)
        links = driver.find_elements("css selector", ".md-search-result__item > a.md-search-result__link")
        before, listed = listed, [link.get_attribute("href").split("?")[0].rpartition("/")[2] for link in links]
        if listed and listed == before:
            return [page.partition("#")[0] for page in listed]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "site", help="where the site is")
    folder = parser.parse_args().folder
    from tests.browser import start_browser  # selenium is there with the group `test-all`

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver, missed = start_browser(), []
    try:
        for query, right in QUERIES.items():
            driver.get(f"http://127.0.0.1:{server.server_port}/index.html")
            found = pages_found(driver, query)
            ranks = [rank for rank, page in enumerate(found, 1) if page in [*right, QUESTIONS]]
            if not ranks or ranks[0] > FIRST:
                missed.append(query)
            print(f"{query:45} {ranks[0] if ranks else '-':>3}  {' '.join(found[:FIRST])}", flush=True)
    finally:
        driver.quit()
        server.shutdown()
    print(f"{len(missed)} of {len(QUERIES)} missed: {', '.join(missed) or 'none'}")
    return int(len(missed) > len(QUERIES) / 20)


if __name__ == "__main__":
    sys.exit(main())
