"use strict";
// The pictures of all sections but 2 and 7.
// A box per panel: all of them stand before the first is drawn, as each takes room from the others.
function panelsIn(where, panels, options = {}) {
  const boxes = panels.filter((panel) => panel.groups.length).map((panel) => {
    const box = element("div", { className: "chart" });
    where.append(element("div", {}, element("p", { className: "title", textContent: panel.title }), box));
    return [panel, box];
  });
  for (const [panel, box] of boxes) drawing(box, () => forest(box, panel, options));
}

// 1: a line per measure.
panelsIn(at("opening"), data.opening);

// 3: every head of the first layer, in five columns.
const COLUMNS = { mless: "slashes", mful: "he", random: "a sentence", untrained: "untrained, slashes", even: "spread evenly" };
const FILLER_OF = { mless: "slashes", mful: "he", random: "sentence" };
function lightHead(dot, made) {
  document.querySelector("#columns .lit")?.classList.remove("lit");
  made.classList.add("lit");
  at("columns-says").textContent = `${dot.told}.`;
  const prompt = data.prompts.find((one) => one.model === dot.model);
  if (!prompt || !FILLER_OF[dot.column] || dot.head >= prompt.heads) return;
  watch.set({ prompt, filler: FILLER_OF[dot.column], step: Math.max(prompt.lengths.indexOf(55), 1), head: dot.head });
}
function headColumns() {
  const groups = Object.entries(COLUMNS).map(([column, name]) => [name, data.heads.flatMap((model) => (model.columns[column] ?? []).map(([y, low, high], head) => ({
    model: model.name, column, head, y, told: `${model.name}, head ${head + 1}, ${name}: λ ${y.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`,
  })))]).filter(([, dots]) => dots.length);
  if (groups.length) columns(at("columns"), "λ of every head of the first layer", groups, lightHead);
}
drawing(at("columns"), headColumns);

// 4: by layer, a small picture per model.
function byLayer() {
  const all = data.heads.flatMap((model) => Object.values(model.layers).flat()), ends = all.flatMap(([, , low, high]) => [low, high]).filter(Number.isFinite);
  if (!ends.length) return;
  const range = [Math.min(...ends, 0.95), Math.max(...ends, 1.05)];
  at("by-layer").replaceChildren(...data.heads.map((model) => element("div", {}, element("p", { className: "title", textContent: short(model.name) }), element("div", { className: "chart" }))));
  data.heads.forEach((model, i) => lines(at("by-layer").children[i].lastChild, {
    title: `λ by layer of ${model.name}`, xName: "layer", even: 1, range, height: 170,
    lines: Object.entries(model.layers).map(([name, points]) => ({ name, points })),
  }));
}
drawing(at("by-layer"), byLayer);

// 5: what is won, in points and nats; a row opens the problems behind it.
const forestBoxes = data.forests.filter((panel) => panel.groups.length).map((panel) => {
  const box = element("div", { className: "chart" });
  at("forests").append(element("p", { className: "title", textContent: panel.title }), box);
  return [panel, box];
});
function drawForests() {
  const whole = at("zoom").getAttribute("aria-pressed") === "true";
  for (const [panel, box] of forestBoxes) {
    const groups = panel.groups.filter((group) => whole || !group.title.includes("for scale"));
    forest(box, { ...panel, groups }, { choose: (row) => data.clouds[row.id] && (() => cloud(panel, row)) });
  }
}
function cloud(panel, row) {
  const values = data.clouds[row.id], box = at("cloud"), width = box.clientWidth || 600, n = values.length;
  const centre = mean(values), spread = Math.sqrt(mean(values.map((value) => (value - centre) ** 2))), ends = [Math.min(values[0], 0), Math.max(values[n - 1], 0)];
  const x = scale(ends[0] - 0.5, ends[1] + 0.5, 10, width - 10, width > 500 ? 9 : 5), size = 5, stacks = new Map();
  const placed = values.map((value) => {
    const bin = Math.round(x(value) / size), level = stacks.get(bin) ?? 0;
    stacks.set(bin, level + 1);
    return [bin * size, level, value];
  });
  const most = Math.max(...stacks.values()), step = Math.min(size, 150 / most), bottom = Math.max(most * step, 20) + 14;
  const dots = placed.map(([place, level, value]) => svg("circle", { class: value > 0 ? "gain" : value < 0 ? "loss" : "same", cx: place.toFixed(1), cy: (bottom - 3 - level * step).toFixed(1), r: 2.1 }));
  const group = panel.groups.find((one) => one.rows.includes(row)), up = values.filter((value) => value > 0).length, down = values.filter((value) => value < 0).length;
  box.replaceChildren(element("p", { className: "title", textContent: `${group.title}: ${short(row.model)}, problem by problem` }),
    svg("svg", { viewBox: `0 0 ${width} ${bottom + 24}`, width, height: bottom + 24, role: "img", "aria-label": `${n} problems from ${values[0]} to ${values[n - 1]}` },
      line(x(0), 2, x(0), bottom, "even"), line(x(centre), 2, x(centre), bottom, "mean"), ...dots, line(4, bottom, width - 4, bottom, "base"), ...x.ticks.map((tick) => words(x(tick), bottom + 18, signed(tick)))),
    element("p", { className: "source", textContent: `A dot is a problem: ${up} gain, ${down} lose. The standard deviation is ${spread.toPrecision(2)}, the mean ${signed(+centre.toPrecision(2))} (the thick line).` }));
}
at("zoom").addEventListener("click", () => {
  at("zoom").setAttribute("aria-pressed", String(at("zoom").getAttribute("aria-pressed") !== "true"));
  drawForests();
});
at("zoom").hidden = !data.forests.some((panel) => panel.groups.some((group) => group.title.includes("for scale")));
drawing(at("forests"), drawForests);

