// One group: what `laggard explain` says of it, and beside it the pictures that a terminal cannot draw.
import {
  badge, choose, count, duration, el, known, lagOf, moment, orUnknown, records, replaceKept, runs, time, timeLagOf, UNKNOWN,
} from "./base.js";
import { chart, hatch, heatStrip, lanes, timeline } from "./charts.js";
import { prose, sections } from "./explained.js";
import { report } from "./feed.js";
import { linkTo, members } from "./fleet.js";

const FEW = 20;
const MEASURES = { lag: ["lag", "Lag", records], time: ["time_lag_seconds", "Time lag", duration] };
const atLeast = (isBound, text) => (isBound ? `≥ ${text}` : text);
const age = (row) => orUnknown(row.time_lag_seconds, (seconds) => atLeast(row.time_lag_censored, duration(seconds)));
const BELOW = ["Members", "Last rebalances"]; // shown below from the numbers themselves
const REBALANCES = 200; // as many as one answer has
// for a shell; a name with letters that do not print by its bytes
function quoted({ group: name, group_bytes: bytes }) {
  if (bytes) return `$'${[...atob(bytes)].map((letter) => (/[ -&(-[\]-~]/.test(letter) ? letter : `\\x${letter.charCodeAt(0).toString(16).padStart(2, "0")}`)).join("")}'`;
  return /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\"'\"'")}'`;
}
const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), ...children);
const facts = (pairs) => el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
const number = (value) => el("td", { class: value === UNKNOWN ? "number muted" : "number" }, value);

// as the terminal names the one that reads a partition
function reader(owner, group) {
  if (!owner) return group.members === 0 ? "nobody" : "nobody known";
  return owner.client_id === null ? known(owner.slot ?? owner.member_id) : `${owner.client_id} on ${known(owner.client_host).replace(/^\//, "")}`;
}

// a head with # before it is of numbers
function table(title, heads, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title, "data-key": `table ${title}` },
    el("table", {}, el("caption", { class: "unseen" }, title),
      el("thead", {}, el("tr", {}, heads.map((head) => (head[0] === "#" ? el("th", { scope: "col", class: "number" }, head.slice(1)) : el("th", { scope: "col" }, head))))), el("tbody", {}, rows)));
}

const RUNBOOKS = document.querySelector('meta[name="runbook-base"]').content;
const runbook = ({ runbook: path }) => el("p", {}, el("strong", {}, "Runbook: "), RUNBOOKS ? el("a", { href: RUNBOOKS + path }, path) : el("code", {}, path));

export class Group {
  constructor(main, parameters) {
    const [cluster, group] = [parameters.get("cluster") ?? "", parameters.get("group")];
    Object.assign(this, { main, cluster, group, found: null, body: null, place: {} });
    this.topic = parameters.get("topic") ?? "";
    this.measure = parameters.get("by") === "time" ? "time" : "lag";
    this.all = new Set(); // lists that are shown to their end
    document.title = `${group} – laggard`;
  }

  clear() {
    this.found = null;
    this.body = null;
  }

  // the line on top stays when numbers change, as its list may be open
  build() {
    this.topics = el("select", {
      "aria-label": "Topic", onchange: (event) => { location.hash = linkTo({ cluster: this.cluster, group: this.group }) + (event.target.value ? `&${new URLSearchParams({ topic: event.target.value })}` : ""); },
    });
    this.body = el("div");
    const tools = report ? [report.groups && el("a", { href: "#/" }, "← All groups")] : [el("a", { href: "#/" }, "← All groups"), this.topics];
    this.main.replaceChildren(el("div", { class: "tools" }, tools), this.body);
  }

  chosen() {
    return { ...(this.cluster && { cluster: this.cluster }), ...(this.topic && { topic: this.topic }) };
  }

  ask(read) {
    // the name as a parameter: a browser takes . and .. out of a path
    return read(`api/v1/group?${new URLSearchParams({ group: this.group, ...this.chosen(), page: "true" })}`);
  }

