// SPDX-License-Identifier: Apache-2.0
// One drive, second by second: the heatmap, the lines below it on the same time, and what happened, explained.

import { element, latency, count, bytes, duration, clock, exact, plural } from "./words.js";
import { Heatmap } from "./heatmap.js";
import { Lines, latencyLines } from "./lines.js";

const RANGES = [60, 300, 900];
const HEATS = ["read", "write", "flush", "discard", "commit"];
const LETTERS = { discard: "D", flush: "F", gc: "G", queue: "Q", saturation: "S", thermal: "T", error: "E", unknown: "?" };

export class DeviceView {
  constructor(app, device) {
    this.app = app;
    this.device = device;
    this.cursor = null;
    this.chosen = null;
    this.title = element("h2", {}, device);
    this.facts = element("ul", { class: "facts" });
    this.ranges = RANGES.map((seconds) => element("button", { type: "button", onclick: () => app.go({ range: seconds }) }, `${seconds / 60} min`));
    this.heats = HEATS.map((kind) => element("button", { type: "button", onclick: () => app.go({ heat: kind }) }, kind === "commit" ? "fsync" : kind + (kind === "flush" ? "es" : "s")));
    this.live = element("button", { type: "button", onclick: () => app.go({ to: this.to ? null : Math.round(this.until) }) }, "Pause (p)");
    this.marksList = element("ul", { class: "marks" });
    this.explanation = element("div", { "aria-live": "polite" });
    this.heatmap = new Heatmap(this);
    this.charts = this.makeCharts();
    this.notice = element("p", { class: "notice", hidden: true });
    this.root = element("div", {}, this.title, this.facts, this.notice,
      element("div", { class: "bar" },
        element("div", { class: "group", role: "group", "aria-label": "Range" }, ...this.ranges),
        element("div", { class: "group", role: "group", "aria-label": "Time" },
          element("button", { type: "button", onclick: () => this.step(-1), "aria-label": "Earlier" }, "◀"), this.live,
          element("button", { type: "button", onclick: () => this.step(1), "aria-label": "Later" }, "▶")),
        element("div", { class: "group", role: "group", "aria-label": "Heatmap of" }, ...this.heats)),
      element("div", { class: "charts" }, this.heatmap.root),
      element("h2", {}, "What happened"), this.marksList, this.explanation,
      element("h2", {}, "The same seconds in lines"),
      element("div", { class: "charts" }, ...this.charts.map((chart) => chart.root)));
  }

  makeCharts() {
    const word = (name) => (i) => {
      const at = this.series(name)[i];
      return at === null || at === undefined || !this.bounds ? null : this.bounds[at];
    };
    const rate = (name) => (i) => {
      const value = this.series(name)[i];
      return value === null || value === undefined ? null : value / this.columns.seconds[i];
    };
    const tails = (kind) => [["p50", "p50"], ["p99", "p99"], ["p99.9", "p999"]].map(([name, field]) => ({ name, values: word(`${kind}_${field}`) }));
    const beside = (kind) => ["none", "discard", "flush", "both"].map((during) => ({
      name: during === "none" ? "neither" : during === "both" ? "during both" : "during a " + during,
      values: word(`${kind}_beside_${during}_p99`), n: (i) => this.besides(kind, during, i) }));
    const stages = (kind) => [{ name: "in the device", values: word(`${kind}_device_p99`) }, { name: "in the queue", values: word(`${kind}_queue_p99`) }];
    const size = (kind) => ({ name: kind + "s", values: (i) => {
      const ios = this.series(kind + "_ios")[i];
      return ios ? this.series(kind + "_bytes")[i] / ios : null;
    } });
    return [
      latencyLines(this, "Read latency", tails("read")),
      latencyLines(this, "Write latency", tails("write")),
      latencyLines(this, "fsync latency (commits)", tails("commit")),
      latencyLines(this, "Reads: p99 by what else was in flight", beside("read")),
      latencyLines(this, "Writes: p99 by what else was in flight", beside("write")),
      latencyLines(this, "Reads: p99 in queue and device", stages("read")),
      latencyLines(this, "Writes: p99 in queue and device", stages("write")),
      new Lines(this, "I/Os a second", ["read", "write", "flush", "discard"].map((kind) => ({ name: kind + (kind === "flush" ? "es" : "s"), values: rate(kind + "_ios") })), count, false),
      new Lines(this, "Data a second", ["read", "write", "discard"].map((kind) => ({ name: kind + "s", values: rate(kind + "_bytes") })), bytes, false),
      new Lines(this, "Mean size", [size("read"), size("write")], bytes, false),
      new Lines(this, "In flight at the end of the second", ["read", "write"].map((kind) => ({ name: kind + "s", values: (i) => this.series(kind + "_in_flight")[i] ?? null })), count, false),
    ];
  }

