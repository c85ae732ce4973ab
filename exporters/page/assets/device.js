// SPDX-License-Identifier: Apache-2.0
// One drive: the heatmap, the lines below it over the same time, and what happened. The last quarter of an hour comes
// second by second from the daemon's memory, any other time from its history.

import { text, element, latency, count, bytes, short, percent, duration, clock, date, localTime, many, patch, viewLink, plural, shortPlural, fullWords } from "./words.js";
import { factsOf, rate, tailOf } from "./drive_facts.js";
import { dayOf } from "./day.js";
import { Brush } from "./brush.js";
import { Happened } from "./happened.js";
import { Heatmap } from "./heatmap.js";
import { Lines, latencyLines } from "./lines.js";
import { Past } from "./past.js";
import { Tenants } from "./tenants.js";
import { Stacks } from "./stacks.js";

const RANGES = [[60, text("minutes", 1)], [300, text("minutes", 5)], [900, text("minutes", 15)], [3600, text("hours", 1)], [21600, text("hours", 6)], [86400, text("hours", 24)], [604800, text("daysShort", 7)], [7776000, text("daysShort", 90)]];
const MEMORY = 900; // seconds that the daemon keeps second by second
const SHORTEST = 60;
const LONGEST = 10 * 366 * 86400;
const UNWRITTEN = 300; // seconds within which what is over is in the history
const UNITS = { 1: [text("second"), text("secondMany")], 60: [text("minute"), text("minuteMany")], 3600: [text("hour"), text("hourMany")], 86400: [text("day"), text("dayMany")] };
const HEATS = ["read", "write", "flush", "discard", "commit"];

export class DeviceView {
  // `below`: it is shown below something that it carries.
  constructor(app, device, below = false) {
    this.app = app;
    this.below = below;
    this.device = device;
    this.cursor = null;
    this.recent = new Map(); // marks by id, as they were last seen
    this.title = element("h2", {}, device);
    this.facts = element("ul", { class: "facts" });
    this.more = element("ul", { class: "facts" });
    this.brush = new Brush(this, app);
    this.happened = new Happened(this, app);
    this.past = new Past(() => this.update());
    this.tenants = new Tenants(app.store, device);
    this.stacks = new Stacks(app.store, device);
    this.stacks.root.hidden = below;
    this.ranges = RANGES.map(([seconds, words]) => element("button", { type: "button", "data-range": seconds, onclick: () => app.go({ range: seconds, from: null, by: null, to: seconds > MEMORY ? null : this.pausedAt }) }, words));
    this.times = [["from", text("from")], ["to", text("to")]].map(([name, words]) => element("input", { type: "datetime-local", class: "time", id: "time-" + name, "aria-label": words, onkeydown: (event) => {
      if (event.key === "Enter") this.showTimes();
    } }));
    this.heats = HEATS.map((kind) => element("button", { type: "button", onclick: () => app.go({ heat: kind }) }, shortPlural(kind)));
    this.live = element("button", { type: "button", id: "live", onclick: () => this.pause() }, text("pause"));
    this.heatmap = new Heatmap(this);
    this.charts = this.makeCharts();
    this.wear = this.makeWear();
    this.empty = element("p", { class: "faint" });
    this.wearNote = element("p", { class: "faint" });
    this.wearCharts = element("div", { class: "charts", hidden: true }, ...this.wear.map((chart) => chart.root));
    this.wearPart = element("section", { id: "wear" }, element("h2", {}, text("wear")), this.wearNote, this.wearCharts);
    this.notice = element("p", { class: "notice", hidden: true });
    this.root = element("div", {}, this.title, this.facts,
      element("details", { class: "more" }, element("summary", {}, text("allAboutDrive")), this.more), this.stacks.root, this.notice,
      element("div", { class: "bar" },
        element("div", { class: "group", role: "group", "aria-label": text("range") }, ...this.ranges),
        element("div", { class: "group", role: "group", "aria-label": text("time") },
          element("button", { type: "button", onclick: () => this.shift(-1), "aria-label": text("earlier") }, "◀"), this.live,
          element("button", { type: "button", onclick: () => this.shift(1), "aria-label": text("later") }, "▶")),
        element("details", { class: "times" }, element("summary", {}, text("fromToTimes")), element("div", { class: "group", role: "group", "aria-label": text("fromAndTo") }, this.times[0], text("to"), this.times[1],
          element("button", { type: "button", id: "show-times", onclick: () => this.showTimes() }, text("show")))),
        element("div", { class: "group", role: "group", "aria-label": text("heatmapOfKinds") }, ...this.heats)),
      element("div", { class: "charts" }, this.heatmap.root), this.happened.root,
      element("h2", {}, text("whoseIo")), this.tenants.root,
      element("h2", {}, text("sameTimeInLines")),
      element("div", { class: "charts" }, ...this.charts.map((chart) => chart.root)), this.empty,
      element("details", { class: "more" }, element("summary", {}, text("declaredWrites")), this.tenants.writes),
      this.wearPart);
  }

