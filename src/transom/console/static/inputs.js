// Where every row of every input went, how far its time has come, and the rows that were rejected.

import { behind, count, el, empty, instant, rate, setText, span, table } from "/dom.js";

const PARTS = ["used", "late", "rejected", "waiting"];
const WORDS = { used: "used", late: "late", rejected: "rejected", waiting: "waiting" };
const COLUMNS = [["Stream", "plain"], ["Reason", ""], ["Place", "mono"], ["Row", "mono"]].map(([title, cls], at) => ({ title, cls, cell: (row) => row[at] ?? "" }));

export function inputsView(context, name) {
  const cards = new Map();
  const list = el("div", {});
  const found = table(COLUMNS, { label: "Dead letters" });
  const search = el("input", { type: "search", placeholder: "find in reasons, places and rows", size: 34, "aria-label": "Find dead letters", oninput: () => fill() });
  const note = el("span", { class: "faint" });
  const none = el("div", {}, empty("No row was rejected.", "Rows that cannot be read or have no place in time are listed here, with their reason."));
  const rows = el("div", { class: "scroll tall" }, found.node);
  const node = el("div", {}, list, el("div", { class: "card" }, el("h2", {}, "Dead letters"), el("div", { class: "actions" }, search, note), none, rows));
  none.hidden = rows.hidden = true;
  let letters = { rows: [], passed: 0 }, names = null;

  function fill() {
    const mine = letters.rows.filter((row) => !names || names.has(row[0]));
    const wanted = search.value.toLowerCase();
    const kept = mine.filter((row) => !wanted || row.some((cell) => cell?.toLowerCase().includes(wanted)));
    found.update(kept);
    none.hidden = mine.length > 0;
    rows.hidden = !mine.length;
    setText(note, mine.length ? `${count(kept.length)} of the newest ${count(mine.length)}, of all queries that read the same inputs` : "");
  }

  function update(message) {
    if (message.dead_letters?.rows) letters = message.dead_letters;
    if (message.dead_letters === null) none.replaceChildren(empty("Rejected rows are not kept here.", "Of a run with --dead-letters they are in its folder."));
    const inputs = message.detail?.inputs ?? [];
    names = new Set(inputs.map((each) => each.name));
    for (const one of inputs) {
      if (!cards.has(one.name)) {
        const made = card(one.name);
        cards.set(one.name, made);
        list.append(made.node);
      }
      cards.get(one.name).update(one, message.overview.over);
    }
    fill();
  }
  return { node, update };
}

function card(name) {
  const facts = el("span", { class: "faint" });
  const parts = Object.fromEntries(PARTS.map((part) => [part, el("div", { class: `part ${part}` })]));
  const keys = Object.fromEntries(PARTS.map((part) => [part, el("span")]));
  const total = el("span", { class: "key" });
  const reasons = el("div", { class: "warn" });
  const node = el("div", { class: "card" }, el("div", { class: "title" }, el("h1", {}, name), facts),
    el("div", { class: "ledger", role: "img", "aria-label": "Where the rows went" }, ...Object.values(parts)),
    el("div", {}, total, ...PARTS.map((part) => el("span", { class: "key" }, el("i", { class: part }), keys[part]))), reasons);
  const update = (one, over) => {
    const time = one.watermark ? `time is at ${instant(one.watermark)}, ${one.lag_seconds > -1 ? `${behind(one.lag_seconds)} behind` : `${behind(one.lag_seconds)} of`} the clock` : one.ended ? "read to its end" : over ? "" : "no time of its own yet";
    setText(facts, [`${rate(one.rows_per_second)} rows/s`, time, one.ended && one.watermark ? "ended" : "", one.silent_seconds >= 10 ? `silent for ${span(one.silent_seconds)}` : "", one.leap ?? ""].filter(Boolean).join(" · "));
    setText(total, `${count(one.rows_in)} rows in =`);
    for (const part of PARTS) {
      const share = one.rows_in ? one[part] / one.rows_in : 0;
      parts[part].style.width = `${share ? Math.max(share * 100, 0.7) : 0}%`;
      setText(keys[part], `${count(one[part])} ${WORDS[part]}`);
    }
    setText(reasons, Object.entries(one.reasons).map(([reason, times]) => `${count(times)} × ${reason}`).join("; "));
  };
  return { node, update };
}
