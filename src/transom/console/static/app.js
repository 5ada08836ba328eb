// Where one is, what is asked for it, and who shows what comes.

import { el, held, instant, setText, state } from "/dom.js";
import { queriesView } from "/queries.js";
import { planView } from "/plan.js";
import { answerView } from "/answer.js";
import { inputsView } from "/inputs.js";
import { historyView } from "/history.js";
import { editorView } from "/editor.js";

const token = takeToken();
export const context = { about: { editor: false, changes: false, relations: [] }, ask, message: null };

const TABS = { plan: planView, answer: answerView, inputs: inputsView, history: historyView };
const WANTS = { answer: "answer", inputs: "dead_letters" };
let shown = null;
let source = null;
let again = null;

function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("token", found[1]);
    history.replaceState(null, "", "#/queries");
  }
  return sessionStorage.getItem("token") ?? "";
}

async function ask(path, body) {
  const headers = { "x-transom-token": token };
  if (body !== undefined) headers["content-type"] = "application/json";
  try {
    const answer = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body === undefined ? undefined : JSON.stringify(body) });
    return await answer.json();
  } catch (error) {
    return { ok: false, what: "the console does not answer", remedy: "see whether the run is still there" };
  }
}

function route() {
  const [, place, name, tab] = location.hash.split("/");
  if (place === "query" && name) return { place, name: decodeURIComponent(name), tab: tab in TABS ? tab : "plan" };
  return { place: place === "editor" && context.about.editor ? "editor" : "queries" };
}

function show() {
  const where = route();
  shown?.close?.();
  const view = document.getElementById("view");
  shown = where.place === "query" ? queryPlace(where) : where.place === "editor" ? editorView(context) : queriesView(context);
  view.replaceChildren(shown.node);
  const places = [["queries", "Queries"], ...(context.about.editor ? [["editor", "Editor"]] : [])];
  document.getElementById("places").replaceChildren(
    ...places.map(([place, title]) =>
      el("a", { href: `#/${place}`, "aria-current": (where.place === "query" ? "queries" : where.place) === place ? "page" : null }, title)),
  );
  document.title = where.name ? `${where.name} · Transom` : "Transom console";
  listen(where);
}

function queryPlace({ name, tab }) {
  const inner = TABS[tab](context, name);
  const facts = el("span", { class: "faint" });
  const stateOf = el("span", { class: "state" });
  const trouble = el("div");
  const stop = el("button", { class: "danger", type: "button", hidden: true, onclick: async () => {
    stop.disabled = true;
    const found = await ask("/api/stop", { name });
    if (!found.ok) trouble.replaceChildren(el("div", { class: "card error" }, [found.what, found.remedy].filter(Boolean).join("\n")));
    stop.disabled = false;
  } }, "Stop");
  const tabs = Object.keys(TABS).map((each) =>
    el("a", { href: `#/query/${encodeURIComponent(name)}/${each}`, "aria-current": each === tab ? "page" : null }, each[0].toUpperCase() + each.slice(1)));
  const node = el("div", {},
    el("div", { class: "title" }, el("h1", {}, name), stateOf, facts, el("span", { class: "right" }, stop)),
    el("nav", { class: "tabs", "aria-label": "Views of the query" }, ...tabs), trouble, inner.node);
  const update = (message) => {
    const one = message.detail;
    inner.node.hidden = !one;
    if (!one) setText(facts, "no query of this name is here");
    else {
      setText(facts, describe(one));
      setText(stateOf, state(one.state).text);
      stateOf.className = `state ${one.state}`;
      stop.hidden = !(context.about.changes && one.stoppable && one.state === "running");
      if (one.error && !trouble.firstChild) trouble.replaceChildren(el("div", { class: "card error" }, one.error));
    }
    if (one) inner.update(message);
  };
  return { node, update, close: inner.close };
}

function describe(one) {
  const parts = [one.runtime === "spark" ? "on Spark" : "in one process"];
  if (one.progress) parts.push(`up to ${instant(one.progress)}`);
  if (held(one)) parts.push(`held back by ${held(one)}`);
  return parts.join(" · ");
}

// A page in the background asks for nothing: a browser has few connections for one server, and nobody looks.
function listen(where) {
  source?.close();
  clearTimeout(again);
  if (document.hidden) return;
  const asked = new URLSearchParams();
  if (where.name) asked.set("query", where.name);
  if (WANTS[where.tab]) asked.set("wants", WANTS[where.tab]);
  const link = document.getElementById("link");
  source = new EventSource(`/api/events?${asked}`);
  source.onopen = () => { setText(link, "● live"); link.className = ""; };
  source.onerror = () => {
    setText(link, "○ not connected");
    link.className = "lost";
    if (source.readyState === EventSource.CLOSED) again = setTimeout(() => listen(where), 5000);
  };
  source.onmessage = (event) => {
    context.message = JSON.parse(event.data);
    const over = context.message.overview.over;
    setText(link, over ? "■ over" : "● live");
    setText(document.getElementById("about"), `${context.message.overview.about} · times are UTC`);
    shown.update(context.message);
  };
}

function theme(next) {
  const known = next ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = known;
  if (next) {
    localStorage.setItem("theme", next);
    show();
  }
}

theme();
document.getElementById("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
addEventListener("hashchange", show);
addEventListener("pagehide", () => source?.close());
document.addEventListener("visibilitychange", () => listen(route()));
context.about = await ask("/api/about");
show();