  // Only from the history: how the drive wore, as it reported itself.
  makeWear() {
    const worn = (field) => (i) => this.columns.worn?.[i]?.[field] ?? null;
    const options = { isMissing: (i) => !this.columns.worn?.[i], none: text("notReported") };
    return [
      new Lines(this, text("writeAmplification"), [{ name: text("mediaByHost"), values: (i) => this.columns.amplification?.[i] ?? null }], short, false,
        { ...options, none: text("amplificationNotKnown") }),
      new Lines(this, text("lifeAndSpare"), [{ name: text("used"), values: worn("percentage_used") }, { name: text("spare"), values: worn("available_spare") }], percent, false, options),
      new Lines(this, text("temperature"), [{ name: text("highest"), values: worn("temperature_celsius") }], (value) => value.toFixed(0) + " °C", false, options),
    ];
  }

  showWear(known) {
    const answer = this.inPast ? this.past.answer : null;
    const shown = answer && !this.bySeconds && answer.wear.length > 0;
    let words = "";
    if (!this.inPast) words = `${text("wearIsPast")} `;
    else if (this.bySeconds) words = text("wearNotBySeconds");
    else if (answer && !shown) words = known && !known.nvme ? text("wearOnlyNvme") : text("wearNotRead");
    this.wearCharts.hidden = !shown;
    this.wearPart.hidden = !shown && Boolean(known) && !known.nvme;
    if (words === this.shownWear) return;
    this.shownWear = words;
    this.wearNote.replaceChildren(words, this.inPast ? "" : element("button", { type: "button", id: "show-wear", onclick: () => this.app.go({ range: 604800, from: null, to: null, by: null }) }, text("showSevenDays")));
    this.wearNote.hidden = words === "";
  }

  makeCharts() {
    const word = (name) => (i) => {
      const at = this.series(name)[i];
      return at == null || !this.bounds ? null : this.bounds[at];
    };
    const rate = (name) => (i) => {
      const value = this.series(name)[i];
      return value == null ? null : value / (this.columns.measured ?? this.columns.seconds)[i];
    };
    const tails = (kind) => [["p50", "p50"], ["p99", "p99"], ["p99.9", "p999"]].map(([name, field]) => ({ name, values: word(`${kind}_${field}`) }));
    const byDuring = (kind) => [["none", text("neither")], ["discard", text("duringDiscard")], ["flush", text("duringFlush")], ["both", text("duringBoth")]].map(([during, name]) => ({
      name, values: word(`${kind}_during_${during}_p99`), n: (i) => this.iosDuring(kind, during, i) }));
    const stages = (kind) => [{ name: text("inTheDevice"), values: word(`${kind}_device_p99`) }, { name: text("inTheQueue"), values: word(`${kind}_queue_p99`) }];
    const size = (kind) => ({ name: plural(kind), values: (i) => {
      const ios = this.series(kind + "_ios")[i];
      return ios ? this.series(kind + "_bytes")[i] / ios : null;
    } });
    const inFlight = new Lines(this, text("inFlightAtEnd"), ["read", "write"].map((kind) => ({ name: plural(kind), values: (i) => this.series(kind + "_in_flight")[i] ?? null })), count, false);
    inFlight.liveOnly = true;
    return [
      latencyLines(this, text("readLatency"), tails("read")),
      latencyLines(this, text("writeLatency"), tails("write")),
      latencyLines(this, text("fsyncLatency"), tails("commit")),
      latencyLines(this, text("readsDuring"), byDuring("read")),
      latencyLines(this, text("writesDuring"), byDuring("write")),
      latencyLines(this, text("readsInStages"), stages("read")),
      latencyLines(this, text("writesInStages"), stages("write")),
      new Lines(this, text("iosPerSecond"), ["read", "write", "flush", "discard"].map((kind) => ({ name: plural(kind), values: rate(kind + "_ios") })), count, false),
      new Lines(this, text("dataPerSecond"), ["read", "write", "discard"].map((kind) => ({ name: plural(kind), values: rate(kind + "_bytes") })), bytes, false),
      new Lines(this, text("meanSize"), [size("read"), size("write")], bytes, false),
      inFlight,
    ];
  }

