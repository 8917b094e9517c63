// The address says which view is shown; this file finds it, asks for its data, and takes the numbers away when they are old.
import { badge, el, time } from "./base.js";
import { Feed, report } from "./feed.js";
import { Fleet, linkTo } from "./fleet.js";
import { Group } from "./group.js";

const KEEP = 30_000; // how long numbers stay when an answer fails for another reason than old data
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const live = document.getElementById("live");
let view = null;
let shownAt = 0; // when the numbers came; 0: none are shown
let shownOf = null; // the time that they are of
let failed = null; // the newest failure, if no answer came since
let expiry = 0;
let drawn = null; // ETag of what is shown

export function say(text) {
  if (live.textContent !== text) live.textContent = text;
}

function warn(...nodes) {
  banner.hidden = nodes.length === 0;
  banner.replaceChildren(...nodes);
}

function clusterLine(cluster) {
  const newest = cluster.data_timestamp ? ["; its newest batch is of ", time(cluster.data_timestamp)] : [];
  return el("p", {}, `${cluster.cluster}: ${cluster.reason ?? "fresh"}`, ...newest);
}

function give(answer) {
  const old = answer.clusters.filter((cluster) => !cluster.is_fresh && cluster.reason !== "past");
  const consequence = report ? "This data was old when the report was written." : "Old data: the groups of these clusters are not shown.";
  warn(...(old.length ? [el("p", {}, consequence), ...old.map(clusterLine)] : []));
  failed = null;
  shownAt = Date.now();
  shownOf = answer.data_timestamp;
  const batch = answer.batch_id === null ? "" : ` · batch ${answer.batch_id}`;
  const since = report ? [", since ", time(report.since)] : [];
  document.getElementById("moment").replaceChildren(report ? "Report of " : "Data of ", time(answer.data_timestamp), batch, ...since);
  if (!drawn || drawn !== answer.etag) { // else it says the same as before, and who reads or chooses is left alone
    drawn = null;
    say(view.show(answer));
    drawn = answer.etag;
  }
  clearTimeout(expiry);
  if (!report) expiry = setTimeout(expire, KEEP);
}

function fail(error, wait, isLate = Date.now() - shownAt >= KEEP) {
  failed = { error, next: Date.now() + wait };
  const isOld = error.code === "no_fresh_data";
  const isGone = isOld || error.code === "not_drawn" || error.status === 404 || error.status === 400 || isLate;
  const title = isOld ? "No fresh data, so no numbers are shown." : `No answer: ${error.message}.`;
  warn(
    el("p", {}, el("strong", {}, title), isGone ? "" : [" The numbers below are of ", time(shownOf), "."], ` Next attempt in ${Math.round(wait / 1000)} s.`),
    ...error.clusters.filter((cluster) => !cluster.is_fresh).map(clusterLine),
  );
  if (!isGone) return;
  remove();
  const choices = error.choices.map((name) => el("li", {}, error.code === "no_such_group"
    ? el("a", { href: linkTo({ cluster: view.cluster, group: name }) }, name) : name));
  const isGroup = view instanceof Group;
  main.replaceChildren(
    el("h1", {}, isGroup ? view.group : "Groups"),
    el("p", {}, badge("unknown"), ` ${error.message}`),
    choices.length ? el("ul", {}, choices) : "",
    isGroup ? el("p", {}, el("a", { href: "#/" }, "All groups")) : "",
  );
  say(title);
}

// no number stays longer than so, whatever became of the next question
function expire() {
  if (failed) { fail(failed.error, Math.max(0, failed.next - Date.now()), true); return; }
  remove();
  main.replaceChildren(el("p", { class: "muted" }, "Loading … the numbers of ", time(shownOf), " were removed, as none came since."));
}

function remove() {
  clearTimeout(expiry);
  shownAt = 0;
  drawn = null;
  document.getElementById("moment").replaceChildren();
  view.clear();
}

const feed = new Feed(give, fail);

// a name as it was before it went into the address; an address that somebody cut has none
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

// #/ is the fleet, #/group?cluster=…&group=… a group, named as in the metrics; #/group/CLUSTER/GROUP is the same
function viewOf() {
  const [path, ...rest] = location.hash.slice(1).split("?");
  const parameters = new URLSearchParams(rest.join("?"));
  const [, first, cluster, ...names] = path.split("/");
  if (!first) return new Fleet(main, parameters);
  if (first !== "group") return null;
  if (names.length) {
    parameters.set("cluster", decoded(cluster));
    parameters.set("group", names.map(decoded).join("/"));
    history.replaceState(null, "", `#/group?${parameters}`);
  }
  return parameters.has("group") ? new Group(main, parameters) : null;
}

function route() {
  feed.end();
  if (view) remove();
  warn();
  failed = null;
  view = viewOf();
  main.replaceChildren(view ? el("p", { class: "muted" }, "Loading …") : el("p", {}, "Nothing is at this address. ", el("a", { href: "#/" }, "All groups")));
  if (view) feed.start((read) => view.ask(read));
}

const THEMES = ["system", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = `Theme: ${name}`;
  try { localStorage.setItem("laggard-theme", name); } catch { /* a browser may keep nothing */ }
}
function keptTheme() {
  try { return localStorage.getItem("laggard-theme"); } catch { return null; }
}

document.getElementById("theme").addEventListener("click", () => {
  theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
});
document.getElementById("reload").addEventListener("click", () => feed.load());
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  if (event.key === "r") feed.load();
  else if (event.key === "Escape" && view instanceof Group) location.hash = "#/";
  else if (event.key === "/" && view instanceof Fleet) { event.preventDefault(); view.search?.focus(); }
});
window.addEventListener("hashchange", () => { route(); scrollTo(0, 0); });
// a tab that nobody looked at for long must not show numbers of then
document.addEventListener("visibilitychange", () => {
  if (!report && !document.hidden && shownAt && Date.now() - shownAt >= KEEP) expire();
});
document.getElementById("reload").hidden = report !== null;
// a report about one group begins with it
if (report && !report.groups && !location.hash) history.replaceState(null, "", linkTo({ group: Object.keys(report.of)[0] }));
theme(THEMES.includes(keptTheme()) ? keptTheme() : "system");
route();
