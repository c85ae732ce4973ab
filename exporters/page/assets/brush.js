// SPDX-License-Identifier: Apache-2.0
// A range that was brushed in a chart: closer, or compared with the same length before it or the same time the day before, by
// the engine of `ssdpulse report`. The range and what it is compared with are in the URL.

import { text, element, latency, bytes, count, short, percent, duration, clock, date, some } from "./words.js";

const MINUTE = 60; // the history's resolution
const WRITTEN_AFTER = 70; // seconds after its end, at most, a minute is in the history
const MAX_COMPARED = 6 * 3600; // seconds
const AGAINST = { before: (length) => text("compareBefore", length), yesterday: () => text("compareYesterday") };
const ORDER = ["worse", "better", "not comparable", "cannot tell", "same"];
const UNITS = { seconds: latency, share: percent, ratio: short, "bytes/day": (value) => text("aDay", bytes(value)), "1/second": (value) => `${count(value)}/s`, "bytes/second": (value) => `${bytes(value)}/s`, bytes, count, celsius: (value) => `${short(value)} °C` };
const textOf = ({ unit }, value) => (value == null ? text("noData") : UNITS[unit](value));

// "read.without_discard.p99" -> "read p99, without discard"
function nameOf({ id }) {
  const [kind, ...more] = id.replaceAll("_", " ").split(/\.(?!9$)/);
  const figure = more.pop() ?? "";
  return [`${kind === "commit" ? "fsync" : kind} ${figure}`, ...more].join(", ");
}

// As a factor where it is large; bounds that say nothing are left out.
function changeOf({ change, adjusted_change: adjusted }) {
  const one = adjusted ?? change;
  if (!one?.ratio) return "";
  const words = (ratio) => (ratio > 2 || ratio < 0.5 ? `× ${short(ratio)}` : `${ratio >= 1 ? "+" : "−"}${short(Math.abs(ratio - 1) * 100)} %`);
  const known = one.lower > 0.01 && one.upper < 100;
  return words(one.ratio) + (known ? ` (${text("span", words(one.lower), words(one.upper))})` : "");
}

// What decides is named, in a sentence; the rest is counted.
function summaryOf(rows) {
  const of = (verdict) => rows.filter((row) => row.verdict === verdict);
  const named = (verdict, words) => {
    const names = of(verdict).map(nameOf);
    return names.length ? `${words}: ${some(names, 3, "; ")}.` : "";
  };
  const counts = ORDER.slice(2).map((verdict) => [verdict, of(verdict).length]).filter(([, number]) => number > 0);
  const rest = counts.map(([verdict, number]) => `${number} ${verdict}`).join(", ");
  const decided = [named("worse", text("worse")), named("better", text("better"))].filter(Boolean);
  return [...(decided.length ? decided : [text("nothingDecided")]), rest ? text("ofTheRest", rest) : ""].filter(Boolean).join(" ");
}

export class Brush {
  constructor(view, app) {
    Object.assign(this, { view, app, range: null, against: null, answers: new Map() });
    this.words = element("p");
    this.result = element("div", { "aria-live": "polite" });
    const button = (words, id, onclick) => element("button", { type: "button", id, onclick }, words);
    this.closer = button(text("lookCloser"), "brush-closer", () => view.show(...this.range));
    this.buttons = new Map(Object.keys(AGAINST).map((against) => [against, button("", `brush-${against}`, () => this.compare(against))]));
    this.root = element("section", { class: "brush", "aria-label": text("selectedRange"), hidden: true }, this.words,
      element("div", { class: "group" }, this.closer, ...this.buttons.values(), button(text("clear"), "brush-clear", () => this.clear())), this.result);
  }

  // From the URL: "FROM-TO".
  configure({ select, against }) {
    const [, from, to] = /^(\d{1,12})-(\d{1,12})$/.exec(select ?? "") ?? [];
    this.range = to > from ? [Number(from), Number(to)] : null;
    this.against = this.range && against in AGAINST ? against : null;
    this.show();
  }

  drag(a, b) {
    this.range = [Math.min(a, b), Math.max(a, b)];
    this.view.setCursor(b);
  }

  done() {
    this.range = [Math.floor(this.range[0]), Math.max(Math.floor(this.range[0]) + 1, Math.ceil(this.range[1]))];
    this.against = null;
    this.note();
  }

  // By the keyboard: where it begins, then where it ends.
  mark(time) {
    if (this.begun == null) {
      this.begun = time;
      this.drag(time, time + this.view.step);
      return;
    }
    this.drag(this.begun, time);
    this.begun = null;
    this.done();
  }

