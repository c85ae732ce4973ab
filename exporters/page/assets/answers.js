// SPDX-License-Identifier: Apache-2.0
// What a runbook asks of Prometheus, answered for one drive by this host's daemon, below the text that asks. No query is
// evaluated: of each metric that it names, the values of now come from /metrics, and those of the last hour and day from
// the history, of what is in KEPT. The past of all else is Prometheus's.

import { text, element, patch, bytes, count, duration, exact, latency, percent, short, span } from "./words.js";

const REFRESH = 10_000; // milliseconds
const MOST_ROWS = 10;
const HEAD = { now: () => text("answersNow"), hour: () => text("lastHour"), day: () => text("lastDay") };
const MEASURED = { hour: (minutes) => text("byMinute", minutes), day: (minutes) => text("byTenMinutes", minutes) };
const SPANS = { hour: [3600, 60], day: [86400, 144] }; // seconds, and how many points

const METRIC = /\b(?:ssdpulse|process)_[a-z0-9_]*[a-z0-9](?:\{[^}]*\})?/g;
export const FOREIGN = /\b(?:up(?=\{)|node_\w+)/g;
const HISTOGRAM = /_latency_seconds$/; // of those that the history keeps
const MATCHER = /(\w+)(=~|!~|!=|=)"([^"]*)"/g;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ADDED = ["job", "instance"]; // labels of Prometheus's own
// Which figure of a histogram a query is about; the first that fits.
const FIGURES = [[/0\.999/, "p999"], [/_sum\b|_avg\b/, "mean"], [/_count\b/, "ios"], [/during/, "during"], [/./, "p99"]];

const FIGURE = { p99: (words) => text("p99Of", words), during: (words) => text("p99Of", words), p999: (words) => text("p999Of", words), mean: (words) => text("meanOf", words) };

const TRANSFERS = ["read", "write"];
const byOperation = (operations, column) => ({ points }, figure) => (/_p99$/.test(column) && !["p99", "during"].includes(figure) ? []
  : operations.map((operation) => [{ operation }, points[operation]?.[column ?? figure]]));
// All of it is there: what is not did not happen.
const complete = (made) => Object.assign(made, { complete: true });
// `listed`: cut to the newest where there are too many.
const listed = (list, labels, value) => Object.assign(complete((past) => past[list].map((one) => [Object.fromEntries(labels.map((label) => [label, one[label]])), [one[value] ?? 1]])), { listed: true });
const worn = (value, labels = () => ({})) => complete(({ wear }) => wear.map((one) => [labels(one), [one[value]]]));
const inDevice = ({ points }, figure) => (figure !== "during" ? byOperation(TRANSFERS, "device_p99")({ points }, figure)
  : TRANSFERS.flatMap((operation) => ["none", "discard", "flush", "both"].map((during) => [{ operation, during }, points[operation]?.[`during_${during}_p99`]])));
// Of a metric, what an answer of /api/v1/history/DEVICE has: labels, and the values of points or of what happened.
export const KEPT = {
  ssdpulse_io_latency_seconds: byOperation([...TRANSFERS, "flush", "discard", "commit"]),
  ssdpulse_io_queue_latency_seconds: byOperation(TRANSFERS, "queue_p99"),
  ssdpulse_io_device_latency_seconds: inDevice,
  ssdpulse_io_bytes_total: byOperation([...TRANSFERS, "discard"], "bytes"),
  ssdpulse_io_errors_total: ({ points }) => [[{}, points.errors]],
  ssdpulse_lost_events_total: ({ points }) => [[{}, points.losses]],
  ssdpulse_latency_spikes_total: listed("spikes", ["operation", "cause"]),
  ssdpulse_latency_spike_seconds_total: listed("spikes", ["operation", "cause"], "seconds"),
  ssdpulse_latency_excess_seconds_total: listed("spikes", ["operation", "cause"], "excess_seconds"),
  ssdpulse_discard_burst_seconds_total: listed("bursts", ["trigger"], "seconds"),
  ssdpulse_discard_burst_bytes_total: listed("bursts", ["trigger"], "bytes"),
  ssdpulse_tenant_bytes_total: complete(({ tenants }) => tenants.flatMap((tenant) => [...TRANSFERS, "discard"].map((operation) => [{ tenant: tenant.name, operation }, [tenant[operation].bytes]]))),
  ssdpulse_nvme_percentage_used_ratio: worn("percentage_used"),
  ssdpulse_nvme_available_spare_ratio: worn("available_spare"),
  ssdpulse_nvme_temperature_celsius: worn("temperature_celsius", () => ({ sensor: "composite" })),
  ssdpulse_nvme_host_written_bytes_total: worn("host_bytes", ({ source }) => ({ source })),
  ssdpulse_nvme_media_written_bytes_total: worn("media_bytes", ({ source }) => ({ source })),
};