  get source() { return this.inPast ? this.past : this.app.store; }
  get columns() { return this.source.columns; }
  get levels() { return this.source.levels; }
  get bounds() { return this.source.bounds; }
  series(name) { return this.source.series(name); }
  get oldest() { return this.inPast ? this.past.oldest : null; }
  get newest() { return this.inPast ? Math.min(this.until, Date.now() / 1000) : null; }
  // How late the newest column may arrive.
  get delay() {
    if (!this.inPast) return 2.5;
    return this.until < Date.now() / 1000 - this.past.step - 130 ? 0.6 : this.past.step + 70;
  }
  get step() { return this.inPast ? this.past.step : 1; }
  get shortest() { return SHORTEST; }
  get unit() {
    const step = this.step;
    return UNITS[step]?.[0] ?? text("stretchOf", text("stretch"), duration(step));
  }
  stretches(number) { return UNITS[this.step] ? many(number, ...UNITS[this.step]) : text("stretchOf", many(number, text("stretch"), text("stretchMany")), duration(this.step)); }

  // The time of a column, as people write it.
  moment(i) {
    const { end, seconds } = this.columns;
    if (this.step === 1) return clock(end[i]);
    const begin = end[i] - seconds[i];
    return `${date(begin) === date(this.until) ? "" : date(begin) + " "}${text("span", clock(begin).slice(0, 5), clock(end[i]).slice(0, 5))}`;
  }

  time(seconds) {
    return this.inPast && date(seconds) !== date(Date.now() / 1000) ? `${date(seconds)} ${clock(seconds)}` : clock(seconds);
  }

  // How many more columns there would be if all had been recorded.
  unrecorded(visible) {
    if (!this.inPast || !this.past.answer) return 0;
    const { end, seconds } = this.columns;
    let known = Math.max(this.from, this.past.oldest ?? this.until);
    let missing = 0;
    for (const i of visible) {
      missing += Math.max(0, Math.floor((end[i] - seconds[i] - known) / this.step + 0.01));
      known = end[i];
    }
    const until = Math.min(this.until, Date.now() / 1000 - this.delay);
    return missing + Math.max(0, Math.floor((until - known) / this.step + 0.01));
  }

  // How many I/Os; "none" stands for all that overlap none of the others.
  iosDuring(kind, during, i) {
    if (during !== "none") return this.series(`${kind}_during_${during}_ios`)[i];
    return ["discard", "flush", "both"].reduce((rest, other) => rest - this.series(`${kind}_during_${other}_ios`)[i], this.series(kind + "_ios")[i]);
  }
  // Whether a column begins where the one before ended: no line crosses a gap.
  follows(i) {
    const { end, seconds } = this.columns;
    return i > 0 && Math.abs(end[i] - seconds[i] - end[i - 1]) < 0.6;
  }
  isMissing(i) { return i === undefined || (this.series("read_ios")[i] ?? null) === null; }

  visible() {
    const result = [];
    const { end } = this.columns;
    for (let i = 0; i < end.length; i++) {
      if (end[i] > this.from && end[i] - (this.inPast ? this.step : 0) <= this.until + 0.001) result.push(i);
    }
    return result;
  }

