// All groups: chosen, in order, and only the rows in view are elements.
import { badge, choose, count, duration, el, known, lagOf, records, timeLagOf } from "./base.js";
import { sparkline } from "./charts.js";
import { report } from "./feed.js";

const LEVELS = ["page", "warn", "behind", "unknown", "info", "ok"];
const AROUND = 10; // rows beyond the edges of the window
const value = (quantity) => quantity ?? -1;
const ORDERS = {
  severity: null, // as the API gives them
  time_lag: (a, b) => value(b.time_lag_known_seconds) - value(a.time_lag_known_seconds),
  lag: (a, b) => value(b.lag ?? b.lag_known) - value(a.lag ?? a.lag_known),
  group: (a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : 0),
};
const COLUMNS = [
  ["Health", "severity", ""], ["Group", "group", ""], ["Time lag", "time_lag", "number"], ["Lag", "lag", "number"],
  ["Last 60 windows", "", "wide"], ["Finding", "", "middle"], ["More consumers?", "", "middle"],
  ["Shape", "", "wide"], ["Trend", "", "wide"], ["Members → desired", "", "wide"],
];

// names as in the labels of the metrics: each is of one group only, and prints
export const linkTo = (row) => `#/group?${new URLSearchParams({ ...(row.cluster && { cluster: row.cluster }), group: row.group })}`;

export function members(row) {
  const desired = row.desired_consumers;
  return desired === row.members ? known(row.members) : `${known(row.members)} → ${known(desired)}`;
}

function findings(row) {
  if (!row.finding) return row.health === "unknown" ? "unknown" : "–";
  const more = row.findings.length - 1;
  return more > 0 ? `${row.finding} +${more}` : row.finding;
}

// a code may go on in the next line after each of its words
const breakable = (code) => code.split("_").map((word, index) => (index ? [el("wbr"), `_${word}`] : word)).flat();

export class Fleet {
  constructor(main, parameters) {
    this.main = main;
    this.asked = Object.fromEntries(["search", "health", "state", "team", "cluster", "sort"].map((name) => [name, parameters.get(name) ?? ""]));
    this.groups = [];
    this.rows = [];
    this.table = null;
    this.draw = () => this.table && requestAnimationFrame(() => this.drawRows());
    document.title = "laggard";
  }

  clear() {
    removeEventListener("scroll", this.draw);
    removeEventListener("resize", this.draw);
    this.table = null;
  }

  async ask(read) {
    const first = await read("api/v1/groups?limit=5000");
    let { next } = first;
    while (next) {
      const page = await read(`api/v1/groups?limit=5000&after=${encodeURIComponent(next)}`);
      first.groups.push(...page.groups);
      first.etag += page.etag;
      next = page.next;
    }
    return first;
  }

  show(answer) {
    this.groups = answer.groups;
    this.hasClusters = new Set(answer.groups.map((row) => row.cluster)).size > 1;
    if (!this.table) this.build();
    this.fillChoices();
    return this.choose();
  }

