// The lines of `laggard explain` as headings and paragraphs: the same words, broken where this page is wide.
import { el } from "./base.js";

const WIDTH = 100; // of the lines as they come
// a number stays with its unit when a line is broken
const CHUNK = /^\S+(?: (?:[smhd]\b\S*|%\S*|UTC\S*|records\/s\S*|\d\d[ :]\S*))*/;

export function sections(lines) {
  const found = [];
  let current = null;
  for (const line of lines.slice(lines.indexOf(""))) {
    if (line === "") current = null;
    else if (current) current.lines.push(line);
    else found.push((current = { title: line, lines: [] }));
  }
  return found;
}

const isRow = (line) => /\S {2,}\S/.test(line); // of a table, which keeps its columns

// A line goes on with the one before if its first words had no room there: lines are filled greedily
function blocks(lines) {
  const found = [];
  let before = null;
  for (const line of lines) {
    const text = line.trim();
    const item = /^(- |\d+\. )/.exec(text);
    if (isRow(line)) {
      if (before !== null || !found.length) found.push({ tag: "table", rows: [] });
      found.at(-1).rows.push(text.split(/ {2,}/));
    }
    else if (before !== null && !item && before.length + 1 + CHUNK.exec(text)[0].length > WIDTH) found.at(-1).text += ` ${text}`;
    else if (item) found.push({ tag: item[0] === "- " ? "ul" : "ol", text: text.slice(item[0].length) });
    else found.push({ tag: line.startsWith("    ") ? "ul" : "p", text });
    before = isRow(line) ? null : line;
  }
  return found;
}

function table([heads, ...rows]) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": heads.join(", "), "data-key": heads.join(" ") }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head.toLowerCase())))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))));
}

export function prose(lines, hasTables = true) {
  const found = [];
  for (const { tag, text, rows } of blocks(lines)) {
    if (rows && hasTables) found.push(table(rows));
    else if (rows || (!hasTables && text.startsWith("…"))) continue; // of a table that is shown elsewhere, and its end
    else if (tag === "p") found.push(el("p", {}, text));
    else {
      if (found.at(-1)?.tagName !== tag.toUpperCase()) found.push(el(tag));
      found.at(-1).append(el("li", {}, text));
    }
  }
  return found;
}