  get columns() { return this.app.store.columns; }
  get levels() { return this.app.store.levels; }
  get bounds() { return this.app.store.bounds; }
  series(name) { return this.app.store.series(name); }
  // How many I/Os; "none" are all those that overlap none of the others.
  besides(kind, during, i) {
    if (during !== "none") return this.series(`${kind}_beside_${during}_ios`)[i];
    return ["discard", "flush", "both"].reduce((rest, other) => rest - this.series(`${kind}_beside_${other}_ios`)[i], this.series(kind + "_ios")[i]);
  }
  isMissing(i) { return this.series("read_ios")[i] === null; }

  visible() {
    const result = [];
    const { end } = this.columns;
    for (let i = 0; i < end.length; i++) {
      if (end[i] > this.from && end[i] <= this.until + 0.001) result.push(i);
    }
    return result;
  }

  cursorIndex() {
    if (this.cursor === null || !this.columns.end) return null;
    const at = this.columns.end.findIndex((end, i) => this.cursor <= end && this.cursor >= end - this.columns.seconds[i] - 0.5);
    return at < 0 ? null : at;
  }

  configure({ range, heat, to }) {
    this.asked = RANGES.includes(range) ? range : null;
    this.range = this.asked ?? this.range ?? 300;
    this.heat = HEATS.includes(heat) ? heat : "read";
    this.to = to;
    this.app.store.look(this.device, this.heat);
    this.heats.forEach((button, i) => button.setAttribute("aria-pressed", HEATS[i] === this.heat));
    this.live.textContent = to ? "Live (p)" : "Pause (p)";
    this.live.setAttribute("aria-pressed", Boolean(to));
    this.update();
  }

  update() {
    const { overview, missing } = this.app.store;
    const known = overview?.devices.find((one) => one.name === this.device);
    this.notice.hidden = !missing;
    if (missing) this.notice.textContent = `${missing} is not measured now: it is gone, or not included.`;
    if (known) this.sayFacts(known);
    const ends = this.columns.end;
    if (!ends || !ends.length) return;
    const newest = ends[ends.length - 1];
    // Without a wish, as much as is known.
    if (!this.asked) this.range = RANGES.find((seconds) => seconds >= newest - ends[0]) ?? 900;
    this.ranges.forEach((button, i) => button.setAttribute("aria-pressed", RANGES[i] === this.range));
    this.until = this.to ?? Math.max(newest, overview.taken_at);
    this.from = this.until - this.range;
    this.marks = this.app.store.marksBetween(this.from, this.until);
    this.sayMarks();
    this.redraw();
  }

  redraw() {
    if (!this.columns.end || this.until === undefined) return;
    this.heatmap.draw();
    for (const chart of this.charts) chart.draw();
  }

  sayFacts(device) {
    const now = device.now;
    const fact = (label, words, small) => element("li", {}, element("span", {}, label), element("b", {}, words), small ? element("small", {}, small) : null);
    const rate = (kind) => count(now[kind].ios / now.seconds) + "/s";
    const usual = (kind) => (device.usual_p99[kind] === null ? "" : `usually ${latency(device.usual_p99[kind])}`);
    this.title.textContent = [device.name, device.model].filter(Boolean).join(" · ");
    const facts = [fact("size", bytes(device.size_bytes), [device.transport, device.scheduler].filter(Boolean).join(", "))];
    if (now) {
      facts.push(
        fact("read p99", latency(now.read.p99), usual("read")), fact("write p99", latency(now.write.p99), usual("write")),
        fact("fsync p99", latency(now.commit.p99), usual("commit")),
        fact("reads", rate("read"), bytes(now.read.bytes / now.seconds) + "/s"), fact("writes", rate("write"), bytes(now.write.bytes / now.seconds) + "/s"),
        fact("in flight", String(now.in_flight)));
    }
    if (device.mounts.length) facts.push(fact("mounted", device.mounts.map((mount) => mount.mountpoint).join(", "), device.mounts.map((mount) => mount.fstype + (mount.discard ? " with discard" : "")).join(", ")));
    if (device.modelled) facts.push(fact("write amplification, by the model", device.modelled));
    if (device.nvme) {
      const waf = device.nvme.write_amplification;
      facts.push(fact("write amplification", waf.ratio === null ? "not known" : waf.ratio.toFixed(2), waf.ratio === null ? waf.reason : `${waf.lower.toFixed(2)} to ${waf.upper.toFixed(2)} over ${waf.window}`));
      if (device.nvme.used_ratio !== null) facts.push(fact("life left", (100 - 100 * device.nvme.used_ratio).toFixed(0) + " %", device.nvme.life_seconds === null ? "" : duration(device.nvme.life_seconds) + " at this pace"));
      if (device.nvme.temperature_celsius !== null) facts.push(fact("temperature", device.nvme.temperature_celsius.toFixed(0) + " °C"));
    }
    this.facts.replaceChildren(...facts);
  }