  build() {
    addEventListener("scroll", this.draw, { passive: true });
    addEventListener("resize", this.draw);
    this.search = el("input", {
      type: "search", id: "search", placeholder: "Search (/)", "aria-label": "Search groups, owners and teams",
      value: this.asked.search, oninput: () => this.set("search", this.search.value),
    });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Health" }, LEVELS.map((level) => el("button", {
      type: "button", class: `chip is-${level}`, onclick: () => this.set("health", level === this.asked.health ? "" : level),
    })));
    this.choices = ["state", "team", "cluster"].map((name) => el("select", {
      "aria-label": name, "data-name": name, onchange: (event) => this.set(name, event.target.value),
    }));
    this.note = el("p", { class: "muted" });
    this.heads = COLUMNS.map(([title, sort, kind]) => el("th", { scope: "col", class: kind },
      sort ? el("button", { type: "button", onclick: () => this.set("sort", sort === "severity" ? "" : sort) }, title) : title));
    this.above = el("td"); // one column: a wider cell would make columns where narrow windows have none
    this.below = el("td");
    this.body = el("tbody");
    this.table = el("table", { class: "fleet" },
      el("caption", { class: "unseen" }, "Consumer groups"),
      el("thead", {}, el("tr", { "aria-rowindex": 1 }, this.heads)), this.body);
    this.body.addEventListener("keydown", (event) => this.move(event));
    this.main.replaceChildren(
      el("h1", {}, "Consumer groups"),
      el("div", { class: "tools" }, this.search, this.chips, this.choices), this.note, this.table);
  }

  fillChoices() {
    const counts = Object.fromEntries(LEVELS.map((level) => [level, 0]));
    for (const row of this.groups) counts[row.health] += 1;
    const chosen = this.asked.health;
    LEVELS.forEach((level, index) => { // in place, as one of them may have the focus
      const chip = this.chips.children[index];
      chip.hidden = !counts[level] && level !== chosen;
      chip.setAttribute("aria-pressed", String(level === chosen));
      chip.textContent = `${level} ${records(counts[level])}`;
    });
    this.counts = counts;
    for (const select of this.choices) {
      const { name } = select.dataset;
      const names = [...new Set(this.groups.map((row) => row[name]).filter(Boolean))].sort();
      if (this.asked[name] && !names.includes(this.asked[name])) names.unshift(this.asked[name]);
      choose(select, `any ${name}`, names);
      select.value = this.asked[name];
      select.hidden = names.length < 2 && !this.asked[name];
    }
  }

  set(name, text) {
    this.asked[name] = text;
    const query = new URLSearchParams(Object.entries(this.asked).filter(([, chosen]) => chosen)).toString();
    history.replaceState(null, "", query ? `#/?${query}` : "#/");
    this.fillChoices();
    this.choose();
    if (name !== "search") scrollTo(0, 0);
  }

  choose() {
    const { search, health, state, team, cluster, sort } = this.asked;
    const wanted = search.toLowerCase();
    this.rows = this.groups.filter((row) =>
      (!health || row.health === health) && (!state || row.state === state) && (!team || row.team === team)
      && (!cluster || row.cluster === cluster)
      && (!wanted || [row.group, row.owner, row.team].some((label) => label && label.toLowerCase().includes(wanted))));
    if (ORDERS[sort]) this.rows.sort(ORDERS[sort]);
    this.heads.forEach((head, index) => {
      const order = COLUMNS[index][1];
      if (!order) return;
      const isOrder = order === (ORDERS[sort] ? sort : "severity");
      head.setAttribute("aria-sort", isOrder ? (order === "group" ? "ascending" : "descending") : "none");
    });
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    const all = this.groups.length;
    this.note.textContent = this.rows.length === all ? count(all, "group") : `${records(this.rows.length)} of ${count(all, "group")}`;
    if (!all) this.note.textContent = "No group has committed offsets or joined since the job began.";
    this.range = "";
    this.drawRows();
    return `${this.note.textContent}; page ${this.counts.page}, warn ${this.counts.warn}`;
  }

  drawRows() {
    if (!this.table) return;
    const height = this.height ?? 40;
    const top = -this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(this.rows.length - 1, Math.floor(top / height)) - AROUND);
    const last = Math.min(this.rows.length, Math.max(first, Math.ceil((top + innerHeight) / height)) + AROUND);
    if (this.range === `${first} ${last}`) return;
    this.range = `${first} ${last}`;
    const focused = document.activeElement?.dataset?.row;
    this.above.style.height = `${first * height}px`;
    this.below.style.height = `${(this.rows.length - last) * height}px`;
    const edge = (cell, isThere) => (isThere ? [el("tr", { "aria-hidden": "true", class: "edge" }, cell)] : []);
    this.body.replaceChildren(
      ...edge(this.above, first > 0),
      ...this.rows.slice(first, last).map((row, index) => this.line(row, first + index)),
      ...edge(this.below, last < this.rows.length));
    if (focused) this.body.querySelector(`[data-row="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    const real = this.body.querySelector("tr:not(.edge)")?.getBoundingClientRect().height;
    if (real && Math.abs(real - height) > 0.5) { // known only once a row is drawn
      this.height = real;
      this.range = "";
      this.drawRows();
    }
  }

  line(row, index) {
    const of = [row.state, this.hasClusters && row.cluster, row.team ?? row.owner, row.in_maintenance && "in maintenance"].filter(Boolean).join(" · ");
    const cells = [
      badge(row.health),
      [!report || report.of[row.group]
        ? el("a", { href: linkTo(row), "data-row": `${row.cluster}/${row.group}`, title: row.group }, row.group)
        : el("span", { title: row.group }, row.group), el("small", {}, of)],
      timeLagOf(row), lagOf(row), sparkline(row.history, row.history_bounds, "time lag", duration), findings(row),
      known(row.scale_verdict), known(row.shape), known(row.trend), members(row),
    ];
    return el("tr", { "aria-rowindex": index + 2 }, cells.map((cell, number) => {
      const isUnknown = cell === "unknown" ? " muted" : "";
      return el("td", { class: `${COLUMNS[number][2]}${isUnknown}`, title: typeof cell === "string" ? cell : null }, number === 5 || number === 6 ? el("span", {}, breakable(cell)) : cell);
    }));
  }

  // arrows go from group to group, also beyond the rows that are drawn
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = event.target.closest("tr")?.getAttribute("aria-rowindex");
    if (!step || !at) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(this.rows.length - 1, at - 2 + step));
    const y = this.body.getBoundingClientRect().top + next * this.height;
    const head = 120;
    if (y < head) scrollBy(0, y - head);
    else if (y + this.height > innerHeight) scrollBy(0, y + this.height - innerHeight);
    this.drawRows();
    this.body.querySelector(`tr[aria-rowindex="${next + 2}"] a`)?.focus({ preventScroll: true });
  }
}
