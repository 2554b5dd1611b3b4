"use strict";
// One prompt with more and more of a filler inserted: the attention that each token
// receives from later ones. A byte is a level on a logarithmic scale, which
// lib/measurement/animated_prompt.py describes.
const OCTAVES = 16;
const LEVELS = 254;
const PAPERS_LENGTH = 55;
const HEAD_NAMES = { least: ", which fades most", median: ", the median one" };
const form = document.getElementById("tools");
const { model, filler, count, number, head } = form.elements;
let prompt;

// The page has the measurements of a model as JSON, compressed by gzip, in base64.
async function unpack(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const packed = new Blob([bytes]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function shareOf(character) {
  const byte = character.charCodeAt(0);
  if (byte === 0) {
    return 0; // not known, as of the last token
  }
  const octaves = ((byte - 1) / LEVELS - 1) * OCTAVES;
  return 2 ** octaves;
}

// The attention that each token receives in the chosen head; tokens: their number.
function received(base64, tokens, chosen) {
  const first = chosen * tokens;
  const ofHead = atob(base64).slice(first, first + tokens);
  return Array.from(ofHead, shareOf);
}

// The heads, from the one whose original tokens keep least of their attention.
function fromLeastKept() {
  const step = prompt.lengths.indexOf(PAPERS_LENGTH);
  const kept = prompt.fillers[filler.value].lambda[step - 1];
  const heads = Array.from(kept.keys());
  return heads.sort((one, other) => kept[one] - kept[other]);
}

function chosenHead() {
  const heads = fromLeastKept();
  if (head.value === "least") {
    return heads[0];
  }
  if (head.value === "median") {
    const middle = Math.floor((heads.length - 1) / 2);
    return heads[middle];
  }
  return Number(head.value);
}

// The tokens with the attention that each receives now, and that it received before
// anything was inserted.
function tokensOf(step, chosen) {
  const before = received(prompt.plain, prompt.tokens.length, chosen);
  const tokens = prompt.tokens.map((text, i) => {
    return { text, before: before[i], now: before[i] };
  });
  if (step === 0) {
    return tokens;
  }
  const chosenFiller = prompt.fillers[filler.value];
  const inserted = chosenFiller.inserted[step - 1].map((text) => {
    return { text, before: 0, inserted: true };
  });
  tokens.splice(prompt.place, 0, ...inserted);
  const now = received(chosenFiller.received[step - 1], tokens.length, chosen);
  tokens.forEach((token, i) => {
    token.now = now[i];
  });
  return tokens;
}

// A token under its bar, with the line that the bar reached before; room: the attention
// at which a bar reaches the top.
function spanOf(token, room) {
  const span = document.createElement("span");
  span.textContent = token.text;
  span.classList.toggle("inserted", Boolean(token.inserted));
  span.classList.toggle("torn", token.now > room);
  span.style.setProperty("--share", Math.min(token.now / room, 1));
  span.style.setProperty("--line", Math.min(token.before / room, 1));
  return span;
}

function sentence(step, chosen) {
  const name = `Head ${chosen + 1} of ${prompt.heads}${HEAD_NAMES[head.value] ?? ""}`;
  if (step === 0) {
    return `${name}: nothing is inserted yet, and every bar reaches its line.`;
  }
  const ratios = prompt.fillers[filler.value].lambda[step - 1];
  const sum = ratios.reduce((one, other) => one + other);
  const kept = Math.round(100 * ratios[chosen]);
  const mean = Math.round((100 * sum) / ratios.length);
  const inserted = `${prompt.lengths[step]} tokens of ${filler.value}`;
  return `${name}: with ${inserted} inserted, the other tokens keep ${kept} % of the attention that they had. The mean over this model's heads is ${mean} %.`;
}

function draw() {
  const chosen = chosenHead();
  const step = Number(count.value);
  const tokens = tokensOf(step, chosen);
  // In some models the first token receives more than all others together.
  const others = tokens.slice(1).map((token) => token.before);
  const room = Math.max(...others);
  const spans = tokens.map((token) => spanOf(token, room));
  document.getElementById("prompt").replaceChildren(...spans);
  document.getElementById("says").textContent = sentence(step, chosen);
  number.value = prompt.lengths[step];
}

// Another model has other heads, and perhaps fewer fillers.
async function choose() {
  const id = model.value;
  const unpacked = await unpack(id);
  if (id !== model.value) {
    return; // another one was chosen meanwhile
  }
  prompt = unpacked;
  count.max = prompt.lengths.length - 1;
  listHeads();
  const names = Object.keys(prompt.fillers);
  for (const input of filler) {
    input.disabled = !names.includes(input.value);
  }
  if (!names.includes(filler.value)) {
    filler.value = names[0];
  }
  draw();
}

function listHeads() {
  const before = head.value;
  head.length = Object.keys(HEAD_NAMES).length;
  for (let i = 0; i < prompt.heads; i += 1) {
    const option = new Option(`${i + 1} of ${prompt.heads}`, i);
    head.add(option);
  }
  head.value = before;
  if (head.selectedIndex < 0) {
    head.selectedIndex = 0;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
});
form.addEventListener("input", (event) => {
  if (event.target.name === "model") {
    choose();
  } else {
    draw();
  }
});
choose().then(() => {
  count.value = prompt.lengths.indexOf(PAPERS_LENGTH);
  draw();
});
