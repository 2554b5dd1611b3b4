"use strict";
// Every answer, searched and opened (section 7). They are compressed, and read when somebody opens them.
// Formulas arrive as MathML by their LaTeX; elements and attributes that are not MathML's come to nothing.
const FORMULA = new RegExp(data.formula, "gs"), MATHML = "http://www.w3.org/1998/Math/MathML";

function drawn(latex) {
  if (!Object.hasOwn(data.formulas, latex) || !data.formulas[latex]) return null;
  const copy = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.data ?? "";
    const made = document.createElementNS(MATHML, /^m[a-z]+$/.test(node.localName) ? node.localName : "mtext");
    for (const name of ["display", "mathvariant", "stretchy", "fence", "accent"]) if (node.hasAttribute(name)) made.setAttribute(name, node.getAttribute(name));
    made.append(...[...node.childNodes].map(copy));
    return made;
  };
  return copy(new DOMParser().parseFromString(data.formulas[latex], "application/xml").documentElement);
}

// A text with its formulas drawn, as a list of strings and elements.
function written(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(FORMULA)) {
    parts.push(text.slice(end, match.index), drawn(match.slice(1).find((latex) => latex !== undefined)) ?? match[0]);
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}
const answer = (text) => (text.includes("\\") ? [drawn(text) ?? text] : [text]);  // one without dollar signs

const SHOWN = 150;  // rows at once

