// SPDX-License-Identifier: Apache-2.0
// Drives in words: the p99s of now, the state, wear, and all of it as a list of facts.

import { text, latency, milliseconds, count, bytes, percent, short, duration, plural, busyWords, some, shortPlural } from "./words.js";
import { hourWords } from "./day.js";

export const rate = (device, kind, of) => (device.now ? device.now[kind][of] / device.now.seconds : null);

// Of the p99 of now: in words, in milliseconds, null where it is not known; its usual; how many times that it is. What
// waits has taken longer already than all that completed before.
export function tailOf(device, kind) {
  const now = device.now?.[kind];
  const usual = device.baseline_p99[kind];
  const still = now?.standstill_seconds;
  const seconds = still || (now?.ios ? now.p99 : null);
  const words = seconds == null ? (now?.ios === 0 && usual != null ? text("none") : null) : (still ? "> " : "") + milliseconds(seconds);
  return { words, seconds, usual, times: seconds && usual ? seconds / usual : null };
}

function tailWords(device, kind) {
  const { seconds, usual } = tailOf(device, kind);
  const usually = usual == null ? "" : text("usually", latency(usual));
  if (!device.now) return [text("noData")];
  if (device.now[kind].standstill_seconds) return [`> ${latency(seconds)}`, text("noneCompletes"), usually];
  if (device.now[kind].ios === 0) return [text("none"), usually];
  return seconds === null ? [text("notTimed")] : [latency(seconds), usually];
}

function amplification(nvme, modelled) {
  const waf = nvme?.write_amplification;
  if ((!nvme || waf.ratio === null) && modelled?.startsWith("modelled")) return [text("notMeasured"), modelled];
  if (!nvme) return [text("notKnownHere"), modelled || text("noNvmeDrive")];
  if (waf.ratio === null) return [text("notKnownHere"), waf.reason || text("tooLittleWritten")];
  return [short(waf.ratio), `${text("span", short(waf.lower), short(waf.upper))}, ${waf.window}, ${waf.source}`];
}

function life(nvme) {
  const heat = nvme?.temperature_celsius == null ? "" : `${nvme.temperature_celsius.toFixed(0)} °C`;
  if (!nvme || nvme.used_ratio === null) return [text("notKnownHere"), heat];
  return [text("left", percent(Math.max(0, 1 - nvme.used_ratio))), nvme.life_seconds === null ? "" : text("atThisPace", duration(nvme.life_seconds)),
    heat, nvme.spare_ratio === null ? "" : text("spareLeft", percent(nvme.spare_ratio))];
}

// The state, then what explains it, then what is over.
export function stateWords(device) {
  if (device.state === "slow") {
    const [first] = device.spikes;
    return [text("slow"), first ? `${plural(first.operation)}: ${first.short_words}` : ""];
  }
  const past = device.spike_seconds ? text("wasSlowFor", duration(device.spike_seconds)) : "";
  if (device.state === "high" && device.above_baseline) return [text("high"), text("timesUsual", shortPlural(device.above_baseline.operation), short(device.above_baseline.times)), past];
  if (device.state === "unseen") return [text("notMeasured"), text("noRequestSeen")];
  if (device.slower_than_siblings) return [text("slowerThanSiblings"), device.slower_than_siblings, past];
  if (device.state === "idle") return [text("idle"), past];
  return device.state === "unknown" ? [text("cannotTell"), device.now ? text("noTimes") : text("noData")] : [text("asUsual"), past];
}

// Each a label, what is the case, and what explains that; by the name that a column gives.
export function factsOf(device, day, past) {
  const others = [...device.mounts.map((mount) => mount.mountpoint), ...device.arrays].filter((one) => !device.title.includes(one));
  const both = (of, words) => ["read", "write"].map((kind) => `${words(rate(device, kind, of))} ${text(kind === "read" ? "read" : "write")}`);
  const facts = {
    drive: [text("drive"), device.title, bytes(device.size_bytes), device.model, ...others],
    state: [text("state"), ...stateWords(device)],
    read: [text("readP99"), ...tailWords(device, "read"), hourWords(day, past, "read")],
    write: [text("writeP99"), ...tailWords(device, "write"), hourWords(day, past, "write")],
    commit: [text("fsyncP99"), ...tailWords(device, "commit")],
    ios: [text("iosPerSecond"), ...both("ios", count), device.now ? text("inFlight", device.now.in_flight) : "", busyWords(device)],
    bytes: [text("dataPerSecond"), ...both("bytes", bytes)],
    amplification: [text("writeAmplification"), ...amplification(device.nvme, device.modelled)],
    life: [text("life"), ...life(device.nvme)],
  };
  for (const [name, fact] of Object.entries(facts)) facts[name] = fact.filter(Boolean);
  return facts;
}

// Of all drives, when none is slow: in short, and which ones are an exception.
export function calmWords(devices) {
  const named = (words, ...states) => {
    const names = devices.filter((one) => states.includes(one.state)).map((one) => one.name);
    return names.length === 0 ? "" : ` ${words}: ${some(names)}.`;
  };
  const usual = devices.filter((one) => one.state === "ok" || one.state === "idle").length;
  const all = devices.length;
  if (usual === all) return all === 1 ? text("driveAsUsual") : text("allAsUsual", all);
  return `${text("noneSlow", usual, all)}${named(text("higherThanUsual"), "high")}${named(text("notKnown"), "unknown", "unseen")}`;
}