  show(answer) {
    this.found = answer;
    this.draw();
    return answer.diagnosis.headline;
  }

  change(action) {
    action();
    const query = new URLSearchParams({ ...this.chosen(), group: this.group, ...(this.measure === "time" && { by: "time" }) });
    history.replaceState(null, "", `#/group?${query}`);
    this.draw();
  }

  draw() {
    const { group, page: lines } = this.found;
    const all = sections(lines);
    const page = all.filter((section) => !BELOW.includes(section.title));
    const index = page.findIndex((section) => section.title === "State");
    // its table of the worst partitions is below with all of them
    const rest = page.slice(index).map((section) => card(section.title, ...prose(section.lines, section.title !== "Lag")));
    this.saidOfMembers = prose(all.find((section) => section.title === "Members")?.lines ?? [], false);
    const body = [
      hatch(), this.head(group),
      this.charts(), el("div", { class: "cards" }, page.slice(0, index).map((section) => card(section.title, ...prose(section.lines)))),
      this.heat(), this.lanes(), this.rebalances(), this.findings(), this.members(), this.partitions(),
      el("div", { class: "cards" }, rest, this.policy()), this.text(lines),
    ];
    if (!this.body) this.build();
    const topics = this.found.topics.map((row) => row.topic);
    choose(this.topics, "all topics", topics.includes(this.topic) || !this.topic ? topics : [this.topic, ...topics]);
    this.topics.value = this.topic;
    this.topics.hidden = topics.length < 2 && !this.topic;
    replaceKept(this.body, ...body.filter(Boolean));
  }

  head(group) {
    // from this exporter, so that it works where no table can be read
    const url = new URL(".", location.href).href.replace(/\/$/, "");
    const cluster = quoted({ group: group.cluster, group_bytes: group.cluster_bytes });
    const options = report ? `--at ${this.found.data_timestamp.slice(0, 19)}` : `--url ${quoted({ group: url })} --cluster=${cluster}`;
    const command = `laggard explain ${options} ${group.group.startsWith("-") ? "-- " : ""}${quoted(group)}`;
    const copied = el("span", { class: "muted", role: "status" });
    const copy = async () => {
      try { await navigator.clipboard.writeText(command); copied.textContent = "copied"; } catch { copied.textContent = "mark it and copy it by hand"; }
    };
    const topics = this.found.topics.map((row) => row.topic);
    return el("div", { class: "head" },
      el("h1", {}, badge(group.health), " ", group.group),
      el("p", { class: "headline" }, this.found.diagnosis.headline),
      facts([
        ["Cluster", group.cluster], ["State", group.state], ["Lag", lagOf(group)], ["Time lag", timeLagOf(group)],
        ["Members → desired", members(group)], ["Shape", known(group.shape)], ["Trend", known(group.trend)],
        ["Owner", group.owner ?? "none declared"], ["Team", group.team ?? "none declared"],
        ...(this.topic ? [["Topic", this.topic]] : topics.length === 1 ? [["Topic", topics[0]]] : []),
      ]),
      el("p", {}, el("code", {}, command), " ", el("button", { type: "button", onclick: copy, "data-key": "copy" }, "Copy"), " ", copied));
  }

