// The series of a query over the last hours.

import UPlot from "/vendor/uplot.js";
import { bytes, count, el, empty, rate, span } from "/dom.js";

const TIMES = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 18000, 43200, 86400, 604800, 2592000, 31536000, 315360000];
const WHOLE = Array.from({ length: 16 }, (_, tens) => [1, 2, 5].map((each) => each * 10 ** tens)).flat();
const CHARTS = [
  { title: "Rows a second", series: [["in", "rows_per_second", "--accent", []], ["out", "rows_out_per_second", "--warn", [6, 4]]], text: rate },
  { title: "Behind the clock", series: [["behind", "lag_seconds", "--accent", []], ["held back", "held_back_seconds", "--warn", [6, 4]]], text: span, steps: TIMES },
  { title: "Bytes kept", series: [["state", "state_bytes", "--accent", []]], text: bytes },
  { title: "Rows not used", series: [["late", "rows_late", "--warn", [6, 4]], ["rejected", "rows_rejected", "--bad", []]], text: count, steps: WHOLE },
];

export function historyView(context, name) {
  const charted = el("div", { class: "halves" });
  const reach = el("select", { "aria-label": "How far back", onchange: () => renew() },
    ...[[600, "ten minutes"], [7200, "two hours"], [86400, "a day"]].map(([seconds, title]) => el("option", { value: seconds }, title)));
  const node = el("div", {}, el("div", { class: "actions" }, "The last ", reach), charted);
  let charts = [], closed = false, known = null, wanted = null, timer = null;

  // What is known is kept; what is asked for is what came since its newest moment, which may not have been over.
  async function renew() {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(renew, 2_000);
      return;
    }
    const seconds = Number(reach.value);
    if (seconds !== wanted) known = null;
    wanted = seconds;
    const since = known?.time.at(-1) ?? 0;
    const more = await context.ask(`/api/history?${new URLSearchParams({ query: name, seconds, since })}`);
    if (closed || seconds !== wanted) return;
    if (!context.message?.overview.over) timer = setTimeout(renew, seconds > 7200 ? 20_000 : seconds > 600 ? 5_000 : 2_000);
    const found = known = joined(known, more, seconds);
    if (!found?.time?.length) {
      charted.replaceChildren(el("div", { class: "card" }, empty("Nothing is remembered yet.", "Series begin when the console is opened, and reach back a day; a run that began with --console leaves them in its checkpoint.")));
      return;
    }
    if (!charts.length) {
      charted.replaceChildren();
      charts = CHARTS.map((one) => chart(one, charted));
    }
    for (const { one, plot } of charts) plot.setData([found.time, ...one.series.map(([, column]) => found[column])]);
  }

  const resize = () => charts.forEach(({ plot, holder }) => plot.setSize({ width: holder.clientWidth, height: 200 }));
  addEventListener("resize", resize);
  renew();
  return {
    node,
    update: () => {},
    close: () => {
      closed = true;
      clearTimeout(timer);
      removeEventListener("resize", resize);
      charts.forEach(({ plot }) => plot.destroy());
    },
  };
}

function joined(known, more, seconds) {
  if (!more.time) return known;
  if (!known) return more;
  const keep = more.time.length ? known.time.findIndex((at) => at >= more.time[0]) : -1;
  const until = keep < 0 ? known.time.length : keep;
  const from = Math.max(0, known.time.findIndex((at) => at >= (more.time.at(-1) ?? known.time.at(-1)) - seconds));
  return Object.fromEntries(Object.entries(more).map(([column, values]) => [column, [...known[column].slice(from, until), ...values]]));
}

const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);

function chart(one, parent) {
  const colour = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const holder = el("div", { class: "chart" });
  parent.append(el("div", { class: "card" }, el("h2", {}, one.title), holder));
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const plot = new UPlot({
    width: holder.clientWidth || 500, height: 200, cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-3) * 1.05] } },
    axes: [{ ...axis, space: 90, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 76, ...(one.steps ? { incrs: one.steps } : {}), values: (_, ticks) => ticks.map((tick) => one.text(tick)) }],
    series: [{ value: (_, at) => (at == null ? "–" : clock(at)) },
      ...one.series.map(([label, , variable, dash]) => ({ label, stroke: colour(variable), dash, width: 2, points: { show: false }, value: (_, value) => (value == null ? "–" : one.text(value)) }))],
  }, [[], ...one.series.map(() => [])], holder);
  return { one, plot, holder };
}
