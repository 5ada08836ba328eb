// Elements and figures. Whatever comes from queries and data becomes a text node, and nothing else.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A table whose cells are renewed in place, so that a click or a selection outlives a tick. A column: {title, cls, cell}
// where `cell` gives a text, or {text, cls, title, href}.
export function table(columns, { link, label } = {}) {
  const head = el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { class: c.cls, title: c.hint }, c.title))));
  const body = el("tbody");
  const node = el("table", { "aria-label": label }, head, body);
  const update = (rows) => {
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((row, at) => {
      let line = body.rows[at];
      if (!line) {
        line = body.insertRow();
        columns.forEach((c) => line.append(el("td", { class: c.cls })));
        if (link) {
          line.className = "link";
          line.addEventListener("click", () => { location.hash = link(line.of); });
        }
      }
      line.of = row;
      columns.forEach((c, i) => fillCell(line.cells[i], c, c.cell(row)));
    });
  };
  return { node, update };
}

function fillCell(cell, column, value) {
  const one = value !== null && typeof value === "object" ? value : { text: value };
  const cls = [column.cls, one.cls].filter(Boolean).join(" ");
  if (cell.className !== cls) cell.className = cls;
  if (one.title !== undefined) cell.title = one.title;
  if (one.href) {
    let anchor = cell.firstElementChild;
    if (!anchor) cell.replaceChildren((anchor = el("a")));
    if (anchor.getAttribute("href") !== one.href) anchor.setAttribute("href", one.href);
    setText(anchor, one.text);
  } else setText(cell, one.text ?? "");
}

export function empty(...lines) {
  return el("div", { class: "empty" }, ...lines.map((line) => el("p", {}, line)));
}

export const count = (n) => (n == null ? "" : Math.round(n).toLocaleString("en-US"));

export function rate(n) {
  if (n == null) return "";
  return n >= 10 || n === 0 ? count(n) : n.toFixed(1);
}

export function bytes(n) {
  for (const [unit, least] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= least) return `${(n / least).toFixed(1)} ${unit}`;
  return `${n ?? 0} B`;
}

export function span(seconds) {
  if (seconds == null) return "";
  const s = Math.abs(seconds);
  const sign = seconds < 0 ? "-" : "";
  if (s === 0) return "0 s";
  if (s < 1) return `${sign}${s.toFixed(1)} s`;
  if (s < 120) return `${sign}${Math.round(s)} s`;
  if (s < 7200) return `${sign}${Math.round(s / 60)} min`;
  if (s < 172800) return `${sign}${Math.round(s / 3600)} h`;
  return `${sign}${count(s / 86400)} days`;
}

// How far behind the clock; events of tests and of simulations may be ahead of it.
export function behind(seconds) {
  return seconds == null || seconds > -1 ? span(seconds) : `${span(-seconds)} ahead`;
}

// As much of a text as there is room for.
const measure = document.createElement("canvas").getContext("2d");
export function fit(text, width, weight = 400) {
  measure.font = `${weight} 12px system-ui, sans-serif`;
  if (measure.measureText(text).width <= width) return text;
  const letters = Array.from(text).slice(0, 200);
  while (letters.length && measure.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

// An instant to the second; of today without its date.
export function instant(iso) {
  const [date, time] = (iso ?? "").slice(0, 19).split("T");
  return !time ? "" : date === new Date().toISOString().slice(0, 10) ? time : `${date} ${time}`;
}

const STATES = { running: "▶ running", finished: "✓ finished", stopped: "■ stopped", failed: "✕ failed" };
export const state = (name) => ({ text: STATES[name] ?? name ?? "", cls: `state ${name}` });

// What time waits for, and how far it is behind the others; or, of an input alone, how long nothing has come of it.
export function held(query) {
  const one = query.state === "running" ? query.held_back_by : null;
  if (one?.seconds >= 1) return `${one.input}, ${span(one.seconds)}`;
  return one?.silent_seconds >= 10 ? `${one.input}, silent for ${span(one.silent_seconds)}` : "";
}
