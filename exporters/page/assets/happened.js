// SPDX-License-Identifier: Apache-2.0
// What happened: slow times, bursts, waits and notes as a lane below the heatmap, in words below it, and one explained.

import { text, element, latency, bytes, short, duration, clock, exact, many, manyOf, plural, shortPlural } from "./words.js";
import { Plot, colour } from "./plot.js";
import { CAUSES } from "./causes.js";

const MEMORY = 900; // seconds: the most that is kept second by second around a slow time
const MAX_MARKS = 40; // that are in the list
const LISTED = 5; // of them without a click
const ROW = 18; // pixels
const ROWS = [...["read", "write", "flush", "discard", "commit"].map((kind) => [kind, shortPlural(kind)]), ["bursts", text("bursts")], ["waits", text("heldUp")], ["notes", text("notes")]];
const OTHERS = { bursts: ["--c4", text("burst"), text("aBurst")], waits: ["--c3", text("heldUp"), text("heldUpAbove")],
  settings: ["--ink", text("changed"), text("aSettingChanged")], marks: ["--ink", text("mark"), text("aMark")], clock: ["--ink", text("clock"), text("theClockWasSet")] };

const causeOf = (mark) => CAUSES[mark.cause] ?? CAUSES.unknown;
export const kindOf = (mark) => (mark.kind === "spikes" ? (CAUSES[mark.cause] ? mark.cause : "unknown") : mark.kind);
const rowOf = (mark) => (mark.kind === "spikes" ? mark.operation : mark.kind in { bursts: 1, waits: 1 } ? mark.kind : "notes");
const inkOf = (mark) => (mark.kind === "spikes" ? causeOf(mark).colour : colour(OTHERS[mark.kind][0]));
const nounOf = (mark) => (mark.kind !== "spikes" ? OTHERS[mark.kind][1] : causeOf(mark) === CAUSES.unknown ? text("causeUnknown") : causeOf(mark).noun);
const legendOf = (mark) => (mark.kind === "spikes" ? causeOf(mark).legend : OTHERS[mark.kind][2]);

// Over the same time as the charts: a row for each kind, a bar for each mark, with its cause in words where there is room.
class Lane extends Plot {
  constructor(view) {
    super(view, text("slowTimes"), true);
    this.root.classList.add("lane");
    this.details.remove();
    this.summary.remove();
  }

  draw() {
    const rows = ROWS.filter(([name]) => this.view.marks?.some((mark) => rowOf(mark) === name));
    this.surface.style.height = `${26 + ROW * rows.length}px`;
    const context = this.begin();
    if (!context) return;
    this.timeAxis(context);
    rows.forEach(([name, words], at) => this.row(context, this.view.marks.filter((mark) => rowOf(mark) === name), words, this.box.top + at * ROW));
    this.cursorLine(context);
  }

  row(context, marks, words, top) {
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = colour("--faint");
    context.fillText(words, this.box.left - 6, top + ROW / 2);
    context.fillStyle = colour("--grid");
    context.fillRect(this.box.left, top + ROW / 2, this.box.width, 1);
    const right = this.box.left + this.box.width;
    const spans = marks.map((mark) => [mark, Math.max(this.box.left, this.x(mark.begin)), Math.min(right, this.x(mark.end ?? this.view.until))]).filter(([, from, to]) => to >= this.box.left && from <= right);
    context.textAlign = "left";
    spans.forEach(([mark, from, to], i) => {
      const width = Math.max(3, to - from);
      context.fillStyle = inkOf(mark);
      context.fillRect(from, top + 3, width, ROW - 6);
      const noun = nounOf(mark);
      const room = (spans[i + 1]?.[1] ?? right) - from - width - 8;
      context.fillStyle = colour("--ink");
      if (context.measureText(noun).width < room) context.fillText(noun, from + width + 4, top + ROW / 2);
    });
  }

  describe() {
    this.surface.setAttribute("aria-label", `${text("laneSays", many(this.view.marks.length, text("mark"), text("marks")))} ${text("chartKeys")}`);
  }
}

export class Happened {
  constructor(view, app) {
    Object.assign(this, { view, app, chosen: null });
    this.lane = new Lane(view);
    this.legend = element("p", { class: "key", id: "marks-legend" });
    this.list = element("ul", { class: "marks" });
    this.rest = element("details", { hidden: true }, element("summary"), element("ul", { class: "marks" }));
    this.explanation = element("div", { "aria-live": "polite" });
    this.root = element("div", {}, this.lane.root, view.brush.root, this.legend, this.list, this.rest, this.explanation);
  }

  forget() {
    this.shown = null;
    this.explanation.replaceChildren();
  }