  cursorIndex() {
    if (this.cursor === null || !this.columns.end) return null;
    const at = this.columns.end.findIndex((end, i) => this.cursor <= end && this.cursor >= end - this.columns.seconds[i] - 0.5);
    return at < 0 ? null : at;
  }

  configure({ range, heat, from, to, by, at, select, against }) {
    this.brush.configure({ select, against });
    if (at !== this.pinned) this.cursor = at;
    this.pinned = at;
    const known = RANGES.some(([seconds]) => seconds === range);
    const window = from !== null && to !== null && to > from;
    this.window = window ? [from, Math.min(to, from + LONGEST)] : null;
    this.bySeconds = window && by === "seconds" && to - from <= MEMORY;
    this.asked = known && !window ? range : null;
    this.range = window ? this.window[1] - from : this.asked ?? this.range ?? 300;
    this.heat = HEATS.includes(heat) ? heat : "read";
    this.to = to;
    this.heats.forEach((button, i) => button.setAttribute("aria-pressed", HEATS[i] === this.heat));
    this.live.textContent = text(to ? "live" : "pause");
    this.live.setAttribute("aria-pressed", Boolean(to));
    this.happened.shown = null;
    this.shownTimes = null;
    this.update();
  }

  // Paused within the seconds in memory: another range then ends at the same time.
  get pausedAt() { return this.to && !this.window && Date.now() / 1000 - this.to < MEMORY ? this.to : null; }

  // Whether the wanted time lies beyond the seconds that the daemon has in memory. A paused view may lie half outside.
  isPast(now) {
    if (this.range > MEMORY || this.bySeconds) return true;
    if (this.window) return this.window[0] < Math.max(now - MEMORY, (this.app.store.overview.reach.begin ?? now) - 1);
    return this.to !== null && this.to - this.range / 2 < now - MEMORY;
  }

  pause() {
    if (this.to) this.app.go({ from: null, to: null, by: null, range: this.asked ?? (this.inPast ? 900 : this.range) }, true);
    else this.app.go({ to: Math.round(this.until) }, true);
  }

  show(from, to, by = null) {
    const length = Math.min(LONGEST, Math.max(SHORTEST, Math.round(to - from)));
    this.app.go({ range: null, by, from: Math.max(0, Math.round(from)), to: Math.max(0, Math.round(from)) + length });
  }

  showTimes() {
    const [from, to] = this.times.map((input) => new Date(input.value).getTime() / 1000);
    if (Number.isFinite(from) && Number.isFinite(to) && to > from) this.show(from, to);
    else {
      this.notice.hidden = false;
      this.notice.textContent = text("twoTimes");
    }
  }

  zoom(factor) {
    if (this.until === undefined) return;
    const middle = this.cursor ?? (this.from + this.until) / 2;
    const half = Math.max(SHORTEST, this.range * factor) / 2;
    const to = Math.min(middle + half, Math.max(this.until, Date.now() / 1000));
    this.show(to - 2 * half, to);
  }

  update() {
    const { overview, missing } = this.app.store;
    const known = overview?.devices.find((one) => one.name === this.device);
    if (known) this.showFacts(known);
    if (!overview) return;
    if (!this.below) this.stacks.update();
    const wasPast = this.inPast;
    this.inPast = this.isPast(overview.taken_at);
    if (wasPast !== this.inPast) {
      this.happened.forget();
    }
    this.app.store.select(this.inPast ? null : this.device, this.heat);
    if (this.inPast) this.showPast(overview.taken_at);
    else if (!this.showNow(overview.taken_at)) return;
    const trouble = this.inPast ? this.past.trouble && text("pastNotShown", this.past.trouble) : missing && text("notMeasuredNow", missing);
    this.notice.hidden = !trouble;
    if (trouble) this.notice.textContent = trouble;
    this.ranges.forEach((button, i) => button.setAttribute("aria-pressed", RANGES[i][0] === this.range && !this.window));
    this.fillTimes();
    this.remember(overview, known);
    this.marks = [...this.source.marksBetween(this.from, this.until), ...this.unwritten()];
    this.happened.show(this.marks, this.window !== null && !this.unanswered, this.emptyWords(), this.inPast && this.past.cut);
    if (this.inPast) this.tenants.showPast(this.past);
    else this.tenants.showLive();
    this.showWear(known);
    this.redraw();
  }

