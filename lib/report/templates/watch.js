"use strict";
// One prompt under more and more of a filler, head by head (section 2).
// A byte is a place on a logarithmic scale, as lib/report/prompt.py says.
const OCTAVES = 16;
const numbersOf = (base64) => Array.from(atob(base64), (character) => {
  const byte = character.charCodeAt(0);
  return byte ? 2 ** (((byte - 1) / 254) * OCTAVES - OCTAVES) : NaN;
});
const VIEWS = [["with", "with it"], ["without", "without"], ["ratio", "ratio"]];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

const watch = { state: null, set: () => {} };

function watching() {
  const tools = at("watch-tools");
  if (!tools || !data.prompts.length) return;
  const slider = tools.elements.count, names = data.prompts.map((prompt) => prompt.model);
  const median = (prompt, filler, step) => {
    const own = prompt.fillers[filler].lambda[step - 1], order = own.map((_, i) => i).sort((a, b) => own[a] - own[b]);
    return order[Math.floor((order.length - 1) / 2)];
  };

  // Rows of tokens: text, part, and what each receives without and with the filler.
  function rows({ prompt, filler, step, head }) {
    const n = prompt.tokens.length, before = numbersOf(prompt.plain).slice(head * n, (head + 1) * n);
    if (!step) return prompt.tokens.map((text, i) => ({ text, part: prompt.parts[i], without: before[i], with: before[i] }));
    const own = prompt.fillers[filler], inserted = own.inserted[step - 1], total = n + inserted.length;
    const after = numbersOf(own.received[step - 1]).slice(head * total, (head + 1) * total);
    return after.map((received, i) => {
      if (i >= prompt.place && i < prompt.place + inserted.length) return { text: inserted[i - prompt.place], part: "inserted", without: NaN, with: received };
      const old = i < prompt.place ? i : i - inserted.length;
      return { text: prompt.tokens[old], part: prompt.parts[old], without: before[old], with: received };
    });
  }

  function strip(shown, view) {
    const inner = shown.slice(1).flatMap((row) => [row.without, row.with]).filter(Number.isFinite).sort((a, b) => b - a), most = inner[2] || 1;
    at("prompt").replaceChildren(...shown.filter((row) => view !== "without" || row.part !== "inserted").map((row) => {
      const value = view === "ratio" ? row.with / row.without : row[view], known = Number.isFinite(value);
      const token = element("span", { textContent: row.text, className: row.part, title: known ? `${row.part}: ${view === "ratio" ? `${value.toFixed(2)} times as much as without` : `receives ${value.toPrecision(2)}`}` : row.part });
      const share = view === "ratio" ? Math.min(Math.abs(Math.log2(value)) / 2, 1) : Math.sqrt(Math.min(value / most, 1));
      if (known && view === "ratio") token.classList.add(value < 1 ? "less" : "more");
      if (known) token.style.setProperty("--share", share.toFixed(2));
      return token;
    }));
  }

  function curve(shown, view) {
    const inner = shown.slice(1, -1), points = (name) => inner.map((row, i) => [i + 1, name === "ratio" ? row.with / row.without : row[name]]);
    const series = view === "ratio" ? ["ratio"] : view === "without" ? ["without"] : ["without", "with"];
    const first = inner.findIndex((row) => row.part === "inserted") + 1, count = inner.filter((row) => row.part === "inserted").length;
    const drawn = lines(at("curve"), {
      title: view === "ratio" ? "what each token receives with the text over without" : "what each token receives", xName: "token", even: view === "ratio" ? 1 : null, log: view === "ratio",
      range: view === "ratio" ? [0.25, 4] : [0, Math.max(...inner.flatMap((row) => [row.without, row.with]).filter(Number.isFinite)) * 1.05],
      lines: series.map((name) => ({ name, points: points(name).map(([x, y]) => [x, view === "ratio" ? Math.min(Math.max(y, 0.25), 4) : y]) })),
    });
    if (count && view !== "without") drawn.made.prepend(svg("rect", { class: "range", x: drawn.x(first - 0.5).toFixed(1), y: 10, width: Math.max(drawn.x(first + count - 0.5) - drawn.x(first - 0.5), 0).toFixed(1), height: drawn.bottom - 10 }));
  }

  function draw() {
    const { prompt, filler, step, head, view } = watch.state, shown = rows(watch.state), length = prompt.lengths[step];
    const lambda = step ? prompt.fillers[filler].lambda[step - 1] : prompt.fillers[filler].lambda[0].map(() => 1), middle = step ? median(prompt, filler, step) : -1;
    slider.max = prompt.lengths.length - 1;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `${length} tokens`);
    for (const [name, value] of [["model", prompt.model], ["filler", filler], ["view", view]]) tools.querySelector(`input[name=${name}][value="${CSS.escape(value)}"]`).checked = true;
    for (const input of tools.querySelectorAll("input[name=filler]")) input.disabled = !prompt.fillers[input.value];
    at("watch-length").textContent = String(length);
    at("watch-head").textContent = `head ${head + 1} of ${prompt.heads}${head === middle ? ", the median head" : ""}`;
    const kept = Math.round(100 * lambda[head]), told = step
      ? `With ${length} tokens of ${filler} the original tokens get ${kept} % of the attention that they had. The mean over this model's heads is ${Math.round(100 * mean(lambda))} %.`
      : "Nothing is inserted yet: the original tokens get all of their attention.";
    at("watch-says").textContent = told;
    at("watch-link").href = address("watch", prompt.model, filler, length, head + 1);
    strip(shown, view);
    curve(shown, view);
  }
  watch.set = (change) => {
    watch.state = { ...watch.state, ...change };
    if (!watch.state.prompt.fillers[watch.state.filler]) watch.state.filler = Object.keys(watch.state.prompt.fillers)[0];
    const { prompt, filler, step } = watch.state;
    watch.state.head = Math.min(change.head ?? (change.prompt || watch.state.head === undefined ? median(prompt, filler, Math.max(step, 1)) : watch.state.head), prompt.heads - 1);
    draw();
  };

  chips(at("watch-models"), "model", names.map((name) => [name, short(name)]), (name) => watch.set({ prompt: data.prompts[names.indexOf(name)] }));
  chips(at("watch-fillers"), "filler", Object.keys(data.prompts[0].fillers).map((name) => [name, name]), (filler) => watch.set({ filler }));
  chips(at("watch-views"), "view", VIEWS, (view) => watch.set({ view }));
  slider.addEventListener("input", () => watch.set({ step: Number(slider.value) }));
  const turn = (by) => { const { prompt, head } = watch.state; watch.set({ head: (head + by + prompt.heads) % prompt.heads }); };
  at("head-back").addEventListener("click", () => turn(-1));
  at("head-on").addEventListener("click", () => turn(1));
  on("watch", ([model, filler, length, head]) => {
    const prompt = data.prompts.find((one) => coded(one.model) === model);
    if (!prompt?.fillers[filler]) return;
    watch.set({ prompt, filler, step: Math.max(prompt.lengths.indexOf(Number(length)), 0), head: Math.max(Number(head) - 1 || 0, 0) });
    at("watch").scrollIntoView();
  });
  const prompt = data.prompts[0];
  watch.state = { prompt, filler: Object.keys(prompt.fillers)[0], step: Math.max(prompt.lengths.indexOf(55), 1), view: "with" };
  drawing(at("curve"), () => watch.set({}));
}
watching();
