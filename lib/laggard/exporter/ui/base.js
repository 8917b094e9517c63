// Elements, numbers and times, as every view writes them. Text goes in as text nodes only, so no name can become markup.
const SVG = "http://www.w3.org/2000/svg";

// letters that turn a line around, end it, or show nothing: a client may have any of them in its name
const ODD = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const printable = (text) => text.replace(ODD, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? printable(value) : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : printable(String(child)));
  }
  return node;
}

export const el = (tag, props = {}, ...children) => filled(document.createElement(tag), props, children);
export const svg = (tag, props = {}, ...children) => filled(document.createElementNS(SVG, tag), props, children);

export const UNKNOWN = "unknown";
const isNone = (value) => value === null || value === undefined;
export const known = (value) => (isNone(value) ? UNKNOWN : String(value));

// 4 s, 3 m 05 s, 1 h 04 m: two units at most, as in the terminal
export function duration(seconds) {
  const whole = Math.floor(seconds);
  for (const [size, unit, small, part] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (whole >= size) {
      const rest = Math.floor((whole % size) / small);
      return `${Math.floor(whole / size)} ${unit} ${String(rest).padStart(2, "0")} ${part}`;
    }
  }
  return `${whole} s`;
}

// for axes: 30 s, 7 m, 1 h 30 m; 500, 20 k, 1 G
export const shortDuration = (seconds) => duration(seconds).replace(/ 00 \w$/, "");
export function shortRecords(number) {
  const [size, unit] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([bound]) => number >= bound) ?? [1, ""];
  return `${number / size}${unit}`;
}

export const records = (number) => number.toLocaleString("en-US");

// the exact value; else what is known of it, as a lower bound; else the word
export function bounded(exact, bound, write) {
  if (!isNone(exact)) return write(exact);
  return isNone(bound) ? UNKNOWN : `≥ ${write(bound)}`;
}
export const lagOf = (row) => bounded(row.lag, row.lag_known, records);
export const timeLagOf = (row) => bounded(row.time_lag_seconds, row.time_lag_known_seconds, duration);
export const orUnknown = (value, write) => (isNone(value) ? UNKNOWN : write(value));

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const MOMENT = new Intl.DateTimeFormat("sv-SE", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
export const utc = (at) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
export const clock = (at) => CLOCK.format(new Date(at));
export const dayClock = (at) => moment(at).slice(5, 16);
export const moment = (at) => MOMENT.format(new Date(at));
// in the viewer's zone; UTC on hover
export const time = (at, write = moment) =>
  isNone(at) ? UNKNOWN : el("time", { datetime: new Date(at).toISOString(), title: utc(at) }, write(at));

export const badge = (word, kind = word) => el("span", { class: `badge is-${kind}` }, word);
export const count = (number, noun) => `${records(number)} ${noun}${number === 1 ? "" : "s"}`;

// 0-3, 7: as the terminal writes partitions
export function runs(numbers) {
  const ranges = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

// other choices of a list, which may be open: nothing is touched where they are the same
export function choose(select, none, names) {
  const before = [...select.options].map((option) => option.value);
  if (before.length === names.length + 1 && names.every((name, index) => name === before[index + 1])) return;
  select.replaceChildren(el("option", { value: "" }, none), ...names.map((name) => el("option", { value: name }, name)));
}

const keyOf = (node) => node?.dataset?.key ?? (node?.tagName === "SUMMARY" ? `${node.parentElement.dataset.key} summary` : null);

// new content where old was: focus, what was unfolded, and how far lists were scrolled stay
export function replaceKept(container, ...nodes) {
  const keyed = () => [...container.querySelectorAll("[data-key], summary")].map((node) => [keyOf(node), node]);
  const focused = container.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  const before = new Map(keyed().map(([key, node]) => [key, { open: node.open, left: node.scrollLeft, top: node.scrollTop }]));
  container.replaceChildren(...nodes);
  for (const [key, node] of keyed()) {
    const was = before.get(key);
    if (was?.open) node.open = true;
    if (was) node.scrollTo?.(was.left, was.top);
    if (focused !== null && key === focused) node.focus({ preventScroll: true });
  }
}