const MATCHES = { "=": (one, other) => one === other, "!=": (one, other) => one !== other, "=~": (one, other) => new RegExp(`^(?:${other})$`).test(one), "!~": (one, other) => !new RegExp(`^(?:${other})$`).test(one) };

// The metrics that a text asks for: {name, matchers, figure}.
export function asked(words) {
  const found = new Map();
  for (const [, code] of words.matchAll(/`([^`]+)`/g)) {
    for (const [all] of code.matchAll(METRIC)) {
      const [, name, within] = /^(\w+?)(?:_bucket|_sum|_count)?(\{.*\})?$/.exec(all);
      const figure = FIGURES.find(([pattern]) => pattern.test(code))[1];
      found.set(`${name}${within ?? ""} ${figure}`, { name, figure, matchers: [...(within ?? "").matchAll(MATCHER)].map(([, ...matcher]) => matcher).filter(([label]) => !ADDED.includes(label)) });
    }
  }
  return [...found.values()];
}

// Of a page of metrics, the families that are asked for: {type, samples: [{labels, value, count}]}; of a histogram, its sum.
export function samplesOf(page, names) {
  const families = new Map([...names].map((name) => [name, { type: null, samples: new Map() }]));
  for (const line of page.split("\n")) {
    const [, typed, type] = /^# TYPE (\w+) (\w+)/.exec(line) ?? [];
    if (families.has(typed)) families.get(typed).type = type;
    const [, name, within = "", number] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    const [, base, part] = /^(\w+?)(?:_(bucket|sum|count))?$/.exec(name ?? "") ?? [];
    const family = families.get(name) ?? families.get(base);
    if (!family || (part === "bucket" && !families.has(name))) continue;
    const labels = Object.fromEntries([...within.matchAll(LABEL)].map(([, label, value]) => [label, value.replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one))]));
    const sample = family.samples.get(within) ?? { labels };
    sample[part === "count" && !families.has(name) ? "count" : "value"] = Number(number);
    family.samples.set(within, sample);
  }
  return families;
}

function inUnit(name, value, at) {
  if (value == null || Number.isNaN(value)) return text("noData");
  if (/_celsius$/.test(name)) return `${short(value)} °C`;
  if (/_(timestamp|start_time)_seconds$/.test(name)) return text("ago", duration(at - value));
  if (/_seconds(_total)?$/.test(name)) return value >= 120 ? duration(value) : latency(value);
  if (/_bytes(_total)?$/.test(name)) return bytes(value);
  if (/_ratio$/.test(name)) return /amplification/.test(name) ? short(value) : percent(value);
  return Number.isInteger(value) ? (value < 1e6 ? exact(value) : count(value)) : short(value);
}

const labelWords = (labels) => Object.entries(labels).filter(([, value]) => value !== "").sort(([a], [b]) => (a < b ? -1 : 1)).map(([label, value]) => `${label} ${value}`).join(", ");

// A counter's or a histogram's change since the page began to ask, once there is one, and all of it so far.
function valueWords(name, { type }, sample, before, seconds, at) {
  if (type === "histogram") {
    const mean = (all, number) => text("meanOfNumber", inUnit(name, all / number), count(number));
    const [all, number] = before ? [sample.value - before.value, sample.count - before.count] : [0, 0];
    return [before && number >= 0 && text("sinceAsked", number > 0 ? mean(all, number) : text("none"), seconds), text("soFar", sample.count ? mean(sample.value, sample.count) : text("none"))].filter(Boolean);
  }
  if (type !== "counter") return [inUnit(name, sample.value, at)];
  const more = before ? sample.value - before.value : -1; // less than before: it began again
  return [more >= 0 && text("sinceAsked", more ? inUnit(name, more) : text("none"), seconds), text("soFar", inUnit(name, sample.value))].filter(Boolean);
}

// Rows of what the history has in one span: by labels, in words.
function pastRows({ name, figure, matchers }, answer) {
  const rows = new Map();
  const happened = (list) => list.filter((one) => one.begin >= answer.from);
  for (const [labels, values] of KEPT[name]({ ...answer, spikes: happened(answer.spikes), bursts: happened(answer.bursts) }, figure)) {
    if (!matchers.every(([label, how, wanted]) => MATCHES[how](labels[label] ?? "", wanted))) continue;
    const key = labelWords(labels);
    rows.set(key, { labels, values: [...(rows.get(key)?.values ?? []), ...(values ?? []).filter((one) => one !== null)] });
  }
  const adds = /_total$/.test(name) || figure === "ios";
  const unit = figure === "ios" ? "ios" : name;
  const isCut = answer.cut && KEPT[name].listed;
  const of = (HISTOGRAM.test(name) && FIGURE[figure]) || ((words) => words);
  return new Map([...rows].map(([key, { labels, values }]) => {
    const sum = values.reduce((all, one) => all + one, 0);
    const total = isCut ? text("atLeast", inUnit(unit, sum)) : inUnit(unit, sum);
    const words = adds ? total : of(span(inUnit(unit, Math.min(...values)), inUnit(unit, Math.max(...values))));
    return [key, { labels, weight: adds ? sum : Math.max(0, ...values), words: values.length === 0 ? null : adds && sum === 0 ? text(isCut ? "noData" : "none") : words }];
  }));
}

export class Answers {
  // `device`: an entry of /api/v1/devices, or null: all drives.
  constructor(device, store) {
    this.device = device;
    this.store = store;
    this.places = [];
  }

  // What is to stand below a text, or null; filled once the daemon has answered.
  of(words) {
    const wanted = asked(words);
    const foreign = [...new Set([...words.matchAll(/`([^`]+)`/g)].flatMap(([, code]) => code.match(FOREIGN) ?? []))];
    if (wanted.length + foreign.length === 0) return null;
    const place = { wanted, foreign, root: element("div", { class: "answers", role: "group", "aria-label": text("answersTitle") }, element("p", { class: "faint" }, text("askingDaemon"))) };
    this.places.push(place);
    return place.root;
  }

  // Asks as long as somebody looks.
  async watch(looks) {
    const wants = this.places.some(({ wanted }) => wanted.length);
    if (wants) await this.askPast();
    do {
      if (wants && !document.hidden) await this.askNow();
      if (looks()) this.places.forEach((place) => this.fill(place));
      if (!wants) return;
      await new Promise((go) => setTimeout(go, REFRESH));
    } while (looks());
  }

  // By the host's clock, which the browser's may differ from.
  get at() { return this.store.overview?.taken_at ?? Date.now() / 1000; }

  async askPast() {
    const now = Math.floor(this.at / 60) * 60;
    this.past = {};
    for (const [name, [seconds, points]] of this.device ? Object.entries(SPANS) : []) {
      try {
        const answer = await fetch(`api/v1/history/${encodeURIComponent(this.device.name)}?from=${now - seconds}&to=${now}&points=${points}&tenants=total`, { signal: AbortSignal.timeout(10000) });
        if (answer.ok) this.past[name] = await answer.json();
        else {
          const words = (await answer.text()).slice(0, 300).trim();
          this.noPast = words === "no such page" ? text("noHistory") : answer.status === 404 ? text("nothingOfDrive") : words;
        }
      } catch (error) {
        this.noPast = text("noAnswer");
      }
    }
  }

  async askNow() {
    try {
      const answer = await fetch("metrics", { headers: { Accept: "text/plain" }, signal: AbortSignal.timeout(10000) });
      this.now = answer.ok ? samplesOf(await answer.text(), new Set(this.places.flatMap(({ wanted }) => wanted.map(({ name }) => name)))) : null;
      this.refusal = answer.ok ? null : (await answer.text()).slice(0, 300).trim();
    } catch (error) {
      this.now = this.refusal = null;
    }
    if (this.run !== this.store.run) this.first = null; // all counters began again
    this.run = this.store.run;
    this.first ??= this.now && { at: Date.now(), families: this.now };
  }

  concerns({ device, controller }) {
    if (!this.device) return true;
    return device !== undefined && device !== "" ? device === this.device.name : controller === undefined || controller === this.device.nvme?.controller;
  }

  // A drive that was measured had none of what is not there; its log pages may not have been read.
  without(name, one) {
    const { points, cut } = this.past[one];
    return points.start.length && !name.startsWith("ssdpulse_nvme_") && !(cut && KEPT[name]?.listed) ? text("none") : text("noData");
  }

  // {key, now, hour, day} of each row of a metric.
  rowsOf(wanted) {
    const { name, matchers } = wanted;
    const family = this.now.get(name);
    const seconds = Math.round((Date.now() - this.first.at) / 1000);
    const current = [...family.samples].filter(([, { labels }]) => this.concerns(labels) && matchers.every(([label, how, value]) => MATCHES[how](labels[label] ?? "", value)));
    const rows = new Map();
    for (const [within, sample] of current) {
      const { device, controller, ...labels } = sample.labels;
      const key = labelWords(this.device ? labels : sample.labels);
      const before = seconds >= REFRESH / 2000 ? this.first.families.get(name).samples.get(within) : null;
      rows.set(key, { key, weight: family.type === "histogram" ? sample.count : sample.value, now: /_info$/.test(name) ? [] : valueWords(name, family, sample, before, seconds, this.at) });
    }
    const past = KEPT[name] ? Object.keys(SPANS).filter((one) => this.past[one]).map((one) => [one, pastRows(wanted, this.past[one])]) : [];
    for (const [one, found] of past) {
      for (const [key, { weight, words }] of found) {
        const row = rows.get(key) ?? (words !== null && { key, weight: 0, now: [] });
        if (row) rows.set(key, { ...row, weight: Math.max(row.weight, weight), [one]: words ?? this.without(name, one) });
      }
    }
    if (KEPT[name]?.complete) rows.forEach((row) => past.forEach(([one]) => { row[one] ??= this.without(name, one); }));
    const all = [...rows.values()].sort((a, b) => (b.weight || 0) - (a.weight || 0));
    const isZero = (row) => row.weight === 0 && row.now.length > 0 && Object.keys(SPANS).every((one) => [undefined, text("none"), text("noData")].includes(row[one]));
    const some = all.filter((row) => !isZero(row));
    const zeros = all.length - some.length;
    const shown = some.slice(0, MOST_ROWS);
    const nothing = Object.fromEntries(past.map(([one]) => [one, this.without(name, one)]));
    if (all.length === 0) shown.push({ key: "", now: [text("noSeries")], ...nothing });
    else if (zeros === 1 && some.length < MOST_ROWS) shown.push({ ...nothing, ...all.find(isZero) });
    else if (zeros) shown.push({ key: some.length ? text("more", zeros) : text("allOf", zeros), now: ["0"], ...nothing });
    if (some.length > MOST_ROWS) shown.push({ key: text("smallerOnes", some.length - MOST_ROWS), now: [] });
    return shown.map((row) => ({ ...row, name }));
  }

  fill({ wanted, foreign, root }) {
    const filled = (...parts) => patch(root, element("div", { class: "answers", role: "group", "aria-label": text("answersTitle") }, ...parts));
    if (wanted.length && !this.now) return filled(element("p", { class: "faint" }, this.refusal || text("doesNotAnswer")));
    const names = (list) => [...new Set(list)].join(", ");
    const rows = wanted.flatMap((one) => this.rowsOf(one));
    const columns = ["now", "hour", "day"].filter((one) => rows.some((row) => row[one]?.length));
    const measured = (one) => this.past?.[one] && MEASURED[one](Math.round((this.past[one].points.measured_seconds ?? []).reduce((all, some) => all + some, 0) / 60));
    const head = (one) => element("th", { scope: "col" }, HEAD[one](), one === "now" ? null : element("small", {}, ` ${measured(one)}`));
    const kept = wanted.filter(({ name }) => KEPT[name]);
    // The history may lack the figure or a label that is asked for.
    const lacks = (one) => !KEPT[one.name].complete && this.past?.hour && pastRows(one, this.past.hour).size === 0;
    const elsewhere = wanted.filter((one) => (!KEPT[one.name] && !/_info$/.test(one.name)) || (KEPT[one.name] && lacks(one))).map(({ name }) => name);
    const notes = [foreign.length && text("onlyPrometheusKnows", names(foreign)), elsewhere.length && text("onlyPrometheusKeeps", names(elsewhere)), kept.length && this.noPast && text("noPastHere", this.noPast), kept.length && !this.device && text("noDriveAsked")].filter(Boolean);
    const cell = (one, words) => element("td", { "data-span": one }, ...(one === "now" ? words.flatMap((some, i) => (i ? element("small", {}, some) : some)) : [words ?? ""]));
    const line = (row, i) => [row.name === rows[i - 1]?.name ? null : element("tr", {}, element("th", { scope: "rowgroup", colspan: columns.length + 1 }, element("code", {}, row.name))),
      element("tr", { "data-metric": row.name }, element("th", { scope: "row" }, row.key || (/_total$/.test(row.name) && rows.filter(({ name }) => name === row.name).length > 1 ? text("all") : "")), ...columns.map((one) => cell(one, row[one])))].filter(Boolean);
    return filled(...(rows.length ? [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("answersTitle") }, element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, text("answersTitle")), ...columns.map(head))), element("tbody", {}, ...rows.flatMap(line))))] : []),
      ...notes.map((words) => element("p", { class: "faint" }, words)));
  }
}