  charts() {
    const { rebalances, range } = this.found;
    const { starts, history } = range ?? { starts: this.found.window_starts, history: this.found.history };
    if (!history) return card("Lag over time", el("p", {}, UNKNOWN, ": the rules have evaluated none of these windows."));
    const marks = (rebalances ?? []).map((row) => ({ at: row.ended_at, title: `${moment(row.ended_at)}: rebalance, ${known(row.cause)}` }));
    const isExact = (name) => history[name].map((value, index) => (history.time_lag_is_exact[index] ? value : null));
    const rows = starts.map((start, index) => el("tr", {}, el("td", {}, time(start)),
      number(timeLagOf({ time_lag_seconds: isExact("time_lag_seconds")[index], time_lag_known_seconds: history.time_lag_seconds[index] })),
      number(lagOf({ lag: history.lag[index], lag_known: history.lag_known[index] })))).reverse();
    return card("Lag over time",
      el("div", { class: "pair" },
        chart("Time lag", starts, isExact("time_lag_seconds"), history.time_lag_seconds, marks, duration),
        chart("Lag", starts, history.lag, history.lag_known, marks, records)),
      el("p", { class: "legend muted" }, "Dashed: a lower bound. Hatched: unknown. Vertical lines: rebalances.",
        range ? ` A point has the largest value of ${duration(range.point_seconds)}.` : ""),
      range?.gaps.length ? el("p", {}, `Not watched: ${range.gaps.map((gap) => `${moment(gap.gap_from)} to ${moment(gap.gap_to)} (${known(gap.gap_reason)})`).join("; ")}.`) : null,
      el("details", { "data-key": "numbers" }, el("summary", {}, "The numbers"), table("Lag by window", ["Window", "#Time lag", "#Lag"], rows)));
  }

  more(name, rows, few = FEW) {
    if (this.all.has(name) || rows.length <= few) return [rows, null];
    const button = el("button", { type: "button", "data-key": `all ${name}`, onclick: () => this.change(() => this.all.add(name)) }, `Show all ${records(rows.length)}`);
    return [rows.slice(0, few), el("p", {}, button)];
  }

  heat() {
    const { partitions, window_starts: starts, group } = this.found;
    const drawn = partitions.filter((row) => row.history);
    if (!drawn.length) return null;
    const [key, title, write] = MEASURES[this.measure];
    const topics = new Set(partitions.map((row) => row.topic));
    const rows = drawn.map((row) => ({
      name: topics.size > 1 ? `${row.topic}-${row.partition}` : String(row.partition),
      values: row.history[key], status: row.history.status, slots: row.history.slot, newest: key === "lag" ? orUnknown(row.lag, write) : age(row),
      bounds: key === "lag" ? [] : row.history.time_lag_censored,
    }));
    const [shown, button] = this.more("heat", rows, 32);
    const measures = el("div", { class: "chips", role: "group", "aria-label": "Measure" }, Object.entries(MEASURES).map(([name, [, words]]) => el("button", {
      type: "button", class: "chip", "data-key": `measure ${name}`, "aria-pressed": String(name === this.measure), onclick: () => this.change(() => { this.measure = name; }),
    }, words)));
    const left = group.partitions.total - drawn.length;
    return card("Partitions over time, the worst first", measures, heatStrip(shown, starts, write, title, this.place), button,
      left > 0 && !this.topic ? el("p", { class: "muted" }, `${count(left, "more partition")} ${left === 1 ? "is" : "are"} not drawn: less far behind, not known now, or without a window.`) : null);
  }

