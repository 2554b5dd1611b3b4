"use strict";
// What models and files say is put into the page as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Claims ------------------------------------------------------------------------------------------------------------
function claims() {
  const tools = at("claim-tools"), list = at("claim-list"), all = [...list.children];
  const rank = (name) => Object.keys(data.signs).indexOf(name);
  const orders = {
    paper: () => 0,
    verdict: (a, b) => rank(a.dataset.verdict) - rank(b.dataset.verdict),
    model: (a, b) => a.dataset.model.localeCompare(b.dataset.model),
  };
  function update() {
    const wanted = ["verdict", "model"].map((name) => [name, tools.elements[name].value]);
    for (const one of all) one.hidden = wanted.some(([name, value]) => value && one.dataset[name] !== value);
    list.append(...[...all].sort(orders[tools.elements.order.value]));
    tools.querySelector("output").textContent = `${all.filter((one) => !one.hidden).length} of ${all.length}`;
  }
  tools.addEventListener("change", update);
  update();
}

// A file is in the page once: a png as the picture, a csv below its figure. Other links to it are completed here.
function files() {
  for (const link of document.querySelectorAll("a[data-file]")) {
    const name = CSS.escape(link.dataset.file);
    link.href = document.querySelector(`img[data-name="${name}"]`)?.src ?? document.querySelector(`a[download="${name}"]`).href;
    link.download = link.dataset.file;
  }
}

// Answers -----------------------------------------------------------------------------------------------------------
const SHOWN = 150;  // rows at once

function answers() {
  const tools = at("answer-tools"), table = at("answer-table"), more = at("more");
  let shown = SHOWN;
  const share = (samples) => samples.filter((sample) => sample[0]).length / samples.length;
  const differ = (samples) => samples.some((sample) => sample[0] !== sample[1]);
  const run = () => data.answers.runs[tools.elements.run.value];

  function cell(samples) {
    if (!samples.length) return "–";
    const right = samples.filter((sample) => sample[0]).length, mark = differ(samples) ? " ≠" : "";
    if (samples.length > 1) return `${right}/${samples.length}${mark}`;
    return `${right ? "✓" : "✕"} ${samples[0][2] ?? "no answer"}${mark}`;
  }
  function text(sample) {
    const [right, authors, , index, reason, tokens] = sample;
    const judged = `${right ? "right" : "wrong"}, by the authors' rule ${authors ? "right" : "wrong"}; ${tokens} tokens, ended by ${reason}`;
    const written = index === null ? "(left out to keep the page small)" : data.answers.texts[index];
    return [element("p", { className: "source", textContent: judged }), element("pre", { textContent: written, tabIndex: 0 })];
  }
  function open(button, row, conditions, cells) {
    const expanded = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!expanded));
    if (expanded) return row.nextSibling.remove();
    const texts = conditions.map((name, i) => element("div", {}, element("h3", { textContent: name }), ...cells[i].flatMap(text)));
    row.after(element("tr", {}, element("td", { colSpan: conditions.length + 3 }, element("div", { className: "texts" }, ...texts))));
  }
  function line([id, level, gold], cells, conditions) {
    // A narrow column breaks an id after a slash, not inside a word.
    const button = element("button", { type: "button" }, ...id.split(/(?<=\/)/).flatMap((part) => [part, element("wbr", {})]));
    button.setAttribute("aria-expanded", "false");
    const row = element("tr", {}, element("th", { scope: "row" }, button), element("td", { textContent: level ?? "–" }), element("td", { textContent: gold }));
    row.append(...cells.map((samples) => element("td", { textContent: cell(samples) })));
    button.addEventListener("click", () => open(button, row, conditions, cells));
    return row;
  }
  function update() {
    const { conditions, problems, cells } = run(), { level, changed, disagree } = tools.elements;
    const none = conditions.indexOf("none"), slashes = conditions.indexOf("mless");
    changed.disabled = none < 0 || slashes < 0;
    const moved = (row) => row[none].length && row[slashes].length && share(row[none]) !== share(row[slashes]);
    const kept = problems.map((_, i) => i).filter((i) => (!level.value || String(problems[i][1]) === level.value)
      && (!changed.checked || changed.disabled || moved(cells[i])) && (!disagree.checked || cells[i].some(differ)));
    const names = ["Problem", "Level", "Gold", ...conditions].map((name) => element("th", { scope: "col", textContent: name }));
    table.tHead.replaceChildren(element("tr", {}, ...names));
    table.tBodies[0].replaceChildren(...kept.slice(0, shown).map((i) => line(problems[i], cells[i], conditions)));
    more.hidden = kept.length <= shown;
    tools.querySelector("output").textContent = `${kept.length} of ${problems.length} problems`;
  }
  function begin() {
    const levels = [...new Set(run().problems.map((problem) => problem[1]))].filter((level) => level !== null).sort();
    const options = [["all", ""], ...levels.map((level) => [level, level])];
    tools.elements.level.replaceChildren(...options.map(([textContent, value]) => element("option", { textContent, value })));
    shown = SHOWN;
    update();
  }
  tools.addEventListener("change", (event) => (event.target.name === "run" ? begin() : update()));
  more.addEventListener("click", () => { shown += SHOWN; update(); });
  begin();
}

// A page that was sent to someone has no notebooks beside it: their names stay, without a link.
if (!decodeURI(location.pathname).endsWith(`/results/${document.body.dataset.profile}/report.html`)) {
  for (const link of document.querySelectorAll("[data-beside]")) link.replaceWith(link.textContent);
}
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
files();
claims();
if (at("answer-tools")) answers();
