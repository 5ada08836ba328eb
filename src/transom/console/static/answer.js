// The answer while it comes: lifetimes as bars over time, the relation as it is now, and what was written last.

import { bytes, count, el, empty, fit, setText, svg, table } from "/dom.js";

const LINES = 24, ROW = 22, TOP = 26;
const WHEN = { stream: "rows of a stream, each at its instant", latest: "by the clock, since this page looks", changes: "", lifetimes: "", net: "" };

export function answerView(context, name) {
  const bars = el("div", { class: "scroll" }, empty("The answer is on its way."));
  const note = el("p", { class: "faint" });
  const kept = el("p", { class: "faint", hidden: true });
  const missing = el("p", { class: "warn", hidden: true });
  const now = el("div", { class: "scroll tall" });
  const nowTitle = el("h2", {}, "Latest");
  const changes = el("div", { class: "scroll tall" });
  const nowCard = el("div", { class: "card" }, nowTitle, now);
  const changesCard = el("div", { class: "card" }, el("h2", {}, "Newest first"), changes);
  const node = el("div", {},
    el("div", { class: "card" }, el("h2", {}, "Lifetimes"), el("div", {}, legend()), missing, bars, note, kept),
    el("div", { class: "halves" }, nowCard, changesCard));
  let tables = null;

  function update({ answer, detail }) {
    const past = detail?.history;
    kept.hidden = !past;
    if (past) setText(kept, `For questions AS OF an instant: ${count(past.rows)} rows in ${bytes(past.bytes)} are kept${past.from ? `, from ${past.from} on` : ""}.`);
    const partial = partialOf(detail);
    missing.hidden = !partial.length;
    setText(missing, partial.length ? `Partial at ${partial.slice(0, 4).map(said).join(", ")}${partial.length > 4 ? ` and ${partial.length - 4} more` : ""}: rows are still missing there. All else is complete.` : "");
    if (answer === undefined) return;
    if (answer === null) {
      bars.replaceChildren(empty("The rows of this answer are not kept here.", "Read them where its sink has written them."));
      nowCard.hidden = changesCard.hidden = true;
      return;
    }
    if (answer.error) {
      bars.replaceChildren(empty("The rows of this answer cannot be shown.", answer.error));
      return;
    }
    if (answer.by_tasks && !answer.rows.length) {
      bars.replaceChildren(empty("The tasks of Spark write this answer themselves, so it does not come by here.", "Read it where the sink writes it."));
      nowCard.hidden = changesCard.hidden = true;
      return;
    }
    const passed = `${count(answer.passed)} ${answer.form === "latest" ? "snapshots" : "rows"} went by`;
    setText(note, [WHEN[answer.form], answer.by_tasks ? "the tasks of Spark write this answer themselves: these rows were read back from the newest file" : passed,
      answer.partial ? "the older ones are not kept, so rows may be missing here" : ""].filter(Boolean).join("; "));
    if (answer.form === "net") bars.replaceChildren(empty("Net changes have no instants, and so no lifetimes to draw."));
    else if (!answer.bars.length) bars.replaceChildren(empty("Nothing has come yet. Rows are shown as the query writes them."));
    else bars.replaceChildren(drawn(answer.bars, bars.clientWidth || 900, Date.parse(detail?.progress ?? "") * 1000, partial));
    tables ??= { now: table(columns(answer.table_columns), { label: "Latest" }), changes: table(columns(answer.columns), { label: "Changes" }) };
    if (!now.firstChild) now.append(tables.now.node);
    if (!changes.firstChild) changes.append(tables.changes.node);
    nowCard.hidden = answer.table === null;
    changesCard.hidden = answer.form === "latest";
    nowCard.style.gridColumn = changesCard.hidden ? "1 / -1" : "";
    changesCard.style.gridColumn = nowCard.hidden ? "1 / -1" : "";
    setText(nowTitle, `Latest: ${count(answer.table_rows)} ${answer.table_rows === 1 ? "row" : "rows"}${answer.partial ? " known" : ""}${answer.table && answer.table.length < answer.table_rows ? `, ${answer.table.length} shown` : ""}`);
    if (answer.table) tables.now.update(answer.table);
    tables.changes.update(answer.rows);
  }
  return { node, update };
}

// From when to when rows are missing: of slides that are put off, and of joins that had to shed. In microseconds.
function partialOf(detail) {
  const at = (iso) => Date.parse(iso) * 1000;
  const slides = (detail?.operators ?? []).flatMap((one) => one.slides?.waiting ?? []).map((iso) => [at(iso), at(iso)]);
  const shed = detail?.overload?.partial;
  return shed?.[0] ? [...slides, [at(shed[0]), shed[1] ? at(shed[1]) : null]] : slides;
}

function said([from, to]) {
  const text = (micros) => new Date(micros / 1000).toISOString().slice(11, 19);
  return to === from ? text(from) : `${text(from)} to ${to === null ? "now" : text(to)}`;
}