  sayMarks() {
    const key = JSON.stringify(this.marks.map((mark) => [mark.id, mark.kind, mark.cause, mark.end]));
    const chosen = this.marks.find((mark) => mark.id === this.chosen);
    if (chosen && chosen.end === null) this.explain(chosen);
    if (key === this.saidMarks) return;
    this.saidMarks = key;
    if (this.marks.length === 0) {
      this.marksList.replaceChildren(element("li", { class: "faint" }, "No slow time and no burst of discards in this range."));
      return;
    }
    this.marksList.replaceChildren(...this.marks.map((mark) => element("li", {}, element("button", { type: "button", "data-mark": mark.id, onclick: () => this.explain(mark, true) },
      element("b", {}, mark.kind === "bursts" ? "B" : LETTERS[mark.cause] ?? "?"), " ",
      mark.kind === "bursts" ? `${clock(mark.begin)} discards (${mark.trigger}) ${bytes(mark.bytes)}` : `${clock(mark.begin)} slow ${plural(mark.operation)}, ${duration(mark.end === null ? this.app.store.overview.taken_at - mark.begin : mark.seconds)}`))));
  }

  explainAt(time) {
    if (time === null || !this.marks) return;
    const near = (this.until - this.from) / 60;
    const hit = this.marks.filter((mark) => mark.begin - near <= time && time <= (mark.end ?? this.until) + near);
    if (hit.length) this.explain(hit.find((mark) => mark.kind === "spikes") ?? hit[0], true);
    else this.exactColumn();
  }

  // What the colours only hint at.
  async exactColumn() {
    const at = this.cursorIndex();
    if (at === null) return;
    const number = this.columns.number[at];
    try {
      const column = await this.app.store.ask(`devices/${encodeURIComponent(this.device)}/column?snapshot=${number}`);
      if (!column) return;
      const rows = column.latency[this.heat].map(([word, ios]) => element("tr", {}, element("td", { class: "number" }, "to " + latency(this.bounds[word])), element("td", { class: "number" }, exact(ios))));
      this.chosen = null;
      this.explanation.replaceChildren(element("div", { class: "explain" }, element("h3", {}, `${plural(this.heat)} in the second to ${clock(column.end)}`),
        element("table", {}, element("thead", {}, element("tr", {}, element("th", { class: "number" }, "latency"), element("th", { class: "number" }, "I/Os"))), element("tbody", {}, ...rows))));
    } catch (error) { /* the connection says it */ }
  }

  explain(mark, focus) {
    this.chosen = mark.id;
    const time = `${clock(mark.begin)} to ${mark.end === null ? "now" : clock(mark.end)}`;
    const box = element("div", { class: "explain", tabindex: "-1", "data-explains": mark.id });
    if (mark.kind === "bursts") {
      box.append(element("h3", {}, `A burst of discards, ${time}`), element("p", {}, `Sent by: ${mark.trigger}. Discarded: ${bytes(mark.bytes)}.`));
    } else {
      const factor = mark.usual_seconds ? `, ${(mark.peak_seconds / mark.usual_seconds).toFixed(1)} times longer than usual (${latency(mark.usual_seconds)})` : "";
      box.append(element("h3", {}, `Slow ${plural(mark.operation)}, ${time}: ${mark.words}`),
        element("p", {}, `In the worst second ${plural(mark.operation)} took ${latency(mark.peak_seconds)}${factor}.`),
        element("p", {}, element("strong", {}, "What speaks for it:")), element("ul", {}, ...mark.evidence.map((line) => element("li", {}, line))));
      if (mark.missing.length) box.append(element("p", {}, element("strong", {}, "What could not be known:")), element("ul", {}, ...mark.missing.map((line) => element("li", {}, line))));
      box.append(element("p", {}, element("strong", {}, "Next: "), mark.next + " ", this.app.runbookButton(mark.runbook)));
    }
    this.explanation.replaceChildren(box);
    if (focus) box.focus({ preventScroll: false });
  }

  setCursor(time) {
    this.cursor = time;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.redraw());
  }

  step(direction) {
    const oldest = this.columns.end?.[0];
    if (oldest === undefined) return;
    const until = (this.to ?? this.until) + (direction * this.range) / 2;
    const newest = this.columns.end[this.columns.end.length - 1];
    this.app.go({ to: until >= newest ? null : Math.round(Math.max(until, oldest + this.range / 2)) });
  }

  onChartKey(event) {
    const far = event.shiftKey ? 10 : 1;
    const at = this.cursor ?? this.until;
    if (event.key === "ArrowLeft") this.setCursor(Math.max(this.from, at - far));
    else if (event.key === "ArrowRight") this.setCursor(Math.min(this.until, at + far));
    else if (event.key === "Enter") this.explainAt(at);
    else if (event.key === "Escape" && this.cursor !== null) this.setCursor(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
