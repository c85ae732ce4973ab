// SPDX-License-Identifier: Apache-2.0
// Whose I/O it is, how it enters the kernel, and what was declared about writes: bars by name, with a summary and a
// table: live, for the last minute; for the past, over the window that is shown.

import { text, element, latency, bytes, percent, duration, viewLink } from "./words.js";

const POLL_INTERVAL = 5; // seconds
const LIVE = 60; // seconds that the live figures cover
const MAX_BARS = 9;
const OPERATIONS = ["read", "write", "discard"];
const MEASURES = {
  bytes: [text("dataPerSecond"), (one) => one.bytes, (value, seconds) => bytes(value / seconds) + "/s"],
  device: [text("deviceTime"), (one) => one.device, (value, seconds) => text("ofTheTime", percent(value / seconds))],
  mean: [text("meanLatency"), (one) => (one.ios > 0 && one.device > 0 ? one.device / one.ios : null), (value) => latency(value)],
};

const TABLE = {
  ios: [text("iosPerSecond"), (one, seconds) => (one.ios / seconds).toFixed(1)],
  bytes: [text("dataPerSecondHead"), (one, seconds) => bytes(one.bytes / seconds) + "/s"],
  device: [text("deviceTimeHead"), (one, seconds) => percent(one.device / seconds)],
  mean: [text("meanLatencyHead"), (one) => latency(MEASURES.mean[1](one))],
};

// For one name: reads, writes and discards together.
function sum(one) {
  const total = { name: one.name, title: one.title, ios: 0, bytes: 0, device: 0 };
  for (const operation of OPERATIONS) {
    total.ios += one[operation].ios;
    total.bytes += one[operation].bytes;
    total.device += one[operation].device_seconds;
  }
  return total;
}

// The I/O between two answers; a name that the first one lacks began in between.
export function between(before, after) {
  if (!after) return null;
  const known = new Map((before ?? []).map((one) => [one.name, sum(one)]));
  return after.map((one) => {
    const now = sum(one);
    const then = known.get(one.name) ?? { ios: 0, bytes: 0, device: 0 };
    return { name: one.name, title: one.title, ios: now.ios - then.ios, bytes: now.bytes - then.bytes, device: now.device - then.device };
  }).filter((one) => one.ios > 0 || one.bytes > 0);
}

// The same for writes by hint, class or stream; what is not counted by these is null.
function writesBetween(before, after, list, name) {
  if (!before || !after) return null;
  const known = new Map(before[list].map((one) => [one.name, one]));
  const grown = (one, field) => (one[field] === undefined ? null : one[field] - (known.get(one.name)?.[field] ?? 0));
  return after[list].map((one) => ({ name: name(one.name), ios: grown(one, "ios"), bytes: grown(one, "bytes"), device: grown(one, "device_seconds") }))
    .filter((one) => one.ios > 0 || one.bytes > 0);
}

class Bars {
  constructor(title, { id = null, nothing = (seconds) => text("noIo", seconds), bytesAlone = false, kind = null } = {}) {
    this.title = title;
    this.kind = kind; // of the view that a name leads to
    this.nothing = nothing;
    this.measure = "bytes";
    this.columns = Object.values(bytesAlone ? { bytes: TABLE.bytes } : TABLE);
    this.buttons = Object.entries(bytesAlone ? {} : MEASURES).map(([name, [words]]) => element("button", { type: "button", onclick: () => {
      this.measure = name;
      this.draw();
    } }, words));
    this.measures = element("div", { class: "group", role: "group", "aria-label": text("by", title) }, ...this.buttons);
    this.list = element("ul", { class: "bars" });
    this.summary = element("p", { class: "summary" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("asTableOf", title) });
    this.root = element("figure", { class: "chart", "data-bars": id }, element("div", { class: "head" }, element("h3", {}, title), this.measures),
      this.list, this.summary, this.details = element("details", {}, element("summary", {}, text("asATable")), this.table));
  }

  // `rows` null: nothing is known, for the reason `why`.
  show(rows, seconds, why) {
    const key = JSON.stringify([rows, seconds, why, this.kind && location.hash]);
    if (key === this.shown) return;
    this.shown = key;
    Object.assign(this, { rows, seconds, why });
    this.draw();
  }

