// SPDX-License-Identifier: Apache-2.0
// Markdown as far as runbooks use it: headings, lists, tables, code, emphasis, links. Elements are made one by one, and
// text stays text: whatever a runbook contains becomes no markup of the page.

import { text, element } from "./words.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/;
const ITEM = /^([-*]|\d+\.) +/;
const RUNBOOK = /^([A-Za-z0-9]+)\.md$/;

// Links to other runbooks call `open`; other sites open beside the page; anything else is only its words.
function link(words, target, open) {
  const runbook = RUNBOOK.exec(target);
  if (runbook) return element("button", { type: "button", class: "link", "data-runbook": runbook[1], onclick: () => open(runbook[1]) }, ...inline(words, open));
  return /^https:\/\//.test(target) ? element("a", { href: target, target: "_blank", rel: "noreferrer" }, ...inline(words, open)) : words;
}

function inline(text, open) {
  const found = INLINE.exec(text);
  if (!found) return text ? [text] : [];
  const [all, , code, strong, words, target] = found;
  const made = code !== undefined ? element("code", {}, code.trim()) : strong !== undefined ? element("strong", {}, ...inline(strong, open)) : link(words, target, open);
  return [...inline(text.slice(0, found.index), open), made, ...inline(text.slice(found.index + all.length), open)];
}

// A bar inside of code divides no cells.
const cells = (line) => line.replace(/^\||\|\s*$/g, "").split(/\|(?=(?:[^`]*`[^`]*`)*[^`]*$)/).map((one) => one.trim());

function table(lines, open) {
  const row = (line, name) => element("tr", {}, ...cells(line).map((one) => element(name, {}, ...inline(one, open))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("table") }, element("table", {}, element("thead", {}, row(lines[0], "th")), element("tbody", {}, ...lines.slice(2).map((line) => row(line, "td")))));
}

// Lines of a list; those that are indented continue the item above.
function list(lines, open, below) {
  const items = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items[items.length - 1] += " " + line.trim();
  }
  return element(/^\d/.test(lines[0]) ? "ol" : "ul", {}, ...items.map((item) => element("li", {}, ...inline(item, open), below(item))));
}

// `title` is shown elsewhere: a first heading with the same words is left out. `below`: what is to stand below a text, or
// null.
export function markdown(text, title, open, below = () => null) {
  const lines = text.replace(/<!--[\s\S]*?-->/g, "").split("\n");
  const made = [];
  let at = 0;
  const take = (while_) => {
    const from = at;
    while (at < lines.length && while_(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  const plain = (line) => line.trim() !== "" && !/^(#+ |```| {4}|\|)/.test(line) && !ITEM.test(line);
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#+) +(.*?)\s*$/.exec(line);
    if (line.trim() === "") at += 1;
    else if (heading) {
      at += 1;
      if (made.length || heading[2] !== title) made.push(element(heading[1].length > 2 ? "h4" : "h3", {}, ...inline(heading[2], open)));
    } else if (line.startsWith("```")) {
      at += 1;
      made.push(element("pre", {}, element("code", {}, take((one) => !one.startsWith("```")).join("\n"))));
      at += 1;
    } else if (/^ {4}/.test(line)) made.push(element("pre", {}, element("code", {}, take((one) => /^ {4}/.test(one)).map((one) => one.slice(4)).join("\n"))));
    else if (line.startsWith("|")) made.push(table(take((one) => one.startsWith("|")), open));
    else if (ITEM.test(line)) made.push(list(take((one) => ITEM.test(one) || /^ +\S/.test(one)), open, below));
    else {
      const words = take(plain);
      if (words.length === 0) at += 1; // nothing else would take it
      const said = (words.length ? words : [line]).map((one) => one.trim()).join(" ");
      made.push(element("p", {}, ...inline(said, open)), below(said));
    }
  }
  return made.filter(Boolean);
}
