"use strict";
// One prompt step by step, the map of heads, and what one of them does to a prompt.
// Numbers arrive as half-precision floats in base64.
function floats(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer), numbers = new Array(bytes.length / 2);
  for (let i = 0; i < numbers.length; i++) {
    const half = view.getUint16(2 * i, true), exponent = (half >> 10) & 31, fraction = half & 1023;
    const size = exponent === 31 ? NaN : exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024);
    numbers[i] = half >> 15 ? -size : size;
  }
  return numbers;
}

// Cividis, from dark to light: read alike by the colour-blind, and in grey.
const RAMP = [[0, 32, 77], [65, 77, 107], [124, 123, 120], [188, 175, 111], [255, 234, 70]];
const SERIES = ["without", "with", "even"];

function colour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * (place - low)));
}

// Black or white, whichever is read more easily on a colour (WCAG's relative luminance).
function ink(rgb) {
  const [red, green, blue] = rgb.map((value) => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

// A row per token of the drawn prompt of a model, under an insertion, in head i.
function tokens(model, change, i) {
  const without = floats(model.received[i]), received = floats(change.received[i]), even = floats(change.even);
  let original = 0;
  return change.tokens.map((text, position) => {
    const part = change.parts[position];
    return { position, text, part, with: received[position], even: even[position], without: part === "inserted" ? NaN : without[original++] };
  });
}

// The tokens as text on the colour of what they receive; the first, which takes most of the mass, sets no colour.
function coloured(rows, series, most) {
  return rows.map((row) => {
    const told = Number.isFinite(row[series]) ? `receives ${row[series].toPrecision(3)}` : "no later token looks at it";
    const token = element("span", { textContent: row.text, title: `token ${row.position}, ${row.part}: ${told}`, className: row.part });
    token.style.setProperty("--share", Math.min((row[series] || 0) / most, 1).toFixed(2));
    return token;
  });
}

function brightest(rows, series) {
  return rows.slice(1).flatMap((row) => series.map((name) => row[name])).filter(Number.isFinite).sort((a, b) => b - a)[2] || 1;
}

function steps() {
  const model = data.heads.find((one) => one.received.slice(0, one.heads).some((head) => head !== null));
  at("step").hidden = !model;
  if (!model) return;
  const condition = "mless" in model.changes ? "mless" : Object.keys(model.changes)[0], change = model.changes[condition];
  const lambda = floats(change.ratio).slice(0, model.heads), stored = lambda.filter((_, i) => model.received[i] !== null && change.received[i] !== null);
  const i = lambda.indexOf(Math.min(...stored)), rows = tokens(model, change, i), most = brightest(rows, ["without", "with"]);
  const plain = rows.filter((row) => row.part !== "inserted"), original = plain.slice(1, -1);
  const mean = (name) => original.reduce((sum, row) => sum + row[name], 0) / original.length;
  const [low, high] = [change.low, change.high].map((part) => floats(part)[i].toFixed(2));
  const shown = (some, series) => element("p", { className: "prompt" }, ...coloured(some, series, most));
  const link = element("a", { href: address("head", model.name, condition, 1, i + 1), textContent: "See this head and all others" });
  at("steps").replaceChildren(
    element("li", {}, `An instruction and a problem, coloured by what each token receives from all later ones in layer 1, head ${i + 1} of ${model.name}:`, shown(plain, "without")),
    element("li", {}, `${rows.length - plain.length} tokens are inserted (${condition}); the same head then gives:`, shown(rows, "with")),
    element("li", {}, `The original tokens receive ${mean("without").toPrecision(2)} on average without the insertion and ${mean("with").toPrecision(2)} with it: λ = ${(mean("with") / mean("without")).toFixed(2)} on this prompt, ${lambda[i].toFixed(2)} [${low}, ${high}] over ${floats(change.n)[i]} problems. Below 1 is what the paper calls dilution. `, link, "."),
  );
  at("dots").hidden = model.texts;
}

const NS = "http://www.w3.org/2000/svg";
function svg(name, attributes, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// What each token receives, a line per series, the inserted span shaded, and a strip per token for the pointer.
function curve(rows, tell) {
  const width = Math.max(at("curve").clientWidth, 300), height = 260, [left, right, top, bottom] = [46, width - 6, 8, height - 36];
  const [first, last] = [rows[0].position, rows.at(-1).position];
  const most = Math.max(...rows.flatMap((row) => SERIES.map((name) => row[name])).filter(Number.isFinite), 1e-9);
  const x = (position) => left + (right - left) * (position - first + 0.5) / (last - first + 1), y = (value) => bottom - (bottom - top) * value / most;
  const round = (most, count) => [1, 2, 5, 10].map((step) => step * 10 ** Math.floor(Math.log10(most / count))).find((step) => most / step <= count);
  const ticks = (from, most, count) => Array.from({ length: Math.floor(most / round(most, count)) + 1 }, (_, i) => i * round(most, count)).filter((value) => value >= from);
  const line = (name) => rows.map((row, i) => Number.isFinite(row[name]) ? `${Number.isFinite(rows[i - 1]?.[name]) ? "L" : "M"}${x(row.position).toFixed(1)} ${y(row[name]).toFixed(1)}` : "").join("");
  const inserted = rows.filter((row) => row.part === "inserted").map((row) => row.position), half = x(first + 0.5) - x(first);
  const strips = rows.map((row) => {
    const strip = svg("rect", { class: "strip", x: x(row.position) - half, width: 2 * half, y: top, height: bottom - top });
    strip.addEventListener("pointerenter", (event) => tell(row, event));
    strip.addEventListener("pointerleave", () => tell(null));
    return strip;
  });
  at("curve").replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}` },
    ...(inserted.length ? [svg("rect", { class: "range", x: x(inserted[0]) - half, width: 2 * half * inserted.length, y: top, height: bottom - top })] : []),
    ...ticks(0, most, 6).flatMap((value) => [svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }), svg("text", { x: left - 6, y: y(value) + 3.5, class: "end" }, String(+value.toPrecision(6)))]),
    ...ticks(first, last, width > 500 ? 12 : 6).map((value) => svg("text", { x: x(value), y: bottom + 14 }, String(value))),
    svg("text", { x: (left + right) / 2, y: height - 4 }, "token position"),
    ...SERIES.toReversed().map((name) => svg("path", { class: name, d: line(name) })), ...strips));
}

function heads() {
  const tools = at("head-tools"), map = at("map"), tip = at("tip");
  let buttons = [], chosen = 0, model = null, change = null;

  function pick(wanted) {
    model = data.heads[wanted];
    tools.elements.model.value = wanted;
    tools.elements.condition.replaceChildren(...Object.keys(model.changes).map((name) => element("option", { textContent: name })));
    chosen = Math.max(model.received.findIndex((head) => head !== null), 0);
  }
  function draw() {
    change = model.changes[tools.elements.condition.value];
    const lambda = floats(change.ratio);
    document.querySelector(".ramp").style.background = `linear-gradient(90deg, ${RAMP.map((rgb) => `rgb(${rgb})`).join()})`;
    buttons = lambda.map((value, i) => {
      const [layer, head] = [model.layers[Math.floor(i / model.heads)], (i % model.heads) + 1];
      const button = element("button", { type: "button", tabIndex: i === chosen ? 0 : -1, textContent: Number.isFinite(value) ? value.toFixed(2) : "–" });
      const fill = colour(0.5 + (Math.log2(value) || 0) / 2);  // from half to twice; 1 is the ramp's middle
      button.style.background = `rgb(${fill})`;
      button.style.color = ink(fill);
      button.className = value > 1 ? "above" : "";
      button.setAttribute("role", "gridcell");
      button.setAttribute("aria-label", `layer ${layer} head ${head}: λ ${value.toFixed(2)}`);
      button.addEventListener("click", () => choose(i, true));
      return button;
    });
    const corner = element("span", { textContent: "λ" });
    const titles = Array.from({ length: model.heads }, (_, i) => element("span", { textContent: i + 1 }));
    titles.forEach((title) => title.setAttribute("role", "columnheader"));
    corner.setAttribute("role", "columnheader");
    corner.setAttribute("aria-label", "layer, by head");
    const rows = [[corner, ...titles], ...model.layers.map((layer, i) => {
      const title = element("span", { textContent: layer });
      title.setAttribute("role", "rowheader");
      return [title, ...buttons.slice(i * model.heads, (i + 1) * model.heads)];
    })].map((cells) => element("div", {}, ...cells));
    rows.forEach((row) => row.setAttribute("role", "row"));
    map.style.gridTemplateColumns = `1.6rem repeat(${model.heads}, minmax(0, 1fr))`;
    map.classList.toggle("many", model.heads > 12);
    map.replaceChildren(...rows);
    choose(chosen);
  }
  function choose(i, link) {
    buttons[chosen].tabIndex = -1;
    buttons[chosen].setAttribute("aria-selected", "false");
    chosen = i;
    buttons[i].tabIndex = 0;
    buttons[i].setAttribute("aria-selected", "true");
    const place = [model.layers[Math.floor(i / model.heads)], (i % model.heads) + 1];
    const [ratio, low, high, n] = [change.ratio, change.low, change.high, change.n].map((part) => floats(part)[i]);
    const seen = model.received[i] !== null && change.received[i] !== null;
    const own = address("head", model.name, tools.elements.condition.value, ...place);
    at("head-title").textContent = `${model.name}, ${buttons[i].getAttribute("aria-label")}`;
    at("head-text").replaceChildren(`λ ${ratio.toFixed(3)}, 95 % interval ${low.toFixed(3)} to ${high.toFixed(3)} over n = ${n} problems. ${seen ? `The curves are of one: ${model.problem}. ` : ""}`, element("a", { href: own, textContent: "Link to this head" }));
    at("no-texts").hidden = model.texts;
    if (link) history.replaceState(null, "", own);
    at("unseen").hidden = seen;
    at("curves").hidden = !seen;
    if (!seen) return;
    const rows = tokens(model, change, i);
    at("prompt").replaceChildren(...coloured(rows, "with", brightest(rows, ["with"])));
    curve(rows.slice(1, -1), tell);
  }
  function tell(row, event) {
    tip.hidden = !row;
    document.querySelector("#prompt .marked")?.classList.remove("marked");
    if (!row) return;
    at("prompt").children[row.position].classList.add("marked");
    const told = SERIES.map((name) => `${name}: ${Number.isFinite(row[name]) ? row[name].toPrecision(3) : "not there"}`);
    tip.textContent = [`token: ${row.text}`, `part: ${row.part}`, `position: ${row.position}`, ...told].join("\n");
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  }
  map.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -model.heads, ArrowDown: model.heads }[event.key];
    if (!step || !buttons[chosen + step]) return;
    event.preventDefault();
    choose(chosen + step, true);
    buttons[chosen].focus();
  });
  tools.addEventListener("change", (event) => { if (event.target.name === "model") pick(event.target.value); draw(); });
  addEventListener("resize", () => choose(chosen));
  on("head", ([name, condition, layer, head]) => {
    const wanted = data.heads.findIndex((one) => coded(one.name) === name);
    if (wanted < 0) return;
    pick(wanted);
    tools.elements.condition.value = Object.keys(model.changes).find((key) => coded(key) === condition) ?? tools.elements.condition.value;
    chosen = Math.max(0, model.layers.indexOf(Number(layer)) * model.heads + Number(head) - 1) || 0;
    draw();
    at("heads").scrollIntoView();
  });
  pick(Math.max(data.heads.findIndex((one) => one.received.some((head) => head !== null)), 0));
  draw();
}

if (at("head-tools")) {
  steps();
  heads();
}
