// The lines of `laggard explain` as headings and paragraphs: the same words, broken where this page is wide.
import { el } from "./base.js";

const WIDTH = 100; // of the lines as they come
// a number stays with its unit when a line is broken
const CHUNK = /^\S+(?: (?:[smhd]\b\S*|%\S*|UTC\S*|records\/s\S*|\d\d[ :]\S*))*/;

export function sections(lines) {
  const parts = [];
  let current = null;
  for (const line of lines.slice(lines.indexOf(""))) {
    if (line === "") current = null;
    else if (current) current.lines.push(line);
    else parts.push((current = { title: line, lines: [] }));
  }
  return parts;
}

const isRow = (line) => /\S {2,}\S/.test(line); // of a table, which keeps its columns

// A line goes on with the one before if its first words had no room there: lines are filled greedily
function blocks(lines) {
  const parts = [];
  let before = null;
  for (const line of lines) {
    const text = line.trim();
    const item = /^(- |\d+\. )/.exec(text);
    if (isRow(line)) {
      if (before !== null || !parts.length) parts.push({ tag: "table", rows: [] });
      parts.at(-1).rows.push(text.split(/ {2,}/));
    }
    else if (before !== null && !item && before.length + 1 + CHUNK.exec(text)[0].length > WIDTH) parts.at(-1).text += ` ${text}`;
    else if (item) parts.push({ tag: item[0] === "- " ? "ul" : "ol", text: text.slice(item[0].length) });
    else parts.push({ tag: line.startsWith("    ") ? "ul" : "p", text });
    before = isRow(line) ? null : line;
  }
  return parts;
}

function table([heads, ...rows]) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": heads.join(", "), "data-key": heads.join(" ") }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head.toLowerCase())))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))));
}

export function prose(lines, hasTables = true) {
  const nodes = [];
  for (const { tag, text, rows } of blocks(lines)) {
    if (rows && hasTables) nodes.push(table(rows));
    else if (rows || (!hasTables && text.startsWith("…"))) continue; // of a table that is shown elsewhere, and its end
    else if (tag === "p") nodes.push(el("p", {}, text));
    else {
      if (nodes.at(-1)?.tagName !== tag.toUpperCase()) nodes.push(el(tag));
      nodes.at(-1).append(el("li", {}, text));
    }
  }
  return nodes;
}