  lanes() {
    const { partitions, members: present, window_starts: starts, group } = this.found;
    const topics = new Set(partitions.map((row) => row.topic));
    const held = new Map(); // slot -> window -> partitions
    for (const row of partitions) {
      row.history?.slot.forEach((slot, index) => {
        if (slot === null) return;
        if (!held.has(slot)) held.set(slot, starts.map(() => new Map()));
        const of = held.get(slot)[index];
        of.set(row.topic, [...(of.get(row.topic) ?? []), row.partition]);
      });
    }
    if (!held.size) return null;
    const write = (of) => [...of].map(([topic, numbers]) => (topics.size > 1 ? `${topic} ${runs(numbers)}` : runs(numbers))).join("; ");
    const left = group.partitions.total - partitions.filter((row) => row.history).length;
    const here = new Map((present ?? []).map((row) => [row.slot, row]));
    const rows = [...held].map(([slot, windows]) => {
      const segments = [];
      windows.forEach((of, index) => {
        const text = write(of);
        const last = segments.at(-1);
        if (!text) return;
        if (last && last[1] === index - 1 && last[2] === text) last[1] = index;
        else segments.push([index, index, text]);
      });
      return { name: here.get(slot)?.client_id && slot === here.get(slot).member_id ? here.get(slot).client_id : slot, segments, isGone: present !== null && !here.has(slot) };
    }).sort((a, b) => a.isGone - b.isGone || (a.name < b.name ? -1 : 1));
    const [shown, button] = this.more("lanes", rows);
    return card("Members and their partitions over time", lanes(shown, starts), button,
      el("p", { class: "legend muted" }, "Numbers are partitions; ", present === null ? "who is a member now is not known. " : "faded members are not in the newest generation. ",
        left > 0 && !this.topic ? `Only the partitions that are drawn above: ${count(left, "more partition")} may have these readers or others. ` : "", time(starts[0]), " to ", time(starts.at(-1)), "."));
  }

  rebalances() {
    const { rebalances, data_timestamp: end } = this.found;
    const begin = report ? Date.parse(report.since) : Date.parse(end) - 24 * 3600_000;
    const title = report ? `Rebalances since ${moment(begin)}` : "Rebalances of 24 hours";
    if (rebalances === null) return card(title, el("p", {}, UNKNOWN));
    if (!rebalances.length) return card(title, el("p", {}, "none seen"));
    const causes = [...new Set(rebalances.map((row) => row.cause ?? UNKNOWN))].sort();
    const colour = (cause) => causes.indexOf(cause ?? UNKNOWN) % 8;
    const [shown, button] = this.more("rebalances", rebalances, 10);
    const rows = shown.map((row) => el("tr", {},
      el("td", {}, time(row.ended_at)), el("td", {}, el("span", { class: `dot cause${colour(row.cause)}` }), " ", known(row.cause)),
      number(orUnknown(row.rebalance_seconds, duration)), number(`${known(row.members_before)} → ${known(row.members_after)}`),
      number(`${known(row.moved)} (${known(row.avoidable)})`), number(orUnknown(row.pause_max_seconds, duration)),
      number(orUnknown(row.records_delayed, records))));
    const many = `${rebalances.length >= REBALANCES ? "at least " : ""}${count(rebalances.length, "rebalance")}${report ? "" : " in 24 hours"}`;
    return card(title, timeline(rebalances, begin, Date.parse(end), colour, duration, many),
      rebalances.length >= REBALANCES ? el("p", { class: "muted" }, `Only the newest ${REBALANCES} are shown.`) : null,
      el("p", { class: "legend muted" }, "As high as the longest pause of a partition; hollow: not known."),
      table("Rebalances", ["Ended", "Cause", "#Took", "#Members", "#Moved (without need)", "#Longest pause", "#Records delayed"], rows), button,
      el("details", { "data-key": "rebalances" }, el("summary", {}, "In words"), el("ul", {}, shown.map((row) => el("li", {}, row.says.join(" "))))));
  }

  findings() {
    const { findings, diagnosis } = this.found;
    if (findings === null) return card("Open findings", el("p", {}, UNKNOWN, ": the rules have not evaluated this moment."));
    if (!findings.length) return card("Open findings", el("p", {}, "none"));
    const cards = findings.map((row) => el("article", { class: "finding" },
      el("h3", {}, badge(known(row.severity)), " ", known(row.code)),
      el("p", {}, row.says),
      facts([
        ["Role", known(row.role)], ["Where", row.words.where || "the whole group"], ["Confidence", orUnknown(row.confidence, (share) => share.toFixed(2))], ["Since", time(row.started_at)],
      ]),
      el("p", {}, el("strong", {}, "Evidence: "), row.words.evidence || "none"),
      row.words.checked.length ? el("p", {}, el("strong", {}, "Checked: "), row.words.checked.join(", ")) : null,
      row.words.unchecked.length ? el("p", {}, el("strong", {}, "Not checked, as not known: "), row.words.unchecked.join(", ")) : null,
      row.words.wrong_if ? el("p", {}, el("strong", {}, "Wrong if "), row.words.wrong_if, ".") : null,
      row.advice.length ? el("ol", {}, row.advice.map((sentence) => el("li", {}, sentence))) : null,
      row.avoid.length ? el("ul", {}, row.avoid.map((sentence) => el("li", {}, sentence))) : null,
      runbook(row)));
    const hidden = diagnosis.suppressed ? el("p", { class: "muted" }, `${diagnosis.suppressed} more, explained by these.`) : null;
    return card("Open findings", el("div", { class: "cards" }, cards), hidden);
  }

