// Small pictures in SVG. A value that is null is unknown: it breaks the line or is hatched, and is never drawn as 0.
import { clock, dayClock, duration, el, known, moment, shortDuration, shortRecords, svg, time, utc } from "./base.js";

// stretches without a null between them: [[index, value], …]
function stretches(values) {
  const segments = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (index && values[index - 1] !== null && segments.length) segments.at(-1).push([index, value]);
    else segments.push([[index, value]]);
  });
  return segments;
}

// `bounds`: places of values that are lower bounds
export function sparkline(values, bounds, title, write) {
  const numbers = values.filter((value) => value !== null);
  if (!numbers.length) return el("span", { class: "muted" }, "unknown");
  const most = Math.max(...numbers, 1e-9);
  const step = 116 / Math.max(1, values.length - 1);
  const y = (value) => (21 - (value / most) * 18).toFixed(1);
  const newest = values.at(-1) === null ? "unknown" : `${bounds.includes(values.length - 1) ? "≥ " : ""}${write(values.at(-1))}`;
  const label = `${title}: highest ${bounds.length ? "≥ " : ""}${write(Math.max(...numbers))}, newest ${newest}`;
  return svg("svg", { class: "spark", viewBox: "0 0 120 24", width: 120, height: 24, role: "img", "aria-label": label },
    svg("title", {}, label),
    stretches(values).map((points) => points.length > 1
      ? svg("polyline", { points: points.map(([index, value]) => `${(2 + index * step).toFixed(1)},${y(value)}`).join(" ") })
      : svg("circle", { cx: (2 + points[0][0] * step).toFixed(1), cy: y(points[0][1]), r: 1.5 })));
}

const DAY = 86400;
const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, DAY, 2 * DAY];

// from 0 in whole steps that a person counts in
function ticks(most, isTime) {
  const rough = most / 3;
  const unit = isTime ? DAY : 1;
  const power = Math.max(unit, unit * 10 ** Math.floor(Math.log10(rough / unit)));
  const step = (isTime && SPANS.find((span) => span >= rough)) || [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, number) => number * step);
}

const WIDTH = 600, HEIGHT = 150, BOTTOM = 130, TOP = 8;
const isNarrow = () => innerWidth <= 700; // there letters are larger: see .axis

// One series over windows, with what is known of it where the whole is not (dashed: a lower bound), and moments as lines
export function chart(title, starts, exact, bound, marks, write) {
  const both = exact.map((value, index) => value ?? bound[index]);
  const numbers = both.filter((value) => value !== null);
  const most = Math.max(...numbers, 0) * 1.05 || 1;
  const isTime = write === duration;
  const levels = ticks(most, isTime).map((value) => [value, (isTime ? shortDuration : shortRecords)(value)]);
  const LEFT = 12 + Math.max(...levels.map(([, text]) => text.length)) * (isNarrow() ? 11 : 7.5);
  const first = Date.parse(starts[0]);
  const span = Date.parse(starts.at(-1)) - first || 1;
  const writeTime = span > DAY * 1000 ? dayClock : clock;
  const step = (WIDTH - LEFT - 8) / Math.max(1, starts.length - 1);
  const x = (index) => LEFT + index * step;
  const y = (value) => BOTTOM - (value / most) * (BOTTOM - TOP);
  const line = (values, kind) => stretches(values).map((points) => points.length > 1
    ? svg("polyline", { class: kind, points: points.map(([index, value]) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ") })
    : svg("circle", { class: `${kind} dot`, cx: x(points[0][0]), cy: y(points[0][1]), r: 2.5 }));
  const say = (index) => {
    const value = exact[index] ?? bound[index];
    const words = value === null ? "unknown" : `${exact[index] === null ? "≥ " : ""}${write(value)}`;
    return `${writeTime(starts[index])}: ${words}`;
  };
  const newest = say(starts.length - 1);
  const readout = el("output", { class: "readout" }, newest);
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: BOTTOM, x1: -9, x2: -9 });
  const gaps = both.map((value, index) => (value === null
    ? svg("rect", { x: x(index) - step / 2, y: TOP, width: step, height: BOTTOM - TOP, fill: "url(#hatch)" }) : null));
  const seen = marks.filter((mark) => Date.parse(mark.at) >= first && Date.parse(mark.at) <= first + span);
  const label = numbers.length ? `${title}: highest ${exact.includes(null) ? "≥ " : ""}${write(Math.max(...numbers))}; newest ${newest}` : `${title}: unknown`;
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    levels.map(([value, text]) => [
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      svg("text", { class: "axis end", x: LEFT - 6, y: y(value) + 4 }, text),
    ]).flat(),
    [0, 0.5, 1].map((share) => svg("text", {
      class: `axis ${share === 1 ? "end" : share ? "middle" : ""}`, x: LEFT + share * (WIDTH - LEFT - 8), y: HEIGHT - 4,
    }, writeTime(first + share * span))),
    gaps,
    seen.map((mark) => {
      const at = LEFT + ((Date.parse(mark.at) - first) / span) * (WIDTH - LEFT - 8);
      return svg("line", { class: "mark", x1: at, x2: at, y1: TOP, y2: BOTTOM }, svg("title", {}, mark.title));
    }),
    line(bound.map((value, index) => (exact[index] === null || exact[index + 1] === null || exact[index - 1] === null ? value : null)), "bound"),
    line(exact, "line"), cursor);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const index = Math.max(0, Math.min(starts.length - 1, Math.round((at - LEFT) / step)));
    cursor.setAttribute("x1", x(index));
    cursor.setAttribute("x2", x(index));
    readout.textContent = say(index);
    readout.title = utc(starts[index]);
  });
  return el("figure", {}, el("figcaption", {}, title, " ", readout), picture);
}