  // `explains`: a link leads to this window, so the slow time that it is about is explained. `empty`: what is said if
  // there are none. `cut`: there are more before these.
  show(marks, explains, empty, cut) {
    const chosen = marks.find((mark) => mark.id === this.chosen);
    if (chosen && chosen.end === null) this.explain(chosen);
    const key = JSON.stringify([explains, empty, cut, ...marks.map((mark) => [mark.id, mark.kind, mark.cause, mark.end])]);
    if (key === this.shown) return;
    this.shown = key;
    this.lane.root.hidden = marks.length === 0;
    this.lane.describe();
    this.showLegend(marks);
    if (marks.length === 0) {
      this.list.replaceChildren(empty ? element("li", { class: "faint" }, empty) : "");
      this.rest.hidden = true;
      return;
    }
    if (explains) this.explainNewest(marks);
    // Of many, the slow times that cost most waiting, and all changes and marks; bursts only if there is room.
    const cost = (mark) => (mark.kind === "spikes" ? mark.excess_seconds || mark.peak_seconds : mark.kind === "bursts" ? 0 : mark.kind === "waits" ? mark.seconds : Infinity);
    const worst = [...marks].sort((a, b) => cost(b) - cost(a)).slice(0, MAX_MARKS);
    const listed = marks.filter((mark) => worst.includes(mark)).reverse().sort((a, b) => (b.end === null) - (a.end === null)).map((mark) => element("li", {}, this.button(mark)));
    const cheaper = marks.length - listed.length;
    this.list.replaceChildren(...listed.slice(0, LISTED), cut ? element("li", { class: "faint" }, text("moreBefore")) : "");
    this.rest.hidden = listed.length <= LISTED;
    this.rest.firstChild.textContent = text("more", listed.length - LISTED);
    this.rest.lastChild.replaceChildren(...listed.slice(LISTED), cheaper > 0 ? element("li", { class: "faint" }, text("thatCostLess", cheaper)) : "");
  }

