// The plan of a query as a graph: rows flow down, from the inputs to the answer.

import { Graph, layout } from "/vendor/dagre.js";
import { bytes, count, el, empty, fit, rate, setText, svg, table } from "/dom.js";

const WIDTH = 248, HEIGHT = 94;

export function planView(context, name) {
  const text = el("pre", { class: "written", "aria-label": "The query" });
  const graph = el("div", { class: "card scroll graph" }, empty("The plan is on its way."));
  const busiest = el("p", { class: "faint" });
  const about = el("div", { class: "card" }, el("h2", {}, "Operator"), empty("Click an operator to see what it keeps and why it was chosen."));
  const explained = el("pre", { class: "plan" });
  const stages = stagesCard();
  const node = el("div", {}, el("div", { class: "card" }, text),
    el("div", { class: "split" }, el("div", {}, graph, stages.node, el("details", { class: "card" }, el("summary", {}, "EXPLAIN as text"), explained)),
      el("div", {}, el("div", { class: "card" }, el("h2", {}, "Busiest"), busiest), about)));
  let paper = null, drawn = null, chosen = null, latest = null, closed = false;

  context.ask(`/api/plan?${new URLSearchParams({ query: name })}`).then((found) => {
    if (closed) return;
    paper = writtenText(found.plan?.statement ?? found.text ?? "", text);
    setText(explained, found.explain ?? "");
    if (!found.plan) {
      graph.replaceChildren(empty(found.what ?? "No plan is kept here: a checkpoint has the text of its queries alone."));
      return;
    }
    drawn = draw(found.plan, choose);
    graph.replaceChildren(drawn.node);
    if (latest) update(latest);
  });

  function choose(operator) {
    chosen = operator;
    drawn.choose(operator.number);
    paper.mark((operator.written ?? []).map((each) => each.at).filter(Boolean));
    show();
  }

  function show() {
    if (!chosen) return;
    const known = latest?.detail?.operators?.find((each) => each.number === chosen.number);
    const elsewhere = (chosen.written ?? []).filter((each) => !each.at);
    const facts = [
      ["does", chosen.description],
      ["comes from", elsewhere.length ? `a view: ${elsewhere.map((each) => each.text).join(" .. ")}`
        : chosen.written?.length ? "what is marked in the query" : "the planner, which put it in"], ["keeps", chosen.keeps], ["costs", chosen.costs],
      ["stage", chosen.fragment == null ? "with its input" : `${chosen.fragment}`],
      ...(known ? [
        ["rows in", count(known.rows_in)], ["rows out", count(known.rows_out)], ["rows kept", count(known.state_rows)],
        ["bytes kept", bytes(known.state_bytes)], ["time", `${known.seconds.toFixed(3)} s, ${(known.share_of_all * 100).toFixed(1)} % of all; now ${(known.share * 100).toFixed(1)} %`],
        ...(known.slides ? known.slides.lines.map((line) => ["slides", line]) : []),
      ] : []),
      ...chosen.not_taken.map((each) => [`not ${each.tactic}`, each.reason]),
    ];
    about.replaceChildren(el("h2", { class: "as-is" }, `#${chosen.number} ${chosen.title ?? chosen.tactic}`),
      el("dl", {}, ...facts.flatMap(([what, value]) => [el("dt", {}, what), el("dd", {}, String(value ?? ""))])));
  }

  function update(message) {
    latest = message;
    stages.update(message.detail?.partitions ?? []);
    if (!drawn || !message.detail) return;
    const operators = message.detail.operators ?? [];
    const top = operators.filter((each) => each.share >= 0.005).sort((a, b) => b.share - a.share).slice(0, 3);
    drawn.update(operators, top.map((each) => each.number), message.detail.state === "running");
    setText(busiest, top.length ? top.map((each, at) => `${at + 1}. #${each.number} ${each.title} ${(each.share * 100).toFixed(0)} %`).join("\n") : "Nothing has been computed yet.");
    busiest.style.whiteSpace = "pre-line";
    show();
  }
  return { node, update, close: () => { closed = true; } };
}