  draw() {
    const [, value, words] = MEASURES[this.measure];
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", Object.keys(MEASURES)[i] === this.measure));
    const none = !this.rows || this.rows.length === 0;
    this.details.hidden = this.list.hidden = none;
    this.measures.hidden = none || this.buttons.length === 0;
    if (none) {
      this.list.replaceChildren();
      this.table.replaceChildren();
      this.summary.textContent = this.why ?? this.nothing(duration(this.seconds));
      return;
    }
    const rows = this.rows.filter((one) => value(one) !== null).sort((a, b) => value(b) - value(a));
    const highest = Math.max(...rows.map(value), 0);
    const shown = rows.slice(0, MAX_BARS);
    this.list.replaceChildren(...shown.map((one) => {
      const bar = element("span", { class: "bar-of", "aria-hidden": "true" });
      bar.style.width = `${highest > 0 ? Math.max(0.5, (100 * value(one)) / highest) : 0}%`;
      const who = one.title ?? one.name;
      return element("li", {}, this.kind && one.name !== "other" ? element("a", { class: "who", title: who, href: viewLink(this.kind, one.name, { on: this.device }) }, who) : element("span", { class: "who", title: who }, who), element("span", { class: "track" }, bar), element("span", { class: "much" }, words(value(one), this.seconds)));
    }));
    const more = rows.length - shown.length;
    this.summary.textContent = rows.length === 0 ? text("deviceTimeNotMeasured") :
      text("hasTheMost", rows[0].title ?? rows[0].name, words(value(rows[0]), this.seconds), duration(this.seconds) + (more > 0 ? `; ${text("moreInTable", more)}` : ""));
    this.table.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, element("th", {}, text("name")), ...this.columns.map(([head]) => element("th", { class: "number" }, head)))),
      element("tbody", {}, ...this.rows.map((one) => element("tr", {}, element("td", {}, one.title ?? one.name), ...this.columns.map(([, words]) => element("td", { class: "number" }, words(one, this.seconds))))))));
  }
}

export class Tenants {
  constructor(store, device) {
    this.store = store;
    this.device = device;
    this.samples = [];
    this.askedAt = 0;
    this.tenants = new Bars(text("tenants"), { kind: "tenant" });
    this.tenants.device = device;
    this.paths = new Bars(text("paths"));
    this.root = element("div", { class: "charts" }, this.tenants.root, this.paths.root);
    this.hints = new Bars(text("byHint"), { id: "hints", nothing: (seconds) => text("noWrite", seconds) });
    this.classes = new Bars(text("byMaker"), { id: "classes", nothing: (seconds) => text("noWrite", seconds), bytesAlone: true });
    this.streams = new Bars(text("byStream"), { id: "streams", nothing: (seconds) => text("noStream", seconds), bytesAlone: true });
    this.hintPath = element("p", { class: "faint" });
    this.byWrites = element("div", { class: "charts" }, this.hints.root, this.classes.root, this.streams.root);
    this.writes = element("div", { id: "writes" }, this.hintPath, this.byWrites);
  }

  // For the last minute, as far as this page has seen it.
  async live() {
    const now = Date.now() / 1000;
    // The first two soon, so that there is something to see.
    if (document.hidden || this.asking || now - this.askedAt < (this.samples.length < 2 ? 0.9 : POLL_INTERVAL)) return;
    this.asking = true;
    this.askedAt = now;
    try {
      const answer = await this.store.ask(`devices/${encodeURIComponent(this.device)}/tenants`);
      if (answer && this.samples.length && this.samples[0].run !== answer.run) this.samples = [];
      if (answer) this.samples.push(answer);
      while (this.samples.length > 2 && this.samples[this.samples.length - 1].taken_at - this.samples[1].taken_at >= LIVE) this.samples.shift();
    } catch (error) { /* the connection status shows it */ }
    this.asking = false;
  }

  showLive() {
    this.live();
    this.byWrites.hidden = false;
    const before = this.samples[0];
    const after = this.samples[this.samples.length - 1];
    const seconds = after ? after.taken_at - before.taken_at : 0;
    if (!(seconds > 0)) {
      for (const bars of [this.tenants, this.paths, this.hints, this.classes, this.streams]) bars.show(null, 0, text("countedInASecond"));
      this.hintPath.textContent = "";
      return;
    }
    this.tenants.show(between(before.tenants, after.tenants), seconds, after.tenants ? undefined : text("noTenantNames"));
    this.paths.show(between(before.paths, after.paths), seconds, after.paths ? undefined : text("notReportedByKernel"));
    const known = before.writes && after.writes;
    for (const [bars, list, name] of [[this.hints, "hints", (one) => one.replace("_", " ")], [this.classes, "classes", (one) => one], [this.streams, "streams", (one) => text("stream", one)]]) {
      bars.show(writesBetween(before.writes, after.writes, list, name), seconds, known ? undefined : text("onlyInFull"));
    }
    const { hint_path: path, placement_handles: handles } = after;
    this.hintPath.textContent = (path ? text("hintPath", path.kernel, path.drive) : text("hintPathNotKnown")) +
      (handles ? ` ${text("placementHandles", handles.host, handles.controller, handles.unused)}` : "");
    Object.assign(this.writes.dataset, { begin: before.taken_at, end: after.taken_at });
  }

  showPast(past) {
    const seconds = past.measured;
    const rows = past.tenants?.map(sum);
    this.tenants.show(rows?.length ? rows : null, seconds, text("noPastTenants"));
    this.paths.show(null, seconds, text("noPastPaths"));
    this.byWrites.hidden = true;
    this.hintPath.textContent = text("noPastWrites");
  }
}
