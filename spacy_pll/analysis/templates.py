"""The style, script and page frame of what `visualize.render` makes. Nothing is loaded from anywhere."""

# Background and text colours of the score's steps, from likely to unlikely, on a light page and on a dark one.
# One hue whose lightness falls (or rises) step by step, so it reads without colour vision; likely text recedes into
# the page, unlikely text stands out. Text keeps a contrast of at least 4.5 (WCAG 2 AA); a test checks it.
LIGHT_STEPS = [
    ("#fff6e4", "#1b1d22"), ("#ffdca6", "#1b1d22"), ("#fdc06f", "#1b1d22"), ("#f8a33f", "#1b1d22"),
    ("#ee860a", "#1b1d22"), ("#dc6e02", "#1b1d22"), ("#c05004", "#ffffff"), ("#ad3c05", "#ffffff"),
    ("#933018", "#ffffff"), ("#732722", "#ffffff"),
]  # fmt: skip
DARK_STEPS = [
    ("#35221f", "#f2f3f5"), ("#582a1d", "#f2f3f5"), ("#7b3210", "#f2f3f5"), ("#954303", "#f2f3f5"),
    ("#aa5701", "#f2f3f5"), ("#c27003", "#14161a"), ("#d78701", "#14161a"), ("#eba004", "#14161a"),
    ("#f4be55", "#14161a"), ("#fbdb8d", "#14161a"),
]  # fmt: skip

STEP_STYLES = "\n".join(
    f".pll-viz .s{i}{{background:light-dark({light[0]},{dark[0]});color:light-dark({light[1]},{dark[1]})}}"
    for i, (light, dark) in enumerate(zip(LIGHT_STEPS, DARK_STEPS))
)

# Notebooks have a theme of their own, which need not be the system's: JupyterLab and VS Code say which on <body>.
STYLE = (
    """
.pll-viz{color-scheme:light dark;--ink:light-dark(#1b1d22,#e6e8ec);--dim:light-dark(#5d6470,#9aa1ad);
--line:light-dark(#e3e6ea,#30343c);--paper:light-dark(#ffffff,#16181d);--focus:light-dark(#0b57d0,#8ab4f8);
--more:light-dark(#0072b2,#56b4e9);--less:light-dark(#b34a00,#f0a050);
background:var(--paper);color:var(--ink);padding:1rem;box-sizing:border-box;text-align:start;
font:16px/1.4 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",Arial,sans-serif,
"Apple Color Emoji","Segoe UI Emoji","Noto Color Emoji"}
body[data-jp-theme-light=true] .pll-viz,body.vscode-light .pll-viz{color-scheme:light}
body[data-jp-theme-light=false] .pll-viz,body.vscode-dark .pll-viz{color-scheme:dark}
.pll-viz *{box-sizing:border-box}
.pll-viz .doc{padding:.9rem 0;border-top:1px solid var(--line);content-visibility:auto;contain-intrinsic-size:auto 6rem}
.pll-viz .doc[hidden]{display:none}
.pll-viz .number{margin-inline-end:.35rem;font-weight:650}
.pll-viz .row{display:grid;grid-template-columns:8rem minmax(0,1fr);column-gap:1rem;align-items:start}
.pll-viz .row+.row{margin-top:.5rem}
.pll-viz .sum{padding-top:.3rem;cursor:help;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.pll-viz .sum .metric{display:block;font-size:.75rem;color:var(--dim)}
.pll-viz .sum b{font-weight:650;font-size:1.1rem}
.pll-viz .sum small{display:block;color:var(--dim);font-size:.75rem}
.pll-viz .text{margin:0;line-height:1.4;min-width:0}
.pll-viz .none{color:var(--dim);font-style:italic;padding-top:.3rem}
.pll-viz .g{display:inline-flex;flex-wrap:wrap;align-items:flex-start;vertical-align:top;max-width:100%;gap:1px}
.pll-viz .t{display:inline-flex;flex-direction:column;align-items:center;vertical-align:top;max-width:100%;
min-width:.7em;margin:.15rem 0;padding:.15em .3em;border-radius:.25em;overflow-wrap:anywhere;cursor:help}
.pll-viz .t>span{max-width:100%}
.pll-viz .t.off{color:var(--dim);cursor:auto}
.pll-viz .t.split{padding-bottom:.3em}
.pll-viz .p{order:2;display:flex;flex-wrap:wrap;justify-content:center;gap:2px;margin-top:.2em;user-select:none;
font:.72rem/1.35 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.pll-viz .p>span{padding:.05em .3em;border-radius:.2em;min-width:0;max-width:100%;overflow-wrap:anywhere;
box-shadow:0 0 0 1px color-mix(in srgb,var(--paper) 60%,transparent)}
.pll-viz.numbers .t[data-v]::after{content:attr(data-v);order:1;font-size:.7rem;line-height:1.2;opacity:.95;
font-variant-numeric:tabular-nums;user-select:none}
.pll-viz .percent{color:var(--dim);font-size:.75rem;font-variant-numeric:tabular-nums}
.pll-viz .share{display:block;height:.35rem;margin-top:.15rem;border-radius:.2rem;background:var(--line)}
.pll-viz .share i{display:block;height:100%;border-radius:inherit;background:var(--more)}
.pll-viz .versions{display:flex;flex-wrap:wrap;gap:.75rem .3rem;align-items:stretch;min-width:0}
.pll-viz .seg{display:inline-grid;grid-template-rows:auto auto 1fr;justify-items:center;row-gap:.1rem;max-width:100%;
padding:.1rem .15rem;border:1px solid transparent;border-radius:.4rem}
.pll-viz .seg:not(.equal){border-color:var(--dim)}
.pll-viz .side{max-width:100%;text-align:center}
.pll-viz .delta{display:flex;flex-direction:column;justify-content:flex-end;align-items:center;min-height:3.6em;
font-size:.75rem;cursor:help;font-variant-numeric:tabular-nums}
.pll-viz .delta i{width:1em;border-radius:.15em .15em 0 0}
.pll-viz .gain{background:var(--more)}.pll-viz .loss{background:var(--less)}
.pll-viz .legend{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem .75rem;font-size:.8rem;color:var(--dim);
margin:0 0 .75rem}
.pll-viz .scale{display:inline-flex;max-width:100%}
.pll-viz .scale span{flex:1 1 2.75rem;width:2.75rem;min-width:0;padding:.1rem 0 .1rem .3rem;font-size:.72rem;
white-space:nowrap;overflow:hidden;cursor:help;font-variant-numeric:tabular-nums}
.pll-viz .scale span:first-child{border-radius:.25rem 0 0 .25rem}
.pll-viz .scale span:last-child{border-radius:0 .25rem .25rem 0}
@media (max-width:640px){.pll-viz .row{grid-template-columns:minmax(0,1fr)}
.pll-viz .sum{display:flex;flex-wrap:wrap;align-items:baseline;column-gap:.6rem}
.pll-viz .scale{flex:1 1 100%}.pll-viz .scale span{font-size:.68rem;padding-left:.2rem}}
"""
    + STEP_STYLES
)