// 6: checks, and the same answers by several graders.
panelsIn(at("checks"), data.checks);
const byModel = (rows) => [...new Set(rows.map((row) => row.model))].map((model) => ({ title: short(model), rows: rows.filter((row) => row.model === model) }));
panelsIn(at("graders"), [
  { title: "The same answers by grader: right without slashes, %", even: 0, plain: true, groups: byModel(data.graders.right) },
  { title: "What the slashes change under each grader, in points", even: 0, groups: byModel(data.graders.changes) },
]);

// 8: settings, one picture after another; the first is drawn from the prompt of section 2.
const courses = [...(data.prompts.length ? [{ title: "How many: attention on the original tokens of the prompt in section 2" }] : []), ...data.courses];
let course = 0;
function drawCourse() {
  const shown = courses[course], box = at("course");
  for (const id of ["course-back", "course-on"]) at(id).disabled = courses.length < 2;
  if (!shown) return at("course-title").replaceChildren("Nothing of this profile yet.");
  at("course-title").textContent = `${course + 1} of ${courses.length}. ${shown.title}`;
  if (!shown.rows) return drawLengths(box);
  const models = [...new Set(shown.rows.map((row) => row.model))];
  forest(box, { title: shown.title, even: 0, side: 0, groups: models.map((model) => ({ title: short(model), rows: shown.rows.filter((row) => row.model === model) })) });
}
const LENGTH_LINES = [["mless", "slashes", "slashes"], ["mful", "he", "“he”"], ["random", "sentence", "a sentence"]];
function drawLengths(box) {
  const legend = LENGTH_LINES.flatMap(([name, , label]) => [element("b", { className: name, textContent: label }), ", "]).slice(0, -1);
  box.replaceChildren(
    element("div", { className: "multiples" }, ...data.prompts.map((prompt) => element("div", {}, element("p", { className: "title", textContent: short(prompt.model) }), element("div", { className: "chart" })))),
    element("p", { className: "source" }, "λ, the mean over heads of the first layer: ", ...legend, "."),
  );
  data.prompts.forEach((prompt, i) => lines(box.firstChild.children[i].lastChild, {
    title: `λ by number of inserted tokens, ${prompt.model}`, xName: "inserted tokens", even: 1, height: 170, range: [0.4, 1.1],
    lines: LENGTH_LINES.map(([name, filler]) => ({ name, points: [[0, 1], ...prompt.lengths.slice(1).map((length, step) => [length, mean(prompt.fillers[filler].lambda[step])])] })),
  }));
}
function turnCourse(by) {
  course = (course + by + courses.length) % courses.length;
  drawCourse();
}
at("course-back").addEventListener("click", () => turnCourse(-1));
at("course-on").addEventListener("click", () => turnCourse(1));
drawing(at("course"), drawCourse);

// 10: claims by a word.
at("claim-tools").elements.search.addEventListener("input", (event) => {
  const sought = event.target.value.toLowerCase(), claims = [...document.querySelectorAll(".claim")];
  for (const claim of claims) claim.hidden = !claim.textContent.toLowerCase().includes(sought);
  at("claim-tools").querySelector("output").textContent = sought ? `${claims.filter((claim) => !claim.hidden).length} of ${claims.length}` : "";
});
