// SPDX-License-Identifier: Apache-2.0
// The last day of a drive as a strip, a bar for each quarter of an hour, and its last hour in figures; from the
// history.

import { text, element, latency, count, duration, clock, date, exact, many, plural } from "./words.js";
import { sharpContext } from "./plot.js";
import { CAUSES } from "./causes.js";

const TALLEST = 1000; // seconds waited; a bar grows with their logarithm
const LATE = 180; // seconds until a minute is surely in the history
const MAX_ROWS = 200;

const minute = (seconds) => clock(seconds).slice(0, 5);
const byCause = (cause) => CAUSES[cause]?.noun ?? cause;
export const dayOf = (day, name) => day?.devices.find((one) => one.name === name) ?? null;

const byWaiting = (a, b) => b.excess_seconds - a.excess_seconds || b.peak_seconds - a.peak_seconds;
const worstOf = (device) => [...device.worst].sort(byWaiting)[0];

// "measured", "none": no data, or "out": not kept any more, or yet to come.
function stateOf({ day, hour, oldest, slot_seconds: length }, device, slot) {
  const begin = day.from + slot * length;
  if (oldest !== null && begin + length <= oldest) return "out";
  if (device.measured_minutes[slot] > 0 || begin > hour.to - LATE) return "measured";
  return "none";
}

// What the strip shows, for those who cannot see it.
export function dayWords(day, device) {
  if (!day) return text("askingTheHistory");
  if (!device) return text("noData");
  const parts = [];
  const worst = worstOf(device);
  // What goes on is written when it has ended.
  if (device.spikes_in_all === 0 && device.bursts_in_all === 0) parts.push(text("noSpikeNoBurst", minute(day.hour.to)));
  else {
    parts.push(device.spikes_in_all === 0 ? text("noSpike") : many(device.spikes_in_all, text("spike"), text("spikes")) + (worst ? `, ${text("worstAt", minute(worst.begin), byCause(worst.cause))}` : ""));
    parts.push(device.bursts_in_all === 0 ? text("noBurst") : many(device.bursts_in_all, text("burst"), text("bursts")));
  }
  const missing = device.spikes.filter((_, slot) => stateOf(day, device, slot) === "none").length;
  if (missing > 0) parts.push(text("noDataFor", duration(missing * day.slot_seconds)));
  if (day.oldest !== null && day.oldest >= day.day.from + day.slot_seconds) parts.push(text("nothingKeptBefore", minute(day.oldest)));
  return parts.join("; ");
}

// For reads or writes, next to the current figures.
export function hourWords(day, device, kind) {
  if (!day) return "";
  const hour = device?.hour?.[kind];
  if (!hour) return text("hourNoData");
  const whole = (words) => words.replaceAll(" ", "\u00a0"); // never broken across lines
  return hour.ios === 0 ? text("hourNone") : `${whole(text("hourLatency", latency(hour.p99)))}, ${whole(`n ${count(hour.ios)}`)}`;
}

// Spikes stand on the line, the taller the longer I/Os waited; bursts of discards hang below it.
export function drawDay(canvas, day, device, { width, height }, inks) {
  const context = sharpContext(canvas, width, height);
  const none = inks.pattern(context);
  if (!device) {
    context.fillStyle = none;
    context.fillRect(0, 5, width, height - 10);
    return;
  }
  const step = width / device.spikes.length;
  const worst = new Map(device.worst.map((one) => [one.slot, one]));
  device.spikes.forEach((spikes, slot) => {
    const x = slot * step;
    const state = stateOf(day, device, slot);
    if (state !== "measured") {
      context.fillStyle = state === "out" ? inks.out : none;
      context.fillRect(x, 5, step, height - 10);
    }
    if (spikes > 0) {
      const share = Math.min(1, Math.log1p(worst.get(slot)?.excess_seconds ?? 0) / Math.log1p(TALLEST));
      const tall = (0.25 + 0.75 * share) * (height - 8);
      context.fillStyle = inks.bad;
      context.fillRect(x, height - 6 - tall, Math.max(1, step), tall);
    }
    if (device.bursts[slot] > 0) {
      context.fillStyle = inks.burst;
      context.fillRect(x, height - 5, Math.max(1, step), 5);
    }
  });
  context.fillStyle = inks.line;
  context.fillRect(0, height - 6, width, 1);
}

const heads = (...names) => element("thead", {}, element("tr", {}, ...names.map((name, i) => element("th", { scope: "col", class: i > 1 ? "number" : "" }, name))));
const number = (words) => element("td", { class: "number" }, words);

function hourTable(devices) {
  const rows = devices.filter((device) => device.hour).flatMap((device) => ["read", "write"].map((kind) => {
    const { ios, p50, p99, p999 } = device.hour[kind];
    return element("tr", { "data-hour": `${device.name} ${kind}` }, element("td", {}, device.title), element("td", {}, plural(kind)), number(exact(ios)), ...[p50, p99, p999].map((one) => number(ios === 0 ? text("none") : latency(one))),
      number(duration(device.hour.measured_seconds)));
  }));
  return element("table", {}, heads(text("drive"), text("lastHour"), "n", "p50", "p99", "p99.9", text("measured")), element("tbody", {}, ...rows));
}

function dayTable({ day, slot_seconds: length }, devices) {
  const rows = devices.flatMap((device) => device.spikes.map((spikes, slot) => ({ device, slot, spikes, bursts: device.bursts[slot], begin: day.from + slot * length }))
    .filter((one) => one.spikes > 0 || one.bursts > 0)).sort((a, b) => b.begin - a.begin);
  const more = rows.length - MAX_ROWS;
  return [element("table", {}, heads(text("drive"), text("quarterOfAnHour"), text("spikes"), text("worst"), text("waitedInIt"), text("bursts")), element("tbody", {}, ...rows.slice(0, MAX_ROWS).map(({ device, slot, spikes, bursts, begin }) => {
    const worst = device.worst.find((one) => one.slot === slot);
    return element("tr", {}, element("td", {}, device.title), element("td", {}, `${date(begin)} ${text("span", minute(begin), minute(begin + length))}`), number(exact(spikes)),
      number(worst ? text("worstBy", minute(worst.begin), byCause(worst.cause)) : text("none")), number(worst ? latency(worst.excess_seconds) : text("none")), number(exact(bursts)));
  }))), more > 0 ? element("p", { class: "faint" }, text("andMoreRows", more)) : null];
}

export class DayTable {
  constructor() {
    this.note = element("p", { class: "faint" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("asTableOf", text("hourAndDay")) });
    this.details = element("details", { id: "day-table", class: "more", ontoggle: () => this.fill() }, element("summary", {}, text("asTableOf", text("hourAndDay"))), this.table);
    this.root = element("div", {}, this.note, this.details);
  }

  // `titles`: by name.
  show(day, titles) {
    if (day === this.day && String([...titles]) === String([...this.titles ?? []])) return;
    Object.assign(this, { day, titles });
    this.note.textContent = day?.reason ? text("hourAndDayWithout", day.reason) : "";
    this.details.hidden = !day || Boolean(day.reason);
    this.fill();
  }

  fill() {
    if (!this.details.open || this.details.hidden) return;
    const devices = [...this.titles].map(([name, title]) => ({ title, ...dayOf(this.day, name) })).filter((one) => one.name);
    this.table.replaceChildren(hourTable(devices), ...dayTable(this.day, devices).filter(Boolean));
  }
}