  // What holds up or slows down I/O now, or did until a moment ago.
  remember(overview, known) {
    const now = overview.taken_at;
    const { wait, next, runbook } = overview.why;
    const waits = wait && wait.end === null ? [{ ...wait, kind: "waits", id: `wait-${wait.begin}`, seconds: now - wait.begin, next, runbook }] : [];
    for (const mark of [...(known?.spikes ?? []).map((spike) => ({ ...spike, kind: "spikes" })), ...waits]) this.recent.set(mark.id, { ...mark, seen: now });
    for (const [id, mark] of this.recent) {
      if (mark.seen < now) mark.end ??= mark.seen;
      if (mark.seen < now - UNWRITTEN) this.recent.delete(id);
    }
  }

  // Of these, what the history does not have yet: it has what is over, a while later.
  unwritten() {
    if (!this.inPast) return [];
    const written = ({ kind, id, begin }) => this.past.marks.some((one) => one.kind === kind && (one.id === id || (kind === "waits" && Math.abs(one.begin - begin) < 1)));
    return [...this.recent.values()].filter((mark) => mark.begin < this.until && (mark.end ?? Infinity) >= this.from && !written(mark));
  }

  get unanswered() { return this.inPast && !this.past.answer; }

  // What it means if nothing happened in this range.
  emptyWords() {
    if (this.unanswered || !this.columns.end) return "";
    return text(this.visible().some((i) => !this.isMissing(i)) ? "nothingSlow" : "noDataInRange");
  }

  // False: nothing is known yet.
  showNow(now) {
    const ends = this.columns.end;
    if (!ends || !ends.length) return false;
    const newest = ends[ends.length - 1];
    // Without a requested range, as much as is known.
    if (!this.asked && !this.window) this.range = RANGES.map(([seconds]) => seconds).find((seconds) => seconds >= newest - ends[0] || seconds === MEMORY);
    this.until = this.window ? this.window[1] : this.to ?? Math.max(newest, now);
    this.from = this.until - this.range;
    return true;
  }

  showPast(now) {
    this.until = this.window ? this.window[1] : this.to ?? Math.ceil(now / 60) * 60;
    this.from = this.until - this.range;
    this.past.select(this.device, this.heat, this.from, this.until, !this.to, this.bySeconds);
  }

  // Fills in the times shown, unless somebody is typing there.
  fillTimes() {
    const said = [this.from, this.until].map(localTime);
    if (this.times.includes(document.activeElement) || String(said) === this.shownTimes) return;
    this.shownTimes = String(said);
    this.times.forEach((input, i) => { input.value = said[i]; });
  }

  redraw() {
    if (!this.columns.end || this.until === undefined) return;
    this.heatmap.draw();
    this.happened.lane.draw();
    const visible = this.visible();
    const empty = [];
    for (const chart of this.charts) {
      const none = !chart.hasValues(visible);
      if (none && !(this.inPast && chart.liveOnly)) empty.push(chart.title);
      chart.root.hidden = none || (this.inPast && chart.liveOnly === true);
      if (!chart.root.hidden) chart.draw();
    }
    this.empty.textContent = empty.length ? text("nothingToDraw", empty.join("; ")) : "";
    if (!this.wearCharts.hidden) this.wear.forEach((chart) => chart.draw());
  }