  button(mark) {
    const swatch = element("i", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = inkOf(mark);
    return element("button", { type: "button", class: "link", "data-mark": mark.id, "data-cause": kindOf(mark), "data-over": mark.end !== null, "aria-label": text("explain", this.words(mark)), onclick: () => this.explain(mark, true) }, swatch, this.words(mark));
  }

  // Only of what is shown, and in words: no sign is a colour alone.
  showLegend(marks) {
    const kinds = new Map(marks.map((mark) => [kindOf(mark), mark]));
    this.legend.replaceChildren(...[...kinds].map(([kind, mark]) => {
      const swatch = element("i", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = inkOf(mark);
      return element("span", { "data-cause": kind }, swatch, legendOf(mark));
    }));
  }

  words(mark) {
    const at = this.view.time(mark.begin);
    if (mark.kind === "bursts") return `${at} ${text("discarded", bytes(mark.bytes), mark.trigger)}`;
    if (mark.kind === "waits") return `${at} ${mark.words}`;
    if (mark.kind === "settings") return `${at} ${text("settingChanged", mark.name)}`;
    if (mark.kind === "marks") return `${at} ${mark.text}`;
    if (mark.kind === "clock") return `${at} ${text(mark.seconds > 0 ? "clockJumped" : "clockSetBack")}`;
    const goes = mark.end === null;
    return `${at} ${text(goes ? "haveBeenSlow" : "wereSlow", plural(mark.operation), duration(goes ? this.app.store.overview.taken_at - mark.begin : mark.seconds), nounOf(mark))}`;
  }

  explainNewest(marks) {
    const ended = (mark) => mark.end ?? (this.view.inPast ? 0 : Infinity); // a link to the past is about what is over
    const newest = marks.filter((mark) => mark.kind === "spikes").sort((a, b) => ended(b) - ended(a) || b.excess_seconds - a.excess_seconds)[0];
    if (this.chosen === null && newest) this.explain(newest);
  }

  explainAt(time) {
    const { view } = this;
    if (time === null || !view.marks) return;
    const near = (view.until - view.from) / 60;
    // What is held up for hours must not hide what is below it: only its beginning and its end can be clicked.
    const hit = view.marks.filter((mark) => (mark.kind === "waits"
      ? [mark.begin, mark.end ?? view.until].some((edge) => Math.abs(time - edge) <= near)
      : mark.begin - near <= time && time <= (mark.end ?? view.until) + near));
    if (hit.length) this.explain(hit.find((mark) => mark.kind === "spikes") ?? hit.find((mark) => mark.kind !== "waits") ?? hit[0], true);
    else if (view.inPast) this.offerZoom(time);
    else this.exactColumn();
  }

  say(head, ...content) {
    this.chosen = null;
    this.explanation.replaceChildren(element("div", { class: "explain" }, element("h3", {}, head), ...content));
  }

  offerZoom(time) {
    const { view } = this;
    const i = view.cursorIndex();
    const half = Math.max(view.shortest, view.range / 8);
    const ios = i === null ? null : view.series(view.heat + "_ios")[i];
    this.say(i === null ? text("noDataAt", view.time(time)) : `${view.moment(i)}: ${manyOf(ios, view.heat)}`,
      element("p", {}, `${text("nothingNear")} `, element("button", { type: "button", id: "closer", onclick: () => view.show(time - half, time + half) }, text("showAround", duration(2 * half)))), this.compareLink(time));
  }

  // One page of the daemon, to print or to save: did what happened then change anything?
  compareLink(time) {
    return element("p", {}, element("a", { class: "compare", href: `report?device=${encodeURIComponent(this.view.device)}&at=${Math.floor(time)}`, target: "_blank", rel: "noopener" }, text("compareAround")));
  }

  // The exact figures at which the colours only hint.
  async exactColumn() {
    const { view } = this;
    const at = view.cursorIndex();
    if (at === null) return;
    try {
      const column = await this.app.store.ask(`devices/${encodeURIComponent(view.device)}/column?snapshot=${view.columns.number[at]}`);
      if (!column) return;
      const rows = column.latency[view.heat].map(([word, ios]) => element("tr", {}, element("td", { class: "number" }, text("upTo", latency(view.bounds[word]))), element("td", { class: "number" }, exact(ios))));
      this.say(text("inTheSecondTo", plural(view.heat), clock(column.end)),
        element("table", {}, element("thead", {}, element("tr", {}, element("th", { class: "number" }, text("latency")), element("th", { class: "number" }, text("ios")))), element("tbody", {}, ...rows)));
    } catch (error) { /* the connection status shows it */ }
  }

  explain(mark, focus) {
    this.chosen = mark.id;
    const { view } = this;
    const time = text("span", view.time(mark.begin), mark.end === null ? text("now") : clock(mark.end));
    const box = element("div", { class: "explain", tabindex: "-1", "data-explains": mark.id, "data-over": mark.end !== null });
    if (mark.kind === "bursts") {
      box.append(element("h3", {}, text("burstAt", time)), element("p", {}, text("sentBy", mark.trigger, bytes(mark.bytes))));
    } else if (mark.kind === "waits") {
      box.append(element("h3", {}, text("heldUpAt", time)), element("p", {}, `${mark.words}.`), this.next(mark));
    } else if (mark.kind === "settings") {
      box.append(element("h3", {}, text("settingSeenAt", view.time(mark.begin))), element("p", {}, `${mark.device ?? text("host")}: ${mark.name}: ${mark.before} → ${mark.value}`));
    } else if (mark.kind === "marks") {
      box.append(element("h3", {}, text("markedAt", view.time(mark.begin))), element("p", {}, mark.text));
    } else if (mark.kind === "clock") {
      box.append(element("h3", {}, mark.seconds > 0 ? text("clockJumpedBy", duration(mark.seconds), clock(mark.begin)) : text("clockSetBackBy", duration(-mark.seconds), clock(mark.begin))),
        element("p", {}, mark.seconds > 0 ? text("jumpExplained") : text("setBackExplained")));
    } else this.explainSpike(box, mark, time);
    box.append(this.compareLink(mark.begin));
    this.explanation.replaceChildren(box);
    if (focus) box.focus({ preventScroll: false });
  }

  next(mark, ...more) {
    return element("p", {}, element("strong", {}, text(mark.end === null ? "next" : "ifAgain")), ` ${mark.next} `, this.app.runbookButton(mark.runbook, mark), ...more);
  }

  explainSpike(box, mark, time) {
    const { view } = this;
    const factor = mark.baseline_seconds ? `, ${text("timesTheUsual", short(mark.peak_seconds / mark.baseline_seconds), latency(mark.baseline_seconds))}` : "";
    box.append(element("h3", {}, text("slowAt", plural(mark.operation), time, mark.words)),
      element("p", {}, text("worstSecond", latency(mark.peak_seconds) + factor)));
    // What decided, then what was ruled out; the other figures are there for whoever wants them.
    const lines = (title, all) => (all?.length ? [element("p", {}, element("strong", {}, title)), element("ul", {}, ...all.map((line) => element("li", {}, line)))] : []);
    box.append(...lines(text("speaksForIt"), mark.evidence), ...lines(text("ruledOut"), mark.ruled_out), ...lines(text("notKnowable"), mark.missing));
    if (mark.other?.length) box.append(element("details", { class: "others" }, element("summary", {}, text("otherFigures", mark.other.length)), element("ul", {}, ...mark.other.map((line) => element("li", {}, line)))));
    box.append(this.next(mark,
      mark.has_columns && !view.bySeconds ? element("button", { type: "button", id: "by-seconds", onclick: () => view.show(mark.begin - 60, Math.min(mark.end + 60, mark.begin - 60 + MEMORY), "seconds") }, text("secondBySecond")) : "",
      view.inPast && view.range > 7200 ? element("button", { type: "button", onclick: () => view.show(mark.begin - 1800, mark.begin + 1800) }, text("showTheHour")) : ""));
  }
}
