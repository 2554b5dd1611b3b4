"use strict";
// The map of heads and what one of them does to a prompt. Numbers arrive as half-precision floats in base64.
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

function colour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * (place - low)));
}

// Black or white, whichever is read more easily on a colour (WCAG's relative luminance).
function ink(rgb) {
  const [red, green, blue] = rgb.map((value) => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

function heads() {
  const tools = at("head-tools"), map = at("map"), tip = at("tip");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let buttons = [], chosen = null, model = null, change = null, view = null;

  function pick(wanted) {
    model = data.heads[wanted];
    const names = Object.keys(model.changes);
    tools.elements.condition.replaceChildren(...names.map((name) => element("option", { textContent: name })));
    chosen = 0;
  }
  function draw() {
    change = model.changes[tools.elements.condition.value];
    const lambda = floats(change.ratio);
    document.querySelector(".ramp").style.background = `linear-gradient(90deg, ${RAMP.map((rgb) => `rgb(${rgb})`).join()})`;
    buttons = lambda.map((value, i) => {
      const [layer, head] = [model.layers[Math.floor(i / model.heads)], (i % model.heads) + 1];
      const button = element("button", { type: "button", tabIndex: i === chosen ? 0 : -1, textContent: value.toFixed(2) });
      const fill = colour(0.5 + Math.log2(value) / 2);  // from half to twice; 1 is the ramp's middle
      button.style.background = `rgb(${fill})`;
      button.style.color = ink(fill);
      button.className = value > 1 ? "above" : "";
      button.setAttribute("role", "gridcell");
      button.setAttribute("aria-label", `layer ${layer} head ${head}: λ ${value.toFixed(2)}`);
      button.addEventListener("click", () => choose(i));
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
  function rows(i) {
    const length = change.tokens.length, without = floats(model.received[i]), received = floats(change.received[i]), even = floats(change.even);
    const found = [];
    let original = 0;
    for (let position = 0; position < length; position++) {
      const inserted = change.parts[position] === "inserted";
      const row = { position, text: change.tokens[position], part: change.parts[position], with: received[position], even: even[position] };
      row.without = inserted ? NaN : without[original++];
      found.push(row);
    }
    return found;
  }
  function choose(i) {
    buttons[chosen].tabIndex = -1;
    buttons[chosen].setAttribute("aria-selected", "false");
    chosen = i;
    buttons[i].tabIndex = 0;
    buttons[i].setAttribute("aria-selected", "true");
    const found = rows(i);
    at("head-title").textContent = `${model.name}, ${buttons[i].getAttribute("aria-label")}`;
    const [ratio, low, high] = [change.ratio, change.low, change.high].map((part) => floats(part)[i]);
    at("head-text").textContent = `λ ${ratio.toFixed(3)}, 95 % interval ${low.toFixed(3)} to ${high.toFixed(3)} over n = ${model.n} problems. The curves are of one: ${model.problem}.`;
    prompt(found);
    curve(found.slice(1, -1));
  }
  function prompt(found) {
    const most = Math.max(...found.slice(1).map((row) => row.with).filter(Number.isFinite).sort((a, b) => a - b).slice(0, -2));
    at("prompt").replaceChildren(...found.map((row) => {
      const told = Number.isFinite(row.with) ? `receives ${row.with.toPrecision(3)}` : "no later token looks at it";
      const token = element("span", { textContent: row.text, title: `token ${row.position}, ${row.part}: ${told}`, className: row.part });
      const share = Math.min((row.with || 0) / most, 1);
      token.style.backgroundColor = `rgb(${dark.matches ? "86 180 233" : "230 159 0"} / ${(0.5 * share).toFixed(2)})`;
      return token;
    }));
  }
  async function curve(found) {
    const clean = found.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, Number.isNaN(v) ? null : v])));
    if (view) return (await view).view.data("tokens", clean).runAsync();
    const soft = getComputedStyle(document.body).getPropertyValue("--soft"), line = getComputedStyle(document.body).getPropertyValue("--line");
    const axis = { labelColor: soft, titleColor: soft, domainColor: soft, tickColor: soft, gridColor: line };
    const config = { background: "transparent", axis, legend: { labelColor: soft }, view: { stroke: null } };
    const spec = { ...data.curve, datasets: { tokens: clean } };
    view = vegaEmbed("#curve", spec, { ast: true, actions: false, renderer: "svg", defaultStyle: false, config, tooltip: tell });
  }
  function tell(handler, event, item, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = Object.entries(value).map(([name, told]) => `${name}: ${told}`).join("\n");
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  }
  map.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -model.heads, ArrowDown: model.heads }[event.key];
    if (!step || !buttons[chosen + step]) return;
    event.preventDefault();
    choose(chosen + step);
    buttons[chosen].focus();
  });
  tools.addEventListener("change", (event) => { if (event.target.name === "model") pick(event.target.value); draw(); });
  dark.addEventListener("change", () => { view = null; choose(chosen); });
  pick(0);
  draw();
}

if (at("head-tools")) heads();
