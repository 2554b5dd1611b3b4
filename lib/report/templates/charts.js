"use strict";
// Three kinds of drawings: rows of intervals on one axis, columns of dots, and lines.
const drawings = [];
let drawnWidth = innerWidth;
function drawing(box, draw) {
  if (!box) return;
  drawings.push(draw);
  draw();
}
addEventListener("resize", () => {
  if (innerWidth !== drawnWidth) drawings.forEach((draw) => draw());
  drawnWidth = innerWidth;
});

// A scale from numbers to places, with at most so many round ticks.
function scale(low, high, from, to, most = 6) {
  const place = (value) => from + ((to - from) * (value - low)) / (high - low);
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => (high - low) / one <= most);
  place.ticks = Array.from({ length: Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1 }, (_, i) => +((Math.ceil(low / step - 1e-9) + i) * step).toPrecision(10));
  return place;
}
const signed = (value) => (value > 0 ? `+${value}` : String(value).replace("-", "−"));
const words = (x, y, text, name = "") => svg("text", { x: x.toFixed(1), y: y.toFixed(1), class: name }, text);
const line = (x1, y1, x2, y2, name) => svg("line", { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: name });

// Rows of intervals. panel: title, even, side, rings, groups of { title, rows }; a row with `cloud` can be chosen.
function forest(box, panel, { values = true, choose = null, name = (row) => row.label ?? short(row.model), even = panel.even } = {}) {
  const all = panel.groups.flatMap((group) => group.rows), longest = Math.max(...all.map((row) => name(row).length));
  const told = (row) => `${row.text ?? row.x}${row.n ? `, n = ${row.n}` : ""}`, beside = 6.6 * Math.max(...all.map((row) => told(row).length)) + 16;
  const width = box.clientWidth || 600, wide = width >= 620, left = Math.min(7 * longest + 12, width * 0.6), right = values && wide ? width - beside : width - 10;
  const ends = all.flatMap((row) => [row.low ?? row.x, row.high ?? row.x]);
  const numbers = [...ends, even, ...(panel.rings ?? []).map((ring) => ring.x)];
  const room = 0.06 * (Math.max(...numbers) - Math.min(...numbers)) || 1, low = Math.min(...numbers) - room, high = Math.max(...numbers) + room;
  const x = scale(low, high, left, right, wide ? 7 : 4), parts = [];
  let y = 10;
  for (const group of panel.groups) {
    if (group.title) parts.push(words(0, (y += 14), group.title, "group start"));
    for (const row of group.rows) {
      y += 20;
      const shown = [words(left - 8, y + 4, name(row), "end"), mark(row.model, x(row.x), y)];
      if (row.low !== undefined && row.low !== null) shown.splice(1, 0, line(x(row.low), y, x(row.high), y, "bar"));
      if (values && wide) shown.push(words(right + 12, y + 4, told(row), "start value"));
      const made = svg("g", { class: "row" }, svg("rect", { class: "strip", x: 0, y: y - 10, width, height: 20 }), ...shown);
      const named = `${name(row)}: ${told(row)}`;
      made.addEventListener("pointermove", (event) => tell(named, event));
      made.addEventListener("pointerleave", () => tell(""));
      if (choose?.(row)) {
        made.setAttribute("tabindex", 0);
        made.setAttribute("role", "button");
        made.setAttribute("aria-label", `${group.title}, ${named}: show the problems`);
        for (const kind of ["pointerenter", "focus", "click"]) made.addEventListener(kind, () => choose(row)());
        made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(row)(); } });
      }
      parts.push(made);
    }
    y += 14;
  }
  const bottom = y + 2, shade = panel.side ? [svg("rect", { class: "range", x: panel.side > 0 ? x(even) : left, y: 4, width: panel.side > 0 ? right - x(even) : x(even) - left, height: bottom - 4 })] : [];
  const rings = (panel.rings ?? []).map((ring) => {
    const made = svg("circle", { class: "ring", cx: x(ring.x).toFixed(1), cy: bottom, r: 6 });
    made.append(svg("title", {}, `the paper, ${ring.label}: ${signed(ring.x)}`));
    return made;
  });
  box.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, width, height: bottom + 26, role: "group", "aria-label": panel.title },
    ...shade, line(x(even), 4, x(even), bottom, "even"), ...parts, line(left, bottom, right, bottom, "base"),
    ...x.ticks.map((tick) => words(x(tick), bottom + 20, even === 0 && !panel.plain ? signed(tick) : String(tick))), ...rings));
}