const columns = (names) => names.map((title, at) => ({ title, cls: "mono", cell: (row) => (row[at] === null ? { text: "NULL", cls: "faint" } : row[at]) }));

function legend() {
  const key = (text, ...marks) => el("span", { class: "key" }, svg("svg", { width: 34, height: 14 }, ...marks), text);
  return el("div", { class: "faint" },
    key("alive from … until", svg("line", { class: "bar", x1: 6, x2: 28, y1: 7, y2: 7 }), svg("circle", { class: "begin", cx: 6, cy: 7, r: 4.5 }), svg("circle", { class: "end", cx: 28, cy: 7, r: 4 })),
    key("its end is not known yet", svg("line", { class: "bar open", x1: 6, x2: 28, y1: 7, y2: 7 }), svg("circle", { class: "open-begin", cx: 6, cy: 7, r: 4.5 }), svg("path", { class: "more", d: "M24 3l5 4l-5 4" })),
    key("partial: rows are missing", svg("rect", { class: "partial", x: 8, width: 18, y: 1, height: 12 })),
    key("complete up to here", svg("line", { class: "now", x1: 17, x2: 17, y1: 0, y2: 14 })));
}

// The newest lines: a row that comes again is on the line that it had.
function drawn(bars, width, frontier, partial) {
  const lines = new Map();
  for (const bar of [...bars].reverse()) {
    if (!lines.has(bar[0])) {
      if (lines.size >= LINES) continue;
      lines.set(bar[0], []);
    }
    lines.get(bar[0]).push(bar);
  }
  const chosen = [...lines.values()].flat();
  const known = chosen.flatMap(([, begin, end]) => [begin, end]).filter((at) => at !== null);
  const first = Math.min(...known);
  let last = Math.max(...known);
  if (Number.isFinite(frontier) && frontier > last && frontier < last + 3 * (last - first) + 6e7) last = frontier;
  const reach = Math.max(last - first, 1);
  const left = width < 600 ? 100 : 190;
  const right = Math.max(width - 20, left + 200);
  const x = (at) => left + ((at - first) / reach) * (right - left - 26);
  const height = TOP + lines.size * ROW + 8;
  const picture = svg("svg", { width: right, height, role: "img", "aria-label": "Lifetimes" });
  const parts = Math.min(4, Math.max(1, Math.floor((right - left) / 150)));
  for (let i = 0; i <= parts; i += 1) {
    const at = first + (reach * i) / parts;
    picture.append(svg("line", { class: "axis", x1: x(at), x2: x(at), y1: TOP - 6, y2: height }),
      svg("text", { class: "faint", x: x(at), y: 13, "text-anchor": i === 0 ? "start" : i === parts ? "end" : "middle" }, clock(at, reach)));
  }
  const date = new Date(first / 1000).toISOString().slice(0, 10);
  if (reach < 864e8 && date !== new Date().toISOString().slice(0, 10)) picture.append(svg("text", { class: "faint", x: left - 12, y: 13, "text-anchor": "end" }, date));
  if (Number.isFinite(frontier) && frontier >= first && frontier <= last)
    picture.append(svg("line", { class: "now", x1: x(frontier), x2: x(frontier), y1: TOP - 6, y2: height }));
  for (const [from, to] of partial) {
    if (from > last || (to ?? last) < first) continue;
    const begin = x(Math.max(from, first));
    picture.append(svg("rect", { class: "partial", x: begin, width: Math.max(x(Math.min(to ?? last, last)) - begin, 4), y: TOP - 6, height: height - TOP + 6 }));
  }
  let y = TOP + ROW / 2;
  for (const [label, line] of lines) {
    picture.append(svg("text", { x: left - 12, y: y + 4, "text-anchor": "end" }, svg("title", {}, label), fit(label, left - 16)));
    for (const [, begin, end] of line) picture.append(...marks(begin, end, x, y, left, right));
    y += ROW;
  }
  return picture;
}

function marks(begin, end, x, y, left, right) {
  const open = end === null;
  const from = begin === null ? left - 6 : x(begin);
  const to = open ? right - 12 : x(end);
  const found = [];
  if (to > from) found.push(svg("line", { class: open ? "bar open" : "bar", x1: from, x2: to, y1: y, y2: y }));
  if (begin !== null) found.push(svg("circle", { class: open ? "open-begin" : "begin", cx: from, cy: y, r: 4.5 }));
  if (open) found.push(svg("path", { class: "more", d: `M${to - 5} ${y - 4}l5 4l-5 4` }));
  else if (end !== begin) found.push(svg("circle", { class: "end", cx: to, cy: y, r: 4 }));
  return found;
}

function clock(micros, reach) {
  const text = new Date(micros / 1000).toISOString();
  if (reach < 1e7) return text.slice(11, 23);
  return reach < 864e8 ? text.slice(11, 19) : text.slice(0, 16).replace("T", " ");
}