// the pattern of everything unknown; once in a page
export const hatch = () => svg("svg", { class: "unseen", "aria-hidden": "true" }, svg("defs", {},
  svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("line", { class: "hatching", x1: 0, y1: 0, x2: 0, y2: 6 }))));

const STEPS = 6;
// 0: nothing; then by square roots up to the largest; -1: unknown
function level(value, most) {
  if (value === null) return -1;
  if (value <= 0) return 0;
  return Math.max(1, Math.ceil(STEPS * Math.sqrt(value / most)));
}

// The rows of partitions over windows, dark where much is unread; a line where the owner changed
// `cell` is the chosen one, also for the next picture
export function heatStrip(rows, starts, write, unit, cell) {
  const values = rows.flatMap((row) => row.values.filter((value) => value !== null));
  const most = Math.max(...values, 1);
  const readout = el("output", { class: "readout", "aria-live": "polite" }, "Point at a cell, or use the arrow keys");
  const say = (row, index) => {
    Object.assign(cell, { name: row.name, start: starts[index] });
    const value = row.values[index];
    const status = row.status[index] && row.status[index] !== "ok" ? ` (${row.status[index]})` : "";
    readout.textContent = `${row.name}, ${clock(starts[index])}: ${value === null ? "unknown" : `${row.bounds[index] ? "≥ " : ""}${write(value)}`}${status}, read by ${row.slots[index] ?? "nobody known"}`;
  };
  const chosen = [rows.findIndex((row) => row.name === cell.name), starts.indexOf(cell.start)];
  const isKept = !chosen.includes(-1);
  let at = isKept ? chosen : [0, starts.length - 1];
  const lines = rows.map((row) => {
    const width = 10;
    const cells = [];
    let begin = 0;
    row.values.forEach((value, index) => { // neighbours of one level are one rectangle
      if (index + 1 < row.values.length && level(row.values[index + 1], most) === level(value, most)) return;
      const step = level(value, most);
      cells.push(svg("rect", { class: step < 0 ? "" : `heat${step}`, fill: step < 0 ? "url(#hatch)" : null, x: begin * width, y: 0, width: (index + 1 - begin) * width, height: 14 }));
      begin = index + 1;
    });
    let last = null;
    row.slots.forEach((slot, index) => {
      if (slot && last && slot !== last) cells.push(svg("rect", { class: "change", x: index * width - 1.5, y: 0, width: 3, height: 14 }, svg("title", {}, `${clock(starts[index])}: now read by ${slot}`)));
      last = slot ?? last;
    });
    return el("div", { class: "strip" }, el("span", { class: "name", title: row.name }, row.name),
      svg("svg", { viewBox: `0 0 ${starts.length * width} 14`, preserveAspectRatio: "none", "aria-hidden": "true" }, cells),
      el("span", { class: "value" }, row.newest));
  });
  const strip = el("div", { class: "strips", tabindex: 0, role: "group", "aria-label": `${unit} of ${rows.length} partitions in ${starts.length} windows`, "data-key": "strips" }, lines);
  strip.addEventListener("pointermove", (event) => {
    const line = event.target.closest(".strip");
    if (!line) return;
    const box = line.querySelector("svg").getBoundingClientRect();
    const index = Math.floor(((event.clientX - box.left) / box.width) * starts.length);
    if (index < 0 || index >= starts.length) return;
    at = [lines.indexOf(line), index];
    say(rows[at[0]], index);
  });
  strip.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    at = [Math.max(0, Math.min(rows.length - 1, at[0] + step[0])), Math.max(0, Math.min(starts.length - 1, at[1] + step[1]))];
    lines.forEach((line, index) => line.classList.toggle("here", index === at[0]));
    say(rows[at[0]], at[1]);
  });
  if (isKept) {
    lines[at[0]].classList.add("here");
    say(rows[at[0]], at[1]);
  }
  const keys = Array.from({ length: STEPS }, (_, step) => svg("rect", { class: `heat${step + 1}`, x: 14 * (step + 1), y: 0, width: 14, height: 12 }));
  const legend = el("p", { class: "legend muted" }, "nothing unread ",
    svg("svg", { width: 98, height: 12, "aria-hidden": "true" }, svg("rect", { class: "heat0", x: 0, y: 0, width: 14, height: 12 }), keys), ` ${write(most)} · `,
    svg("svg", { width: 14, height: 12, "aria-hidden": "true" }, svg("rect", { fill: "url(#hatch)", width: 14, height: 12 })), " unknown · ",
    svg("svg", { width: 4, height: 12, "aria-hidden": "true" }, svg("rect", { class: "change", width: 3, height: 12 })), " another reader · ",
    time(starts[0], clock), " to ", time(starts.at(-1), clock));
  return el("div", {}, strip, readout, legend);
}

