// SPDX-License-Identifier: Apache-2.0
// Drives in words: the p99s of now, the state, wear, and all of it as a list of facts.

import { latency, milliseconds, count, bytes, percent, short, duration, plural, busyWords } from "./words.js";
import { hourWords } from "./day.js";

export const rate = (device, kind, of) => (device.now ? device.now[kind][of] / device.now.seconds : null);

// Of the p99 of now: its text in milliseconds, null where it is not known; its usual; how many times that it is. What
// waits has taken longer already than all that completed before.
export function tailOf(device, kind) {
  const now = device.now?.[kind];
  const usual = device.baseline_p99[kind];
  const still = now?.standstill_seconds;
  const seconds = still || (now?.ios ? now.p99 : null);
  const text = seconds == null ? (now?.ios === 0 && usual != null ? "none" : null) : (still ? "> " : "") + milliseconds(seconds);
  return { text, seconds, usual, times: seconds && usual ? seconds / usual : null };
}

function tailWords(device, kind) {
  const { seconds, usual } = tailOf(device, kind);
  const usually = usual == null ? "" : `usually ${latency(usual)}`;
  if (!device.now) return ["no data"];
  if (device.now[kind].standstill_seconds) return [`> ${latency(seconds)}`, "none completes", usually];
  if (device.now[kind].ios === 0) return ["none", usually];
  return seconds === null ? ["not timed"] : [latency(seconds), usually];
}

function amplification(nvme, modelled) {
  const waf = nvme?.write_amplification;
  if ((!nvme || waf.ratio === null) && modelled?.startsWith("modelled")) return ["not measured", modelled];
  if (!nvme) return ["not known", modelled || "no NVMe drive"];
  if (waf.ratio === null) return ["not known", waf.reason || "too little written"];
  return [short(waf.ratio), `${short(waf.lower)} to ${short(waf.upper)}, ${waf.window}, ${waf.source}`];
}

function life(nvme) {
  const heat = nvme?.temperature_celsius == null ? "" : `${nvme.temperature_celsius.toFixed(0)} °C`;
  if (!nvme || nvme.used_ratio === null) return ["not known", heat];
  return [percent(Math.max(0, 1 - nvme.used_ratio)) + " left", nvme.life_seconds === null ? "" : duration(nvme.life_seconds) + " at this pace",
    heat, nvme.spare_ratio === null ? "" : "spare " + percent(nvme.spare_ratio)];
}

// The state, then what explains it, then what is over.
export function stateWords(device) {
  if (device.state === "slow") {
    const [first] = device.spikes;
    return ["slow", `${plural(first.operation)}: ${first.short_words}`];
  }
  const past = device.spike_seconds ? `was slow for ${duration(device.spike_seconds)} of the last 15 min` : "";
  if (device.state === "high") return ["high", `${device.above_baseline.operation === "commit" ? "fsync" : plural(device.above_baseline.operation)}: ${short(device.above_baseline.times)} times usual`, past];
  if (device.state === "unseen") return ["not measured", "no request is seen"];
  if (device.slower_than_siblings) return ["slower than its siblings", device.slower_than_siblings, past];
  if (device.state === "idle") return ["idle", past];
  return device.state === "unknown" ? ["cannot tell", device.now ? "no times recorded" : "no data"] : ["as usual", past];
}

// Each a label, what is the case, and what explains that; by the name that a column gives.
export function factsOf(device, day, past) {
  const others = [...device.mounts.map((mount) => mount.mountpoint), ...device.arrays].filter((one) => !device.title.includes(one));
  const both = (of, words) => ["read", "write"].map((kind) => `${words(rate(device, kind, of))} ${kind}`);
  const facts = {
    drive: ["Drive", device.title, bytes(device.size_bytes), device.model, ...others],
    state: ["State", ...stateWords(device)],
    read: ["Read p99", ...tailWords(device, "read"), hourWords(day, past, "read")],
    write: ["Write p99", ...tailWords(device, "write"), hourWords(day, past, "write")],
    commit: ["fsync p99", ...tailWords(device, "commit")],
    ios: ["I/Os a second", ...both("ios", count), device.now ? `${device.now.in_flight} in flight` : "", busyWords(device)],
    bytes: ["Data a second", ...both("bytes", bytes)],
    amplification: ["Write amplification", ...amplification(device.nvme, device.modelled)],
    life: ["Life", ...life(device.nvme)],
  };
  for (const [name, fact] of Object.entries(facts)) facts[name] = fact.filter(Boolean);
  return facts;
}

// Of all drives, when none is slow: in short, and which ones are an exception.
export function calmWords(devices) {
  const named = (words, ...states) => {
    const names = devices.filter((one) => states.includes(one.state)).map((one) => one.name);
    return names.length === 0 ? "" : ` ${words}: ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}.`;
  };
  const usual = devices.filter((one) => one.state === "ok" || one.state === "idle").length;
  const all = devices.length;
  if (usual === all) return all === 1 ? "The drive is as usual." : `All ${all} drives are as usual.`;
  return `No drive is slow; ${usual} of ${all} are as usual.${named("Higher than usual", "high")}${named("Not known", "unknown", "unseen")}`;
}