// Columns of dots. columns: [name, [{ model, y, told, ... }]]; a dot is walked to with the arrows and picked.
function columns(box, title, groups, pick) {
  const width = box.clientWidth || 600, height = 330, left = 34, dots = groups.flatMap(([, own]) => own), values = dots.map((dot) => dot.y);
  const y = scale(Math.min(...values, 0.9) - 0.03, Math.max(...values, 1.1) + 0.03, height - 34, 8), each = (width - left - 6) / groups.length, models = Object.keys(data.looks);
  const parts = y.ticks.flatMap((tick) => [line(left, y(tick), width, y(tick), tick === 1 ? "even" : "grid"), words(left - 6, y(tick) + 4, String(tick), "end")]);
  const shapes = groups.flatMap(([name, own], i) => {
    const names = width < 500 ? name.split(",")[0].split(" ").at(-1) : name;
    parts.push(words(left + each * (i + 0.5), height - 10, names));
    return own.map((dot) => {
      const lane = (models.indexOf(dot.model) + 0.5) / models.length, made = mark(dot.model, left + each * (i + 0.12 + 0.76 * lane), y(dot.y), "dot");
      made.setAttribute("tabindex", -1);
      made.setAttribute("role", "button");
      made.setAttribute("aria-label", dot.told);
      made.dot = dot;
      made.addEventListener("pointerenter", (event) => { tell(dot.told, event); pick(dot, made); });
      made.addEventListener("pointerleave", () => tell(""));
      made.addEventListener("focus", () => pick(dot, made));
      return made;
    });
  });
  shapes[0]?.setAttribute("tabindex", 0);
  shapes.forEach((made, i) => made.addEventListener("keydown", (event) => {
    const next = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1 }[event.key];
    if (next === undefined || !shapes[next]) return;
    event.preventDefault();
    made.setAttribute("tabindex", -1);
    shapes[next].setAttribute("tabindex", 0);
    shapes[next].focus();
  }));
  const legend = models.filter((model) => dots.some((dot) => dot.model === model)).map((model) => element("span", {}, svg("svg", { width: 16, height: 14, "aria-hidden": true }, mark(model, 8, 8)), short(model)));
  box.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": title }, ...parts, ...shapes), element("p", { className: "legend source" }, ...legend));
}

// Lines over a common axis. lines: { name, label, points: [[x, y, low, high] ...] }.
function lines(box, { title, lines: series, xName, yName = "", even = null, log = false, height = 200, range = null }) {
  const width = box.clientWidth || 600, left = 44, bottom = height - 36, by = log ? Math.log2 : (value) => value;
  const points = series.flatMap((one) => one.points), xs = points.map((point) => point[0]), ys = points.flatMap((point) => point.slice(1)).filter(Number.isFinite);
  const [low, high] = range ?? [Math.min(...ys, even ?? Infinity), Math.max(...ys, even ?? -Infinity)];
  const x = scale(Math.min(...xs), Math.max(...xs), left + 6, width - 8, width > 500 ? 10 : 5), y = scale(by(low), by(high), bottom, 10, 5);
  const path = (own, of) => own.map((point, i) => Number.isFinite(point[of]) ? `${i && Number.isFinite(own[i - 1][of]) ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(by(point[of])).toFixed(1)}` : "").join("");
  const bands = series.filter((one) => one.points[0]?.length === 4).map((one) => svg("path", { class: `band ${one.name}`, d: `${path(one.points, 2)}${path(one.points.toReversed(), 3).replace("M", "L")}Z` }));
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title },
    ...y.ticks.flatMap((tick) => [line(left, y(tick), width, y(tick), "grid"), words(left - 6, y(tick) + 4, String(log ? +(2 ** tick).toPrecision(2) : tick), "end")]),
    ...(even === null ? [] : [line(left, y(by(even)), width, y(by(even)), "even")]),
    ...x.ticks.map((tick) => words(x(tick), bottom + 15, String(tick))), words((left + width) / 2, height - 5, xName), ...(yName ? [words(left, 8, yName, "start")] : []),
    ...bands, ...series.map((one) => svg("path", { class: `line ${one.name}`, d: path(one.points, 1) })));
  box.replaceChildren(made);
  return { made, x, y: (value) => y(by(value)), bottom };
}