function answers() {
  const tools = at("answer-tools"), table = at("answer-table"), more = at("more");
  let shown = SHOWN, sorted = null, down = false;
  tools.elements.run.append(...data.answers.runs.map((one, value) => element("option", { value, textContent: `${one.part} · ${one.model}` })));
  const share = (samples) => samples.filter((sample) => sample[0]).length / samples.length;
  const differ = (samples) => samples.some((sample) => sample[0] !== sample[1]);
  const run = () => data.answers.runs[tools.elements.run.value];

  function cell(samples) {
    if (!samples.length) return "–";
    const right = samples.filter((sample) => sample[0]).length, mark = differ(samples) ? " ≠" : "";
    if (samples.length > 1) return `${right}/${samples.length}${mark}`;
    return element("span", {}, `${right ? "✓" : "✕"} `, ...answer(samples[0][2] ?? "no answer"), mark);
  }
  function told(sample) {
    const [right, authors, , index, reason, tokens] = sample;
    const judged = `${right ? "right" : "wrong"}, by the authors' rule ${authors ? "right" : "wrong"}; ${tokens} tokens, ended by ${reason}`;
    const text = index === null ? "(left out to keep the page small)" : data.answers.texts[index];
    return [element("p", { className: "source", textContent: judged }), element("pre", { tabIndex: 0 }, ...written(text))];
  }
  function open(button, row, conditions, cells) {
    const expanded = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!expanded));
    if (expanded) return row.nextSibling.remove();
    const texts = conditions.map((name, i) => element("div", {}, element("h3", { textContent: name }), ...cells[i].flatMap(told)));
    const [id, , , problem] = row.problem, own = address("answer", tools.elements.run.selectedOptions[0].text, id);
    const about = element("p", { className: "asked" }, ...(problem ? written(`${problem} `) : []), element("a", { href: own, textContent: "Link to these answers" }));
    history.replaceState(null, "", own);
    row.after(element("tr", {}, element("td", { colSpan: conditions.length + 3 }, about, element("div", { className: "texts" }, ...texts))));
  }
  function line(problem, cells, conditions) {
    const [id, level, gold] = problem;
    // A narrow column breaks an id after a slash, not inside a word.
    const button = element("button", { type: "button" }, ...id.split(/(?<=\/)/).flatMap((part) => [part, element("wbr", {})]));
    button.setAttribute("aria-expanded", "false");
    const row = element("tr", {}, element("th", { scope: "row" }, button), element("td", { textContent: level ?? "–" }), element("td", {}, ...answer(gold)));
    row.problem = problem;
    row.append(...cells.map((samples) => element("td", {}, cell(samples))));
    button.addEventListener("click", () => open(button, row, conditions, cells));
    return row;
  }
  function heading(name, i) {
    const button = element("button", { type: "button", textContent: `${name} ${sorted === i ? (down ? "▾" : "▴") : ""}` });
    button.addEventListener("click", () => {
      [sorted, down] = [i, sorted === i && !down];
      update();
      table.querySelectorAll("thead button")[i].focus();
    });
    const made = element("th", { scope: "col" }, button);
    if (sorted === i) made.setAttribute("aria-sort", down ? "descending" : "ascending");
    return made;
  }
  function update() {
    const { conditions, problems, cells } = run(), { level, changed, disagree, search } = tools.elements, sought = search.value.toLowerCase();
    const none = conditions.indexOf("none"), slashes = conditions.indexOf("mless");
    changed.disabled = none < 0 || slashes < 0;
    const moved = (row) => row[none].length && row[slashes].length && share(row[none]) !== share(row[slashes]);
    const texts = (i) => [problems[i][0], problems[i][2], problems[i][3] ?? "", ...cells[i].flat().map((sample) => data.answers.texts[sample[3]] ?? "")];
    const value = (i) => (sorted < 3 ? problems[i][sorted] ?? "" : cells[i][sorted - 3].length ? share(cells[i][sorted - 3]) : -1);
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    const kept = problems.map((_, i) => i).filter((i) => (!sought || texts(i).some((text) => text.toLowerCase().includes(sought))) && (!level.value || String(problems[i][1]) === level.value)
      && (!changed.checked || changed.disabled || moved(cells[i])) && (!disagree.checked || cells[i].some(differ)));
    if (sorted !== null) kept.sort((a, b) => (down ? -1 : 1) * compare(value(a), value(b)));
    const names = ["Problem", "Level", "Gold", ...conditions].map(heading);
    table.tHead.replaceChildren(element("tr", {}, ...names));
    table.tBodies[0].replaceChildren(...kept.slice(0, shown).map((i) => line(problems[i], cells[i], conditions)));
    more.hidden = kept.length <= shown;
    tools.querySelector("output").textContent = `${kept.length} of ${problems.length} problems`;
  }
  function begin() {
    const levels = [...new Set(run().problems.map((problem) => problem[1]))].filter((level) => level !== null).sort();
    const options = [["all", ""], ...levels.map((level) => [level, level])];
    tools.elements.level.replaceChildren(...options.map(([textContent, value]) => element("option", { textContent, value })));
    [shown, sorted] = [SHOWN, null];
    update();
  }
  function go([name, id]) {
    const wanted = [...tools.elements.run.options].find((option) => coded(option.text) === name);
    if (!wanted) return;
    tools.reset();
    tools.elements.run.value = wanted.value;
    begin();
    shown = Infinity;
    update();
    const row = [...table.tBodies[0].rows].find((one) => coded(one.problem[0]) === id);
    row?.querySelector("button").click();
    row?.scrollIntoView();
  }
  tools.addEventListener("input", (event) => { if (event.target.name === "search") update(); });
  tools.addEventListener("change", (event) => (event.target.name === "run" ? begin() : update()));
  more.addEventListener("click", () => { shown += SHOWN; update(); });
  begin();
  return go;
}

let opened = null;
function openAnswers() {
  opened ??= (async () => {
    const bytes = Uint8Array.from(atob(at("answers-data").textContent), (character) => character.charCodeAt(0));
    const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    Object.assign(data, JSON.parse(text));
    return answers();
  })();
  return opened;
}
at("answers")?.addEventListener("toggle", openAnswers);
on("answer", async (parts) => {
  if (!at("answers")) return;
  at("answers").open = true;
  (await openAnswers())(parts);
});
