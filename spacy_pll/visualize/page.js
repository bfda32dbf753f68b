const root = document.querySelector(".pll-viz");
const [search, order, metric, numbers, count, list] =
  ["search", "order", "metric", "numbers", "count", "list"].map(id => document.getElementById(id));
const plain = text => text.normalize("NFC").toLowerCase();
const docs = [...list.children].map((element, position) => ({
  element, position, text: plain([element.dataset.text, element.querySelector(".fields")?.textContent].join("\n")),
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
