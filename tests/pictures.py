"""The pictures of the documentation.

    python -m tests.pictures

draws them anew, for new weights or a new look: look at all of them then. With the name of a function, such as
`draw_hungry`, only this one is drawn. Needs the group `test-all`, Chromium with its chromedriver, and the Brown corpus
in the folder that SPACY_PLL_DATA names.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import spacy
from PIL import Image

from scripts.paper.published_texts import kauf_ivanova_sentences, read_brown
from spacy_pll import compare, load_unigrams, make_pipeline, normalise, slots, visualize
from spacy_pll.scoring.windows import choose_windows, window_bounds

from .browser import CHROMIUM, DRIVER, explorer, find_seen, set_scheme, set_window, start_browser, wait
from .cli.conftest import run
from .doc_commands import BROWN, is_python_run, make_runner
from .doc_examples import PageRun, read_blocks

DOCS = Path(__file__).parents[1] / "docs"
SOUVENIR = "The traveler lost the souvenir."
ARE, IS = "The children are hungry.", "The children is hungry."
PLURAL, SINGULAR = "The keys to the cabinet are on the table.", "The keys to the cabinet is on the table."


def draw_figure(driver, folder: Path):
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "spacy-pll"  # the same file each time
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["word_l2r", "original", "whole_word"], "keep_pieces": True})
    visualize.plot(nlp(SOUVENIR)).savefig(DOCS / "souvenir.svg", metadata={"Date": None})


def draw_groups(driver, folder: Path):
    """Content and groups of a sentence with margin 1: who attends to whom."""
    import matplotlib.pyplot as plt

    pieces = ["[CLS]", "The", "cats", "sleep", ".", "[SEP]"]
    n, scored = len(pieces), range(1, 5)
    masked = np.eye(n, dtype=bool)[scored]
    near = np.abs(np.arange(n) - np.array(scored)[:, None]) <= 1
    group, position = np.nonzero(near)
    labels = pieces + ["[MASK]" if masked[g, p] else pieces[p] for g, p in zip(group, position)]
    sees = np.zeros((len(labels), len(labels)), dtype=bool)
    sees[:n, :n] = True
    sees[n:, :n] = ~near[group]
    sees[n:, n:] = group[:, None] == group
    colours = ["#8a8f98"] * n + [["#4c78a8", "#f2a541", "#d1495b", "#59a14f"][g] for g in group]
    settings = {"svg.hashsalt": "spacy-pll", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with plt.rc_context(settings):
        figure, ax = plt.subplots(figsize=(5.8, 5.4))
        for row, column in np.argwhere(sees):
            ax.add_patch(plt.Rectangle((column, row), 0.92, 0.92, color=colours[row], linewidth=0))
        ax.set(xlim=(-0.1, len(labels)), ylim=(len(labels), -0.1), aspect="equal")
        ax.xaxis.tick_top()
        at = np.arange(len(labels)) + 0.46
        ax.set_xticks(at, labels, rotation=90)
        ax.set_yticks(at, labels)
        for ticks in (ax.get_xticklabels(), ax.get_yticklabels()):
            for tick, label, colour in zip(ticks, labels, colours):
                tick.set(color=colour, fontweight="bold" if label == "[MASK]" else "normal")
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        starts = [0, n, *(n + np.flatnonzero(np.diff(group)) + 1), len(labels)]
        for start in starts[1:-1]:
            ax.axhline(start - 0.04, color="#c9ced6", linewidth=0.6)
            ax.axvline(start - 0.04, color="#c9ced6", linewidth=0.6)
        ax.set_xlabel("attended to")
        ax.set_ylabel("attends (content above, groups below)")
        figure.tight_layout()
        figure.savefig(DOCS / "groups.svg", metadata={"Date": None})
        plt.close(figure)


def draw_windows(driver, folder: Path):
    """A text of 381 wordpieces in two windows of 254: where each piece is scored."""
    import matplotlib.pyplot as plt

    pieces = np.arange(381)  # each of them a word
    limits = window_bounds(pieces, 254)
    panels = {"most metrics": None, "causal, sentence_l2r, left_context": 0}
    with plt.rc_context({"font.family": "sans-serif", "font.size": 9}):
        figure, axes = plt.subplots(2, figsize=(4.4, 3.2), sharex=True)
        for ax, (title, lookahead) in zip(axes, panels.items()):
            window, _ = choose_windows(pieces, limits, lookahead)
            for number, (start, end) in enumerate(limits.tolist()):
                [here] = np.nonzero(window == number)
                ax.barh(number, end - start, left=start, height=0.62, color="#d5d9e0")
                ax.barh(number, len(here), left=here[0], height=0.62, color=["#4c78a8", "#d1495b"][number])
                label = f"{here[0] + 1} to {here[-1] + 1}"
                ax.text(here.mean(), number, label, color="white", ha="center", va="center")
            ax.set_yticks(range(len(limits)), [f"window {number + 1}" for number in range(len(limits))])
            ax.set(title=title, xlim=(0, len(pieces)), ylim=(len(limits) - 0.5, -0.5))
            ax.title.set_size(9)
            ax.tick_params(length=0)
            for side in ax.spines.values():
                side.set_visible(False)
        axes[-1].set_xticks([1, *limits[1:, 0] + 1, *limits[:, 1]])
        axes[-1].set_xlabel("wordpiece of the text")
        figure.tight_layout()
    save_figure(figure, "windows.png")


def draw_regions(driver, folder: Path):
    """The figure that the command of the page draws, as a picture."""
    runner = make_runner()

    def run_command(words: list[str]) -> str | None:
        return runner(["means.png" if word == "means.pdf" else word for word in words])

    with sharp():
        run_page(DOCS / "region-means.md", folder, run_command)
    save_picture(Image.open(folder / "means.png"), "means.png")


def draw_distribution(driver, folder: Path):
    (folder / "brown.txt").write_text("\n".join(sample_of_brown()) + "\n", encoding="utf8")
    with sharp():
        run("score", folder / "brown.txt", folder / "b.csv", "--mask-margin", 0, "--plot", folder / "pppl.png")
    save_picture(Image.open(folder / "pppl.png"), "pppl.png")


def draw_lengths(driver, folder: Path):
    """Sentences of the Brown corpus: the longer, the lower the score, but not its SLOR."""
    import matplotlib.pyplot as plt

    nlp = make_pipeline(keep_pieces=True, mask_margin=0)
    docs = [doc for doc in nlp.pipe(sample_of_brown()) if doc._.pll_pieces]
    unigrams = load_unigrams(nlp)
    scores = {"score (nats)": [doc._.pll for doc in docs], "slor": [normalise(doc, "slor", unigrams) for doc in docs]}
    length = np.array([doc._.pll_pieces for doc in docs])
    with plt.rc_context({"font.family": "sans-serif", "font.size": 9}):
        figure, axes = plt.subplots(1, 2, figsize=(7, 2.9))
        for ax, (name, values) in zip(axes, scores.items()):
            ax.scatter(length, values, s=6, color="#4c78a8", alpha=0.35, linewidths=0)
            ends = np.array([length.min(), length.max()])
            ax.plot(ends, np.polyval(np.polyfit(length, values, 1), ends), color="#d1495b")
            ax.set(xlabel="wordpieces of the sentence", ylabel=name)
            ax.grid(color="#e3e6ea")
            ax.set_axisbelow(True)
        figure.tight_layout()
    save_figure(figure, "lengths.png")


def draw_slots(driver, folder: Path):
    import matplotlib.pyplot as plt

    [found] = slots(make_pipeline(), ["He works as a ___ in the hospital."], top=8)
    with plt.rc_context({"font.family": "sans-serif", "font.size": 9}):
        figure, ax = plt.subplots(figsize=(5.4, 2.6))
        values = [one.model_probability or np.exp(one.score) for one in found]
        bars = ax.barh([one.text for one in found], values, color="#4c78a8")
        ax.bar_label(bars, [f"{value:.0%}" for value in values], padding=3)
        ax.invert_yaxis()
        ax.xaxis.set_visible(False)
        ax.margins(x=0.12)
        ax.tick_params(length=0)
        ax.set_title("He works as a ___ in the hospital.", loc="left", size=10)
        for side in ("top", "right", "bottom"):
            ax.spines[side].set_visible(False)
        figure.tight_layout()
    save_figure(figure, "slots.png")


def sample_of_brown() -> list[str]:
    """3,000 sentences."""
    return kauf_ivanova_sentences(read_brown(BROWN))[::9]


def draw_texts(driver, folder: Path):
    sentences = kauf_ivanova_sentences(read_brown(BROWN))
    (folder / "brown.txt").write_text("\n".join(sentences[:40]) + "\n", encoding="utf8")
    run("render", folder / "brown.txt", folder / "brown.html", "--metrics", "word_l2r,original")
    set_window(driver, 1100, 760)
    driver.get((folder / "brown.html").as_uri())
    save(driver, "render.png")


def draw_comparison(driver, folder: Path):
    set_window(driver, 860, 310)
    show_comparison(driver, folder, PLURAL, SINGULAR)
    save(driver, "comparison.png")


def draw_hungry(driver, folder: Path):
    """Two sentences, one below the other, without numbers: the first thing that a reader of README.md sees."""
    set_window(driver, 430, 400, scale=2)
    show_comparison(driver, folder, ARE, IS)
    driver.execute_script("document.querySelectorAll('.delta').forEach(e => e.remove())")
    sentences = driver.find_element("css selector", ".versions")
    driver.execute_script("arguments[0].style.width = 'fit-content'", sentences)
    save(sentences, "hungry.png")


def show_comparison(driver, folder: Path, a: str, b: str):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"keep_pieces": True})
    page = folder / "comparison.html"
    page.write_text(visualize.render_comparison(compare(nlp, a, b), page=True, jupyter=False), encoding="utf8")
    driver.get(page.as_uri())


def draw_tutorial(driver, folder: Path):
    """The figure that the code of the tutorial draws."""
    run_page(DOCS / "tutorial.md", folder, make_runner())
    save_picture(Image.open(folder / "figure.png"), "tutorial.png")


def run_page(page: Path, folder: Path, run_command: Callable[[list[str]], str | None]):
    """Run the examples of a page of the documentation in a folder."""
    for _ in PageRun(folder, run_command, is_python_run).run(read_blocks(page)):
        pass


def draw_expectation(driver, folder: Path):
    (folder / "keys.txt").write_text(f"{SINGULAR}\n", encoding="utf8")
    run("render", folder / "keys.txt", folder / "keys.html", "--alternatives", 5, "--distribution")
    set_window(driver, 740, 425, scale=1.5)
    driver.get((folder / "keys.html").as_uri())
    focus(driver, "is")
    save(driver, "expected.png")


def draw_explorer(driver, folder: Path):
    with explorer(folder, "--metrics", "word_l2r,original") as address:
        for name, width in (("explore.png", 1180), ("explore-phone.png", 390)):
            set_window(driver, width, mobile=width < 600)
            driver.get(address)
            wait(lambda: len(find_seen(driver, ".pll-viz .row")) == 4)
            focus(driver, "is")
            save(driver, name)


def focus(driver, word: str):
    """Move to a word of the primary metric, as the Tab key does. The page then shows what the model expected there."""
    token = next(t for t in find_seen(driver, ".pll-viz .t[tabindex]") if t.text.split("\n")[0] == word)
    driver.execute_script("arguments[0].focus()", token)
    wait(lambda: find_seen(driver, ".pll-viz .exp"))


def save(seen, name: str):
    """Save what the browser, or an element of its page, shows, with 256 colours, which halves the file."""
    png = seen.screenshot_as_png if hasattr(seen, "screenshot_as_png") else seen.get_screenshot_as_png()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(256).save(DOCS / name, optimize=True)


def sharp():
    """Figures that are saved here have more pixels."""
    import matplotlib.pyplot as plt

    return plt.rc_context({"savefig.dpi": 160})


def save_figure(figure, name: str):
    drawn = io.BytesIO()
    with sharp():
        figure.savefig(drawn, format="png")
    save_picture(Image.open(drawn), name)


def save_picture(picture: Image.Image, name: str):
    """Save a figure: white behind it, and 64 colours."""
    picture.convert("RGB").quantize(64).save(DOCS / name, optimize=True)


PICTURES: list[Callable] = [
    draw_figure,
    draw_groups,
    draw_windows,
    draw_regions,
    draw_distribution,
    draw_lengths,
    draw_slots,
    draw_texts,
    draw_comparison,
    draw_hungry,
    draw_tutorial,
    draw_expectation,
    draw_explorer,
]


def main():
    for needed, what in ((CHROMIUM, "Chromium"), (DRIVER, "chromedriver"), (BROWN.is_file(), f"the file {BROWN}")):
        if not needed:
            raise SystemExit(f"The pictures need {what}, which is missing.")
    driver = start_browser()
    set_scheme(driver, "light")
    try:
        for draw in [one for one in PICTURES if one.__name__ in sys.argv[1:]] or PICTURES:
            with tempfile.TemporaryDirectory() as folder:
                draw(driver, Path(folder))
            print(draw.__name__, flush=True)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
