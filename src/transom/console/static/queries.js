// All queries, one a line: how they are doing, and what they wait for.

import { behind, count, el, empty, held, instant, rate, setText, span, state, table } from "/dom.js";

const COLUMNS = [
  { title: "Query", cls: "plain called", cell: (q) => ({ text: q.name, title: q.name, href: place(q) }) },
  { title: "State", cell: (q) => ({ ...state(q.state), title: q.error ?? "" }) },
  { title: "Rows/s in", cls: "n", cell: (q) => rate(q.rows_per_second) },
  { title: "Rows/s out", cls: "n", cell: (q) => rate(q.rows_out_per_second) },
  { title: "Up to", cls: "plain", hint: "Everything before this instant is final", cell: (q) => ({ text: instant(q.progress) || (q.state === "finished" ? "its end" : ""), title: q.progress ?? "" }) },
  { title: "Behind", cls: "n", hint: "How far that is behind the clock", cell: (q) => (q.state === "running" ? behind(q.lag_seconds) : "") },
  { title: "Held back by", cls: "plain", cell: (q) => ({ text: held(q), cls: waits(q) > 60 ? "warn" : "", title: q.held_back_by?.silent_seconds >= 10 ? `No row of it has come for ${span(q.held_back_by.silent_seconds)}` : "" }) },
  { title: "Late", cls: "n", cell: (q) => ({ text: count(q.late), cls: q.late ? "warn" : "faint" }) },
  { title: "Rejected", cls: "n", cell: (q) => ({ text: count(q.rejected), cls: q.rejected ? "bad" : "faint" }) },
  { title: "Shed", cls: "n", hint: "Rows left out because there was too much to do", cell: (q) => ({ text: count(q.shed), cls: q.shed ? "bad" : "faint" }) },
];

const waits = (query) => Math.max(query.held_back_by?.seconds ?? 0, query.held_back_by?.silent_seconds ?? 0);
const place = (query) => `#/query/${encodeURIComponent(query.name)}/plan`;

export function queriesView(context) {
  const running = tile("queries running");
  const rows = tile("rows a second, in");
  const out = tile("rows a second, out");
  const worst = tile("most held back by");
  const list = table(COLUMNS, { link: place, label: "Queries" });
  const body = el("div", { class: "card scroll" }, list.node);
  const none = el("div", { class: "card" }, context.about.editor
    ? empty("No query is running.", "Start one in the program of this session (session.start(..)), or write one in the editor.")
    : empty("No query is here.", "The file has no query to run: write SELECT or INSERT INTO into it."));
  const node = el("div", {}, el("div", { class: "tiles" }, running.node, rows.node, out.node, worst.node), body, none);
  const update = ({ queries }) => {
    const active = queries.filter((q) => q.state === "running");
    setText(running.value, `${active.length} of ${queries.length}`);
    setText(rows.value, rate(total(active, "rows_per_second")));
    setText(out.value, rate(total(active, "rows_out_per_second")));
    const slow = active.filter(held).sort((a, b) => waits(b) - waits(a))[0];
    setText(worst.value, slow ? held(slow) : "nothing");
    body.hidden = !queries.length;
    none.hidden = queries.length > 0;
    list.update(queries);
  };
  body.hidden = none.hidden = true;
  return { node, update };
}

const total = (queries, name) => queries.reduce((sum, q) => sum + (q[name] ?? 0), 0);

export function tile(title) {
  const value = el("b", {}, "–");
  return { value, node: el("div", { class: "tile" }, value, el("span", {}, title)) };
}
