"use strict";
// What models and files say is put into the page as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Addresses within the page: #watch/MODEL/FILLER/LENGTH/HEAD, #answer/RUN/PROBLEM, #claim-ID.
const routes = {};
const coded = (text) => encodeURIComponent(String(text).replace(/\p{Surrogate}/gu, "?"));
const address = (...parts) => `#${parts.map(coded).join("/")}`;
const on = (kind, go) => { routes[kind] = go; };
function follow() {
  const [kind, ...parts] = location.hash.slice(1).split("/");
  if (parts.length) return routes[kind]?.(parts);
  // What is closed opens, when an address leads into it.
  const wanted = kind ? at(decodeURIComponent(kind)) : null;
  for (let inside = wanted; inside; inside = inside.parentElement) if (inside.tagName === "DETAILS") inside.open = true;
  wanted?.scrollIntoView();
}
addEventListener("hashchange", follow);
addEventListener("load", follow);
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());

// A small text beside the pointer.
function tell(text, event) {
  const tip = at("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const place = event.clientX === undefined ? event.target.getBoundingClientRect() : { right: event.clientX, top: event.clientY };
  tip.style.left = `${Math.max(4, Math.min(place.right + 12, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(place.top + 12, innerHeight - tip.offsetHeight - 8))}px`;
}

// Radio buttons that look like chips: the browser gives them their keys.
function chips(where, name, options, change) {
  const made = options.map(([value, text]) => {
    const input = element("input", { type: "radio", name, value });
    input.addEventListener("change", () => change(value));
    return element("label", {}, input, element("span", { textContent: text }));
  });
  where.append(...made);
}

// Models: a short name, a colour and a shape of their own, the same in every picture.
const short = (model) => model.replace(/-Instruct$/, "");
function polygon(corners, size, turn, inner = 1) {
  const steps = inner === 1 ? corners : 2 * corners;
  return Array.from({ length: steps }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / steps, radius = inner !== 1 && i % 2 ? size * inner : size;
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
  }).join("L");
}
const UP = -Math.PI / 2;
const SHAPES = {
  ">": [3, 6, 0], "<": [3, 6, Math.PI], p: [5, 5.5, UP], h: [6, 5.5, UP], 8: [8, 5.2, UP], "*": [5, 6.5, UP, 0.4], P: [4, 6.2, 0, 0.42], X: [4, 6.2, Math.PI / 4, 0.42],
};
function mark(model, x, y, name = "") {
  const [colour, shape] = data.looks[model] ?? ["#777777", "8"];
  const made = svg("path", { class: `model ${name}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, d: `M${polygon(...(SHAPES[shape] ?? SHAPES[8]))}Z` });
  made.style.setProperty("--own", colour);
  return made;
}