  // What is asked first; all else is behind a click.
  showFacts(device) {
    const { now, nvme } = device;
    const { day } = this.app.store;
    const high = (kind) => device.spikes.some((spike) => spike.operation === kind) || device.above_baseline?.operation === kind;
    const fact = (label, words, small, of = {}) => element("li", { ...of }, element("span", { tabindex: of["data-help"] && "0" }, label), element("b", {}, words), small ? element("small", {}, small) : null);
    const tail = (kind, label) => {
      const { words, seconds, usual } = tailOf(device, kind);
      if (words === null) return null;
      return fact(label, seconds === null ? words : (now[kind].standstill_seconds ? "> " : "") + latency(seconds), usual == null ? "" : text("usually", latency(usual)), { "data-high": high(kind), "data-help": "latency" });
    };
    const facts = [tail("read", text("readP99")), tail("write", text("writeP99")), tail("commit", text("fsyncP99"))];
    if (now) {
      facts.push(fact(text("busy"), percent(now.busy_ratio), text("inFlight", now.in_flight), { "data-help": "busy" }));
      for (const kind of ["read", "write"]) facts.push(fact(text(kind === "read" ? "readsHead" : "writesHead"), `${count(rate(device, kind, "ios"))}/s`, `${bytes(rate(device, kind, "bytes"))}/s`, { "data-help": "ios" }));
    }
    for (const mount of device.mounts.slice(0, 2)) {
      if (mount.size_bytes) facts.push(fact(text("free"), bytes(mount.available_bytes), `${text("ofSizeIn", bytes(mount.size_bytes), mount.mountpoint)}${fullWords(mount)}`, { "data-help": "free" }));
    }
    if (nvme?.write_amplification.ratio != null) facts.push(fact(text("writeAmplification"), short(nvme.write_amplification.ratio), nvme.write_amplification.window, { "data-help": "amplification" }));
    if (nvme?.used_ratio != null) facts.push(fact(text("lifeLeft"), percent(Math.max(0, 1 - nvme.used_ratio)), nvme.life_seconds === null ? "" : text("atThisPace", duration(nvme.life_seconds)), { "data-help": "life" }));
    if (nvme?.temperature_celsius != null) facts.push(fact(text("temperature"), `${nvme.temperature_celsius.toFixed(0)} °C`, "", { "data-help": "temperature" }));
    const name = this.below ? device.name : device.use || device.name;
    patch(this.title, element("h2", {}, this.below ? element("small", {}, `${text("onTheDrive")} `) : "", this.below ? element("a", { href: viewLink("device", device.name) }, name) : name, " ", element("small", {}, [!this.below && device.use && device.name, device.model, bytes(device.size_bytes), device.transport].filter(Boolean).join(" · "))));
    patch(this.facts, element("ul", { class: "facts" }, ...facts));
    const mounted = device.mounts.map((mount) => `${mount.mountpoint}: ${mount.fstype}${mount.discard ? ` ${text("withDiscard")}` : ""}`);
    const all = Object.entries({ ...factsOf(device, day, dayOf(day, device.name)), ...(mounted.length ? { mounts: [text("mounted"), ...mounted] } : {}), scheduler: [text("scheduler"), device.scheduler] });
    patch(this.more, element("ul", { class: "facts" }, ...all.filter(([, [, words]]) => words && words !== text("notKnownHere")).map(([name, [label, words, ...more]]) => fact(label, words, more.join(", "), { "data-fact": name }))));
  }

  // null: back to where it was left by a click or a key, which the URL has.
  setCursor(time) {
    this.cursor = time ?? this.pinned ?? null;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.redraw());
  }

  explainAt(time) {
    this.pin(time);
    this.happened.explainAt(time);
  }

  pin(time) {
    this.pinned = time === null ? null : Math.round(time);
    this.app.note({ at: this.pinned });
    this.setCursor(time);
  }

  shift(direction) {
    if (this.until === undefined) return;
    const now = this.app.store.overview.taken_at;
    const until = this.until + (direction * this.range) / 2;
    if (until >= now) this.app.go({ from: null, to: null, by: null, range: this.range });
    else if (this.window || !RANGES.some(([seconds]) => seconds === this.range)) this.show(until - this.range, until);
    else this.app.go({ range: this.range, to: Math.round(until) });
  }

  onChartKey(event) {
    const far = this.step * (event.shiftKey ? 10 : 1);
    const at = this.cursor ?? this.until;
    if (event.key === "ArrowLeft") this.setCursor(Math.max(this.from, at - far));
    else if (event.key === "ArrowRight") this.setCursor(Math.min(this.until, at + far));
    else if (event.key === "Enter") this.explainAt(at);
    else if (event.key === "s") this.brush.mark(at);
    else if (event.key === "Escape" && (this.brush.range || this.brush.begun != null)) this.brush.clear();
    else if (event.key === "Escape" && this.cursor !== null) this.pin(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