  clear() {
    this.range = this.against = this.begun = null;
    this.note();
    this.view.redraw();
  }

  note() {
    this.app.note({ select: this.range && this.range.join("-"), against: this.against });
    this.show();
    this.view.redraw();
  }

  compare(against) {
    this.against = this.against === against ? null : against;
    this.scrolls = true; // to the result: somebody on this page asked for it
    this.note();
  }

  // What is shown, up to the last minute that the history has by now.
  compareShown() {
    if (this.view.until === undefined) return; // nothing is known yet
    const end = Math.floor(Math.min(this.view.until, Date.now() / 1000 - WRITTEN_AFTER) / MINUTE) * MINUTE;
    const from = Math.max(Math.floor(this.view.from / MINUTE) * MINUTE, end - MAX_COMPARED);
    this.range = [Math.min(from, end - MINUTE), end];
    this.begun = null;
    this.against = "yesterday";
    this.scrolls = true;
    this.note();
  }

  // Whole minutes are compared: the history has no shorter ones, but around slow times.
  get minutes() { return [Math.floor(this.range[0] / MINUTE) * MINUTE, Math.ceil(this.range[1] / MINUTE) * MINUTE]; }

  show() {
    this.root.hidden = !this.range;
    if (!this.range) return;
    const [from, to] = this.range;
    const day = date(from) === date(to) ? "" : `${date(to)} `;
    const [begin, end] = this.minutes;
    this.words.textContent = text("selected", this.view.time(from), `${day}${clock(to)}`, duration(to - from));
    for (const [against, button] of this.buttons) {
      button.textContent = AGAINST[against](duration(end - begin));
      button.setAttribute("aria-pressed", against === this.against);
      button.disabled = end - begin > MAX_COMPARED;
    }
    if (!this.against) {
      this.asked = null;
      this.result.replaceChildren();
    } else this.ask(begin, end, this.against);
  }

  async ask(from, to, against) {
    const key = `${this.view.device} ${from} ${to} ${against}`;
    if (key === this.asked) return;
    this.asked = key;
    this.result.replaceChildren(element("p", { class: "faint" }, text("comparing")));
    let made = null;
    try {
      const answer = await fetch(`api/v1/compare/${encodeURIComponent(this.view.device)}?from=${from}&to=${to}&against=${against}`, { signal: AbortSignal.timeout(15000) });
      made = answer.ok ? this.table((await answer.json()).devices[0], against) : [element("p", { class: "faint" }, text("notCompared", (await answer.text()).trim().slice(0, 300)))];
    } catch (error) {
      made = [element("p", { class: "faint" }, text("notCompared", text("noAnswer")))];
    }
    if (key === this.asked) {
      this.result.replaceChildren(...made);
      if (this.scrolls) this.root.scrollIntoView({ block: "nearest" }); // the button may be above the charts, and the result below
      this.scrolls = false;
    }
    if (made.length === 1) this.asked = null; // may be answered later
  }

  table({ rows, load, before, after }, against) {
    const judged = rows.filter((row) => ORDER.includes(row.verdict)).sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
    const left = rows.length - judged.length;
    const cell = (words) => element("td", { class: "number" }, words);
    const window = ({ from, to }) => text("span", clock(from).slice(0, 5), clock(to).slice(0, 5));
    const head = [text("figure"), against === "before" ? window(before) : text("theDayBefore", window(before)), window(after), text("changeHead"), text("verdict")];
    const loads = load.filter((row) => row.before || row.after).map((row) => `${nameOf(row)} ${textOf(row, row.before)} → ${textOf(row, row.after)}`);
    return [element("p", {}, judged.length ? summaryOf(judged) : text("tooFewToCompare")),
      judged.length ? element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("asTableOf", text("comparison")) }, element("table", {}, element("thead", {}, element("tr", {}, ...head.map((one, i) => element("th", { scope: "col", class: i > 0 && i < 4 ? "number" : "" }, one)))),
        element("tbody", {}, ...judged.map((row) => element("tr", { "data-verdict": row.verdict, title: row.reason ?? "" }, element("td", {}, nameOf(row)), cell(textOf(row, row.before)), cell(textOf(row, row.after)), cell(changeOf(row)), element("td", {}, row.verdict)))))) : "",
      element("p", { class: "faint" }, [loads.length ? text("load", loads.join("; ")) : "", left === 1 ? text("tooFewOne") : left ? text("tooFewMany", left) : ""].filter(Boolean).join(" "))];
  }
}