PAGE_STYLE = """
html{color-scheme:light dark;background:light-dark(#ffffff,#16181d)}
body{margin:0}
.pll-viz{max-width:76rem;margin:0 auto;padding:1.5rem clamp(.75rem,3vw,2rem) 4rem}
.pll-viz h1{font-size:1.35rem;font-weight:650;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
.pll-viz .about{color:var(--dim);font-size:.85rem;margin:0 0 1rem;overflow-wrap:anywhere}
.pll-viz .bar{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .75rem;
padding:.6rem 0;background:var(--paper);font-size:.875rem}
.pll-viz .bar input[type=search]{flex:1 1 14rem;min-width:0}
.pll-viz .bar input[type=search],.pll-viz .bar select{font:inherit;color:inherit;background:var(--paper);
border:1px solid light-dark(#8b929e,#6c7380);border-radius:.4rem;padding:.4rem .6rem;max-width:100%}
.pll-viz .bar :focus-visible{outline:2px solid var(--focus);outline-offset:1px}
.pll-viz .bar [hidden]{display:none}
.pll-viz .bar label:not([hidden]){display:inline-flex;align-items:center;gap:.4rem}
.pll-viz .bar output{color:var(--dim);font-variant-numeric:tabular-nums}
@media print{.pll-viz .bar{display:none}.pll-viz .doc{content-visibility:visible;break-inside:avoid}
.pll-viz *{print-color-adjust:exact}}
"""

SCRIPT = """
const root = document.querySelector(".pll-viz");
const [search, order, metric, numbers, count, list] =
  ["search", "order", "metric", "numbers", "count", "list"].map(id => document.getElementById(id));
const plain = text => text.normalize("NFC").toLowerCase();
const docs = [...list.children].map((element, position) => ({
  element, position, text: plain(element.dataset.text),
  scores: element.dataset.scores.split(" ").map(score => score === "" ? NaN : +score),
  pieces: +element.dataset.pieces,
}));
function filter() {
  const wanted = plain(search.value.trim());
  let shown = 0;
  for (const doc of docs) {
    doc.element.hidden = !doc.text.includes(wanted);
    shown += !doc.element.hidden;
  }
  const all = docs.length + (docs.length === 1 ? " text" : " texts");
  count.textContent = wanted ? `${shown} of ${all}` : all;
}
function key(doc, by) {
  const score = doc.scores[metric ? metric.selectedIndex : 0];
  return by === "score" ? score : score / doc.pieces;
}
function sort() {
  const [by, direction] = order.value.split(" ");
  const sign = direction === "down" ? -1 : 1;
  if (by === "position") docs.sort((a, b) => a.position - b.position);
  else docs.sort((a, b) => {  // what has no score comes last in either direction
    const x = key(a, by), y = key(b, by);
    return isNaN(x) - isNaN(y) || (isNaN(x) ? 0 : sign * (x - y)) || a.position - b.position;
  });
  list.append(...docs.map(doc => doc.element));
}
search.addEventListener("input", filter);
order.addEventListener("change", sort);
metric?.addEventListener("change", sort);
numbers.addEventListener("change", () => root.classList.toggle("numbers", numbers.checked));
// A browser that goes back to this page fills the form in again.
if (docs.length < 2) for (const control of [search, order.parentElement, metric?.parentElement])
  if (control) control.hidden = true;
filter(); sort(); root.classList.toggle("numbers", numbers.checked);
"""

# The policy makes the browser itself refuse whatever is not in the page.
PAGE_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main class="pll-viz">
"""

PAGE_END = """
</main>
</body>
</html>
"""

BAR = """<div class="bar" role="search">
<input type="search" id="search" placeholder="Search the texts" aria-label="Search the texts" autocomplete="off">
<label>Sort by <select id="order">
<option value="position">position</option>
<option value="score up">score, lowest first</option>
<option value="score down">score, highest first</option>
<option value="mean up">score per piece, lowest first</option>
<option value="mean down">score per piece, highest first</option>
</select></label>
{metric}<label><input type="checkbox" id="numbers"> numbers</label>
<output id="count" for="search"></output>
</div>
"""