  members() {
    const rows = this.found.members;
    if (!rows?.length) return card("Members now", ...(this.saidOfMembers.length ? this.saidOfMembers : [el("p", {}, UNKNOWN)]));
    const [shown, button] = this.more("members", rows);
    return card("Members now", table("Members now", ["Client", "Host", "Instance", "Partitions", "#Lag", "#Time lag"], shown.map((row) => {
      const of = new Map();
      for (const assignment of row.assigned ?? []) of.set(assignment.topic, [...(of.get(assignment.topic) ?? []), assignment.partition]);
      const held = row.assigned === null ? UNKNOWN : [...of].map(([topic, numbers]) => `${topic ?? UNKNOWN} ${runs(numbers)}`).join("; ") || "none (idle)";
      return el("tr", {}, el("td", {}, known(row.client_id)), el("td", {}, known(row.client_host).replace(/^\//, "")), el("td", {}, row.group_instance_id ?? "–"),
        el("td", {}, held),
        number(lagOf({ lag: row.lag_is_exact ? row.lag : null, lag_known: row.lag })),
        number(timeLagOf({ time_lag_seconds: row.time_lag_is_exact ? row.time_lag_seconds : null, time_lag_known_seconds: row.time_lag_seconds })));
    })), button, ...this.saidOfMembers);
  }

  partitions() {
    const { partitions, group } = this.found;
    const [shown, button] = this.more("partitions", partitions);
    const left = group.partitions.total - partitions.length;
    return card("Partitions now, the worst first", table("Partitions now",
      ["Topic", "#Partition", "#Lag", "#Time lag", "Status", "Verdict", "#Committed", "#Log end", "Last commit", "Read by"], shown.map((row) => el("tr", {},
        el("td", {}, row.topic), number(row.partition), number(orUnknown(row.lag, records)),
        number(age(row)),
        el("td", {}, row.status), el("td", {}, known(row.verdict)), number(orUnknown(row.committed_offset, records)), number(orUnknown(row.log_end_offset, records)),
        el("td", {}, time(row.commit_timestamp)), el("td", {}, reader(row.owner, group))))), button,
    left > 0 && !this.topic ? el("p", { class: "muted" }, `${count(left, "more partition")} ${left === 1 ? "is" : "are"} not listed: less far behind, or not known.`) : null);
  }

  policy() {
    const rows = Object.entries(this.found.policy).map(([name, value]) => el("tr", {}, el("td", {}, el("code", {}, name)), el("td", {}, Array.isArray(value) ? value.join(", ") || "none" : value === "" ? "none" : String(value))));
    return el("section", { class: "card" }, el("h2", {}, "Policy in force"), el("details", { "data-key": "policy" }, el("summary", {}, count(rows.length, "key")), table("Policy", ["Key", "Value"], rows)));
  }

  text(lines) {
    return card("As text", el("details", { "data-key": "text" }, el("summary", {}, "The page of laggard explain, as the terminal prints it"), el("pre", { tabindex: 0, "data-key": "lines" }, lines.map((line) => [line, el("br")]).flat())));
  }
}
