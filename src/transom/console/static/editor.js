// Write a query, see what is wrong with it, how it would run and what its first rows give; and start it.

import { count, el, empty, setText, table } from "/dom.js";

export function editorView(context) {
  const paper = el("textarea", { spellcheck: "false", autocomplete: "off", "aria-label": "Query text", placeholder: "SELECT .. FROM .. [RANGE 1 MINUTE] ..", oninput: () => written(), onscroll: () => follow() });
  const marks = el("pre", { "aria-hidden": "true" });
  const numbers = el("div", { class: "numbers", "aria-hidden": "true" });
  const verdict = el("div", { class: "card", role: "status" });
  const preview = el("div");
  const plan = el("pre", { class: "plan" });
  const planCard = el("div", { class: "card", hidden: true }, el("h2", {}, "Explain"), plan);
  const name = el("input", { type: "text", placeholder: "name (optional)", size: 16, "aria-label": "Name" });
  const waits = el("input", { type: "checkbox", checked: true });
  const together = el("input", { type: "checkbox" });
  const start = el("button", { class: "first", type: "button", onclick: () => begin() }, "Start");
  const run = el("button", { type: "button", onclick: () => look() }, "Preview first rows");
  const changing = context.about.changes
    ? [name, el("label", {}, waits, " wait for more"), el("label", {}, together, " beside the others"), start]
    : [el("span", { class: "faint" }, context.about.could_change
      ? "Open the address with the token to start queries." : "This page may look, and change nothing: start it with --allow-changes.")];
  const relations = context.about.relations ?? [];
  const node = el("div", { class: "split" },
    el("div", {}, el("div", { class: "paper" }, numbers, marks, paper), el("div", { class: "actions" }, run, ...changing), verdict, preview, planCard),
    el("div", { class: "card" }, el("h2", {}, "What there is"), relations.length
      ? el("dl", {}, ...relations.flatMap((one) => [el("dt", {}, one.name), el("dd", {}, one.columns.join(", "))]))
      : empty("Nothing is declared yet.", "Write CREATE STREAM, or declare inputs in the program.")));
  let timer = null, asked = 0;
  paper.value = sessionStorage.getItem("draft") ?? "";

  function written() {
    sessionStorage.setItem("draft", paper.value);
    mark(null);
    clearTimeout(timer);
    timer = setTimeout(check, 350);
  }

  function follow() {
    marks.scrollTop = numbers.scrollTop = paper.scrollTop;
  }

  // The text once more, behind the one that is written, with a mark where something is wrong.
  function mark(error) {
    const text = paper.value;
    setText(numbers, text.split("\n").map((_, at) => at + 1).join("\n"));
    const at = error?.line ? offset(text, error.line, error.column) : -1;
    if (at < 0) marks.replaceChildren();
    else marks.replaceChildren(text.slice(0, at), el("mark", {}, text.slice(at, at + Math.max(error.length, 1)) || " "), `${text.slice(at + Math.max(error.length, 1))}\n`);
    follow();
  }

  async function check() {
    if (!paper.value.trim()) {
      verdict.replaceChildren(empty("Write a query: it is checked while you type."));
      planCard.hidden = true;
      return;
    }
    asked += 1;
    const mine = asked;
    const found = await context.ask("/api/check", { text: paper.value });
    if (mine !== asked) return;
    planCard.hidden = !found.ok || !found.explain;
    if (found.ok) {
      mark(null);
      setText(plan, found.explain);
      said("ok", found.queries === 1 ? "✓ right: one query" : `✓ right: ${count(found.queries)} queries`, found.notes.join("\n"));
    } else wrong(found);
  }

  function wrong(found) {
    mark(found);
    const where = found.line ? `line ${found.line}, column ${found.column}: ` : "";
    said("error", `✕ ${where}${found.what}`, found.remedy);
  }

  function said(cls, text, more) {
    verdict.className = `card ${cls}`;
    verdict.replaceChildren(el("div", { class: cls === "error" ? "bad" : "running" }, text), ...(more ? [el("div", { class: "faint" }, more)] : []));
  }

  async function look() {
    run.disabled = true;
    const found = await context.ask("/api/preview", { text: paper.value });
    run.disabled = false;
    if (!found.ok) {
      wrong(found);
      return;
    }
    const rows = table(found.columns.map((title, at) => ({ title, cls: "mono", cell: (row) => (row[at] === null ? { text: "NULL", cls: "faint" } : row[at]) })), { label: "Preview" });
    rows.update(found.rows);
    preview.replaceChildren(el("div", { class: "card" }, el("h2", {}, `Preview: ${count(found.count)} rows of the first ${count(found.read)} of each input`),
      found.count ? el("div", { class: "scroll tall" }, rows.node) : empty("Nothing came of the first rows.")));
  }

  async function begin() {
    start.disabled = true;
    const found = await context.ask("/api/start", { text: paper.value, name: name.value.trim(), follow: waits.checked, together: together.checked });
    start.disabled = false;
    if (found.ok) location.hash = `#/query/${encodeURIComponent(found.name)}/answer`;
    else wrong(found);
  }

  mark(null);
  check();
  return { node, update: () => {}, close: () => clearTimeout(timer) };
}

function offset(text, line, column) {
  const lines = text.split("\n");
  if (line > lines.length) return -1;
  return lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
}
