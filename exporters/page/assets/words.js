// SPDX-License-Identifier: Apache-2.0
// Texts of the catalogue (exporters/words), numbers as text, and elements. No text is ever taken as markup.

import { catalogue } from "./catalogue.js";

// Each {} of the text stands for one of the values, in their order.
export function text(key, ...values) {
  const words = catalogue.page[key] ?? catalogue.shared[key];
  const parts = (words ?? "").split("{}");
  if (words === undefined || parts.length !== values.length + 1) throw new Error(`no text ${key} of ${values.length} values`);
  return parts[0] + values.map((value, i) => `${value}${parts[i + 1]}`).join("");
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value != null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

// Makes `old` like `made`, and keeps what is the same. A canvas keeps its picture.
export function patch(old, made) {
  if (old.nodeName !== made.nodeName) return old.replaceWith(made);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  for (const { name, value } of made.attributes) {
    if (name === "style") old.style.cssText = value; // the page's policy allows no other way
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of old.getAttributeNames()) {
    if (!made.hasAttribute(name) && old.nodeName !== "CANVAS") old.removeAttribute(name);
  }
  const children = [...made.childNodes];
  while (old.childNodes.length > children.length) old.lastChild.remove();
  children.forEach((child, i) => (old.childNodes[i] ? patch(old.childNodes[i], child) : old.append(child)));
}

// Three digits at most, without zeroes at the end: 1.6, never 1.60.
export const short = (value) => String(Number(value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)));

export function latency(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1e-3) return short(seconds * 1e6) + " µs";
  return seconds < 1 ? short(seconds * 1e3) + " ms" : short(seconds) + " s";
}

// For columns, of one unit each. Milliseconds to two digits: buckets are 9 % apart. What takes ten seconds says so.
export const perSecond = (value) => (value < 10 ? short(value) : exact(Math.round(value)));
export const megabytes = (value) => (value > 0 && value < 5e3 ? "<0.01" : short(value / 1e6));
export function milliseconds(seconds) {
  if (seconds >= 10) return exact(Math.round(seconds)) + " s";
  return seconds < 0.01 ? String(Number((seconds * 1e3).toPrecision(2))) : exact(Math.round(seconds * 1e3));
}

function scaled(value, units, base) {
  let at = 0;
  while (value >= base && at + 1 < units.length) {
    value /= base;
    at += 1;
  }
  return short(value) + units[at];
}

export const count = (value) => (value == null ? "–" : scaled(value, ["", " k", " M", " G", " T"], 1000));
export const bytes = (value) => (value == null ? "–" : scaled(value, [" B", " kB", " MB", " GB", " TB", " PB"], 1000));
export const exact = (value) => (value == null ? text("noData") : value.toLocaleString("en"));
export const percent = (ratio) => (ratio == null ? "–" : short(ratio * 100) + " %");

// Of a device: "96 % busy", where anything is known and worth a word.
export function busyWords(device) {
  const ratio = device.now?.busy_ratio;
  return ratio ? text("percentBusy", percent(ratio)) : "";
}

// Of a mount: ", full in 3 h at this rate", where it fills.
export const fullWords = (mount) => (mount.full_in_seconds === null ? "" : `, ${text("fullIn", duration(mount.full_in_seconds))}`);

export const YEAR = 31557600; // seconds

export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 120) return text("seconds", Math.max(0, seconds).toFixed(0));
  if (seconds < 7200) return text("minutes", (seconds / 60).toFixed(0));
  if (seconds < 172800) return text("hours", (seconds / 3600).toFixed(0));
  return seconds < 2 * YEAR ? text("days", (seconds / 86400).toFixed(0)) : text("years", short(seconds / YEAR));
}

// "1.2 ms to 3 ms", or "1.2 ms" if both are the same.
export const span = (low, high) => (low === high ? low : text("span", low, high));
const KINDS = { read: [text("read"), text("reads")], write: [text("write"), text("writes")], flush: [text("flush"), text("flushes")], discard: [text("discard"), text("discards")], commit: [text("commit"), text("commits")] };
export const plural = (kind) => KINDS[kind]?.[1] ?? kind;
export const shortPlural = (kind) => (kind === "commit" ? text("fsync") : plural(kind)); // where there is little room
export const many = (number, one, more) => `${exact(number)} ${number === 1 ? one : more}`;
export const manyOf = (number, kind) => many(number, ...KINDS[kind]);
// "sda, sdb and 2 more"
export function some(names, most = 3, between = ", ") {
  const first = names.slice(0, most).join(between);
  return names.length > most ? text("andMore", first, names.length - most) : first;
}

// Where a drive is shown, with the heatmap of its slow operation; without one, of reads.
export const deviceLink = (name, operation) => `#/device/${encodeURIComponent(name)}${operation && operation !== "read" ? `?heat=${operation}` : ""}`;
// Another view over the same time, with the same cursor and operation.
export function viewLink(kind, name, more = {}) {
  const kept = new URLSearchParams(location.hash.split("?")[1]);
  kept.delete("on");
  for (const [key, value] of Object.entries(more)) kept.set(key, value);
  const query = String(kept);
  return `#/${kind}/${encodeURIComponent(name)}${query ? `?${query}` : ""}`;
}
// A time that is over, with a minute around it.
export const momentLink = (name, operation, begin, end) => `#/device/${encodeURIComponent(name)}?heat=${operation ?? "read"}&from=${Math.floor(begin) - 60}&to=${Math.ceil(end ?? begin) + 60}`;
// Of the spike that goes on and cost most waiting; null: there is none.
export const slowOperation = (device) => [...(device?.spikes ?? [])].sort((a, b) => b.excess_seconds - a.excess_seconds)[0]?.operation ?? null;
const pad = (number) => String(number).padStart(2, "0");
export function date(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}
// For an input of type datetime-local, which knows only the local time zone.
export const localTime = (seconds) => `${date(seconds)}T${pad(new Date(seconds * 1000).getHours())}:${pad(new Date(seconds * 1000).getMinutes())}`;
// Of this browser: "UTC+02:00".
export function zone(seconds) {
  const ahead = -new Date(seconds * 1000).getTimezoneOffset();
  return ahead === 0 ? "UTC" : `UTC${ahead < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(ahead) / 60))}:${pad(Math.abs(ahead) % 60)}`;
}
// Never by a locale: some of them call midnight 24:00.
export function clock(seconds) {
  const at = new Date(seconds * 1000);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":");
}
