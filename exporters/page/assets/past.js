// SPDX-License-Identifier: Apache-2.0
// One drive in any window of the history, in the shape of the live store: columns by name, levels, marks. A column is a
// minute or more here; missing times were not measured.

import { text } from "./words.js";

const POINTS = 600;
const REFRESH = 60; // seconds, for a window that ends now
const DOUBT = 0.2; // the largest distance between a ratio's bounds, as a share of the ratio

// Latencies come in seconds, rounded; charts and heatmap count in buckets.
function bucketOf(bounds, seconds) {
  if (seconds == null) return null;
  let low = 0;
  let high = bounds.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle] < seconds * 0.9999) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Media writes divided by host writes since the point before. Both counters count whole units: null if these leave too
// much doubt.
function amplificationOf(wear) {
  const { host_bytes: host, media_bytes: media, host_unit_bytes: hostUnit, media_unit_bytes: mediaUnit } = wear ?? {};
  if (!hostUnit || !mediaUnit || media === null || !(host > hostUnit)) return null;
  const ratio = media / host;
  const bounds = (media + mediaUnit) / (host - hostUnit) - (media - mediaUnit) / (host + hostUnit);
  return bounds <= DOUBT * ratio ? ratio : null;
}

function columnsOf(answer) {
  const { points, step_seconds: step, bounds_seconds: bounds } = answer;
  const columns = { end: points.start.map((start) => start + step), seconds: points.start.map(() => step), measured: points.measured_seconds ?? [] };
  for (const kind of ["read", "write", "flush", "discard", "commit"]) {
    for (const [name, values] of Object.entries(points[kind] ?? {})) {
      columns[`${kind}_${name}`] = /p(50|99|999)$/.test(name) ? values.map((value) => bucketOf(bounds, value)) : values;
    }
  }
  const wear = new Map(answer.wear.map((one) => [one.at, one]));
  columns.worn = points.start.map((start) => wear.get(start) ?? null);
  columns.amplification = columns.worn.map(amplificationOf);
  return columns;
}

function marksOf(answer) {
  const spikes = answer.spikes.map((one) => ({ ...one, kind: "spikes", id: `${one.operation}-${Math.round(one.begin * 1000)}`, end: one.begin + one.seconds,
    evidence: one.sentences, missing: one.missing ? one.missing.split("; ") : [] }));
  const bursts = answer.bursts.map((one) => ({ ...one, kind: "bursts", id: `${one.trigger}-${Math.round(one.begin * 1000)}`, end: one.begin + one.seconds }));
  const waits = answer.waits.map((one) => ({ ...one, kind: "waits" }));
  const settings = answer.settings.filter((one) => one.before !== null).map((one, i) => ({ ...one, kind: "settings", id: `setting-${i}`, begin: one.at, end: one.at }));
  const marks = answer.marks.map((one, i) => ({ ...one, kind: "marks", id: `mark-${i}`, begin: one.at, end: one.at }));
  return [...spikes, ...bursts, ...waits, ...settings, ...marks].sort((a, b) => a.begin - b.begin);
}

export class Past {
  constructor(changed) {
    this.changed = changed;
    this.clear();
  }

  clear() {
    this.columns = {};
    this.levels = [];
    this.marks = [];
    this.tenants = null;
    this.answer = null;
    this.trouble = "";
    this.measured = 0;
    this.bySeconds = false;
    this.asked = "";
  }

  // Asks if another window is wanted, or this one ends now and has grown.
  select(device, heat, from, to, ends, bySeconds) {
    const key = [device, heat, ends ? from - to : from, ends ? "now" : to, bySeconds].join(" ");
    const now = Date.now() / 1000;
    if (key === this.asked && !(ends && now - this.askedAt > REFRESH)) return;
    if (key !== this.asked) this.answer = null;
    this.asked = key;
    this.askedAt = now;
    this.ask(key, device, heat, from, to, bySeconds);
  }

  // In columns of single seconds, latencies are buckets already.
  async ask(key, device, heat, from, to, bySeconds) {
    let answer = null;
    let seconds = null;
    let trouble = "";
    const get = async (query) => {
      const response = await fetch(`api/v1/history/${encodeURIComponent(device)}?from=${Math.floor(from)}&to=${Math.ceil(to)}&heat=${heat}&${query}`, { signal: AbortSignal.timeout(10000) });
      if (response.ok) return response.json();
      trouble = (await response.text()).slice(0, 300).trim();
      return null;
    };
    try {
      answer = await get(`points=${POINTS}&tenants=total`);
      if (answer && bySeconds) seconds = await get("seconds=1");
    } catch (error) {
      trouble = text("noAnswer");
    }
    if (key !== this.asked) return; // the user looks elsewhere now
    this.trouble = trouble === "no such page" ? text("noHistory") : trouble;
    if (answer) {
      this.answer = answer;
      this.bounds = answer.bounds_seconds;
      this.columns = columnsOf(answer);
      this.levels = answer.heat.levels;
      this.marks = marksOf(answer);
      this.tenants = answer.tenants;
      this.measured = this.columns.measured.reduce((all, one) => all + one, 0);
      this.bySeconds = Boolean(seconds);
      if (seconds) {
        const lengths = (seconds.columns.milliseconds ?? []).map((one) => one / 1000);
        this.columns = { ...seconds.columns, end: seconds.end, seconds: lengths, measured: lengths };
        this.levels = seconds.heat.levels;
      }
    } else if (!this.answer) {
      this.columns = { end: [], seconds: [], measured: [] };
      this.levels = [];
      this.marks = [];
      this.tenants = null;
    }
    this.changed();
  }

  get step() { return this.bySeconds ? 1 : this.answer?.step_seconds ?? 60; }

  // There were more slow times, bursts or waits before those that are listed.
  get cut() { return this.answer?.cut ?? false; }

  // Nothing before it is kept.
  get oldest() {
    const { minutes, hours } = this.answer?.reach ?? {};
    const known = [minutes, hours].filter((one) => one != null);
    return known.length ? Math.min(...known) : null;
  }

  series(name) { return this.columns[name] ?? []; }
  marksBetween() { return this.marks; }
}