function draw(plan, choose) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const operator of plan.operators) graph.setNode(String(operator.number), { width: WIDTH, height: HEIGHT });
  for (const operator of plan.operators) for (const input of operator.inputs) graph.setEdge(String(input), String(operator.number));
  layout(graph);
  const { width, height } = graph.graph();
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" }));
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The plan" }, svg("defs", {}, arrow));
  for (const edge of graph.edges()) {
    const points = graph.edge(edge).points.map((point) => `${point.x},${point.y}`).join("L");
    picture.append(svg("path", { class: "edge", d: `M${points}`, "marker-end": "url(#arrow)" }));
  }
  const nodes = new Map();
  for (const operator of plan.operators) {
    const { x, y } = graph.node(String(operator.number));
    const lines = {
      rank: svg("text", { class: "rank", x: WIDTH - 10, y: 75, "text-anchor": "end" }),
      rates: svg("text", { x: 10, y: 58 }), kept: svg("text", { x: 10, y: 75, class: "faint" }),
      share: svg("rect", { class: "share", x: 10, y: 83, height: 5, width: 0, rx: 2 }),
    };
    const group = svg("g", { class: "node", transform: `translate(${x - WIDTH / 2},${y - HEIGHT / 2})`, tabindex: 0, role: "button",
      onclick: () => choose(operator), onkeydown: (event) => { if (event.key === "Enter") choose(operator); } },
      svg("title", {}, operator.description), svg("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: 7 }),
      svg("text", { class: "name", x: 10, y: 20 }, fit(`#${operator.number} ${operator.title ?? operator.tactic}`, WIDTH - 20, 600)),
      svg("text", { class: "faint", x: 10, y: 39 }, fit(operator.description, WIDTH - 20)),
      lines.rank, lines.rates, lines.kept, svg("rect", { class: "track", x: 10, y: 83, height: 5, width: WIDTH - 20, rx: 2 }), lines.share);
    nodes.set(operator.number, { group, ...lines });
    picture.append(group);
  }
  return {
    node: picture,
    choose: (number) => { for (const [each, { group }] of nodes) group.classList.toggle("chosen", each === number); },
    update: (operators, top, running) => {
      for (const one of operators) {
        const parts = nodes.get(one.number);
        if (!parts) continue;
        setText(parts.rates, `${running ? `${rate(one.rows_per_second)} rows/s` : `${count(one.rows_in || one.rows_out)} rows`} · ${(one.share * 100).toFixed(0)} % of time`);
        setText(parts.kept, one.state_bytes ? `keeps ${one.state_rows ? `${count(one.state_rows)} rows, ` : ""}${bytes(one.state_bytes)}` : "keeps nothing");
        parts.share.setAttribute("width", Math.max(0, (WIDTH - 20) * one.share));
        const rank = top.indexOf(one.number);
        parts.group.classList.toggle("busy", rank === 0);
        setText(parts.rank, rank >= 0 ? `busiest ${rank + 1}` : "");
      }
    },
  };
}

// On Spark: what each partition of a stage has, beside the others, so that skew is seen.
function stagesCard() {
  const skew = el("p", { class: "warn" });
  const rows = table([
    { title: "Stage", cls: "n", cell: (one) => one.stage },
    { title: "Partition", cls: "n", cell: (one) => one.partition },
    { title: "Rows in", cls: "n", cell: (one) => count(one.rows_in) },
    { title: "Rows kept", cls: "n", cell: (one) => count(one.state_rows) },
    { title: "Bytes kept", cls: "n", cell: (one) => bytes(one.state_bytes) },
    { title: "Time", cls: "n", cell: (one) => `${one.seconds.toFixed(2)} s` },
    { title: "Of the mean", cls: "n", hint: "Rows in, against the mean of its stage", cell: (one) => ({ text: one.of_mean ? `${one.of_mean.toFixed(1)} ×` : "", cls: one.of_mean >= 2 ? "warn" : "" }) },
  ], { label: "Stages and partitions" });
  const node = el("div", { class: "card", hidden: true }, el("h2", {}, "Stages and partitions"), skew, el("div", { class: "scroll tall" }, rows.node));
  const update = (partitions) => {
    node.hidden = !partitions.length;
    rows.update(partitions);
    const worst = partitions.filter((one) => one.of_mean >= 2).sort((a, b) => b.of_mean - a.of_mean)[0];
    setText(skew, worst ? `Partition ${worst.partition} of stage ${worst.stage} has ${worst.of_mean.toFixed(1)} times the rows of the mean: some keys are much more frequent than others.` : "");
  };
  return { node, update };
}

// The text of a query without the indentation that it has in its program, and pieces of it to be marked: [from, to[ in the
// text as it was written, counted as Python counts.
function writtenText(text, node) {
  const letters = Array.from(text);
  const lines = text.split("\n");
  const indents = lines.slice(1).filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const margin = indents.length ? Math.min(...indents) : 0;
  const shown = [];
  let at = 0;
  lines.forEach((line, number) => {
    const left = number ? Math.min(margin, line.length - line.trimStart().length) : 0;
    const length = Array.from(line).length;
    for (let i = left; i < length; i += 1) shown.push(at + i);
    at += length;
    if (number < lines.length - 1) shown.push(at);
    at += 1;
  });
  const mark = (pieces) => {
    const parts = [];
    let run = "", marked = false;
    const close = () => { if (run) parts.push(marked ? el("mark", {}, run) : run); run = ""; };
    for (const index of shown) {
      const inside = pieces.some(([from, to]) => from <= index && index < to);
      if (inside !== marked) { close(); marked = inside; }
      run += letters[index];
    }
    close();
    node.replaceChildren(...parts);
    node.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  };
  mark([]);
  return { mark };
}