// What each reader had over time: a segment for each assignment
export function lanes(rows, starts) {
  return el("div", { class: "lanes" }, rows.map((row) => {
    const bar = el("div", { class: "bar" }, row.segments.map(([begin, end, text], number) => {
      const title = `${clock(starts[begin])} to ${clock(Date.parse(starts[end]) + (Date.parse(starts[1]) - Date.parse(starts[0])))}: ${text}`;
      const segment = el("span", { class: `segment tone${number % 2}`, title }, text);
      segment.style.gridColumn = `${begin + 1} / ${end + 2}`;
      return segment;
    }));
    bar.style.gridTemplateColumns = `repeat(${starts.length}, minmax(0, 1fr))`;
    return el("div", { class: row.isGone ? "lane gone" : "lane" }, el("span", { class: "name", title: row.name }, row.name), bar);
  }));
}

// Rebalances of a day, or of the range of a report, as bars on a line, as high as their longest pause
export function timeline(rows, begin, end, colour, write, count) {
  const hour = 3600_000;
  const width = isNarrow() ? 400 : 1200; // letters keep their size
  const first = Math.min(...rows.map((row) => Date.parse(row.ended_at)), end - hour);
  const span = Math.min(end - begin, (end - first) * 1.02);
  const writeTime = span > DAY * 1000 ? dayClock : clock;
  const pauses = rows.map((row) => row.pause_max_seconds).filter((pause) => pause !== null);
  const most = Math.max(...pauses, 1);
  const x = (at) => ((Date.parse(at) - (end - span)) / span) * width;
  const longest = pauses.length ? `${pauses.length < rows.length ? "at least " : ""}${write(Math.max(...pauses))}` : "unknown";
  const label = `${count}; the longest pause ${longest}`;
  return svg("svg", { class: "chart timeline", viewBox: `0 0 ${width} 80`, role: "img", "aria-label": label },
    svg("line", { class: "grid", x1: 0, x2: width, y1: 60, y2: 60 }),
    [0, 1, 2, 3, 4].map((quarter) => svg("text", { class: `axis ${["", "middle", "middle", "middle", "end"][quarter]}`, x: (quarter * width) / 4, y: 76 },
      writeTime(end - ((4 - quarter) / 4) * span))),
    rows.map((row) => {
      const pause = row.pause_max_seconds;
      const height = pause === null ? 8 : 4 + (50 * pause) / most;
      return svg("rect", {
        class: pause === null ? "open" : `cause${colour(row.cause)}`,
        x: Math.max(0, x(row.ended_at) - 1.5), y: 60 - height, width: 4, height,
      }, svg("title", {}, `${moment(row.ended_at)}: ${known(row.cause)}, longest pause ${pause === null ? "unknown" : write(pause)}`));
    }));
}
