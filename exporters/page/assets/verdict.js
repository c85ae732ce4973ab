// SPDX-License-Identifier: Apache-2.0
// The first line: one sentence, and of what is slow three facts and one button; what is over, small and in the past tense.

import { text, element, latency, short, duration, clock, date, plural, deviceLink, momentLink, patch, slowOperation, some } from "./words.js";
import { calmWords } from "./drive_facts.js";

const LOSING = "SsdpulseLosingEvents";

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
// "because a program reads": a fact has a label of its own.
const reason = (words) => (words ?? "").replace(/^because /, "") + ".";
const sinceWords = (begin, now) => `${date(begin) === date(now) ? "" : `${date(begin)} `}${clock(begin)} (${duration(now - begin)})`;

// What is slow, first by its mount point or volume.
function spikeParts(device, spike, now, remarks) {
  const usual = spike.baseline_seconds ? `, ${text("timesTheUsual", short(spike.peak_seconds / spike.baseline_seconds), latency(spike.baseline_seconds))}` : "";
  return { verdict: "slow", sentence: text("areSlow", device.title, plural(spike.operation), spike.short_words),
    facts: [[text("since"), text("sinceUpTo", sinceWords(spike.begin, now), `${latency(spike.peak_seconds)}${usual}`)], [text("why"), reason(spike.words)], remarks && [text("who"), remarks]].filter(Boolean),
    runbook: spike.runbook, next: spike.next, device: device.name };
}

// Of one drive that is not slow.
function ownWords(device) {
  if (!device) return "";
  const { above_baseline: above } = device;
  if (device.state === "high" && above) return text("highWithoutSpike", device.title, plural(above.operation), short(above.times));
  if (device.state === "unseen") return text("noRequestOf", device.title);
  if (device.state === "unknown") return text("noTimesOf", device.title);
  return text("driveIs", device.title, device.state === "idle" ? text("idle") : text("asUsual"));
}

// No sign of health on one of which nothing is known.
const verdictOf = (device) => (device && ["unseen", "unknown"].includes(device.state) ? "unknown" : "ok");

function pastOf(device, incident) {
  const [worst] = [...incident.spikes].sort((a, b) => b.excess_seconds - a.excess_seconds);
  const { begin, end } = incident;
  if (!worst || end === null) return null;
  const [from, to] = [clock(begin), clock(end)];
  const [operations, peak] = [plural(worst.operation), latency(worst.peak_seconds)];
  return { words: from === to ? text("wasSlowAt", device.title, from, operations, peak) : text("wasSlow", device.title, from, to, operations, peak), href: momentLink(device.name, worst.operation, begin, end) };
}

// `shown`: the drive, if only one is in view.
function partsOf({ overview }, shown) {
  const { why, devices, taken_at: now } = overview;
  const named = (name) => devices.find((one) => one.name === name);
  const device = named(why.device);
  const elsewhere = shown !== null && why.device !== shown;
  const own = named(shown ?? why.device);
  const worst = own && [...own.spikes].sort((a, b) => b.excess_seconds - a.excess_seconds)[0];
  const look = device && shown === null ? { words: text("lookAt", device.use || device.name), href: deviceLink(device.name, why.operation ?? slowOperation(device)) } : null;
  if (worst && (shown !== null || (why.verdict === "slow" && !why.wait))) return { ...spikeParts(own, worst, now, elsewhere ? "" : why.remarks), look };
  // Another drive is slow, or what lies above them: that is worth a line here, no more.
  if (elsewhere && why.verdict === "slow") {
    return { verdict: verdictOf(own), sentence: ownWords(own), aside: device ? { words: text("slowNow", device.title), href: deviceLink(device.name, why.operation) } : { words: why.summary, href: "#/" } };
  }
  if (why.verdict === "slow" && why.wait) {
    return { verdict: "slow", sentence: `${why.wait.words}.`, facts: [[text("since"), `${sinceWords(why.wait.begin, now)}.`], why.remarks && [text("who"), why.remarks]].filter(Boolean), runbook: why.runbook, next: why.next, look };
  }
  if (why.verdict !== "ok") return { verdict: why.verdict, sentence: why.summary, remarks: why.remarks, runbook: why.runbook, next: why.next, look };
  const over = device && why.incident && !elsewhere ? pastOf(device, why.incident) : null;
  const held = why.wait && why.wait.end !== null && shown === null ? { words: text("overSince", clock(why.wait.end), why.wait.words), href: device ? momentLink(device.name, why.operation, why.wait.begin, why.wait.end) : null } : null;
  return { verdict: shown === null ? "ok" : verdictOf(own), sentence: shown === null ? calmWords(devices) : ownWords(own), remarks: shown === null ? why.remarks : own?.slower_than_siblings ?? "", past: over ?? held ?? (why.past && shown === null ? { words: why.past } : null) };
}

// What stands in the way of any sentence about now.
function trouble({ overview, gone, denied, stalled }) {
  const kept = overview ? ` ${text("fromBefore")}` : "";
  if (denied) return { verdict: "unknown", sentence: denied.status === 421 ? text("wrongName") : text("mayNotSee"), remarks: `${capital(denied.words)}. ${denied.status === 421 ? "" : text("whoMaySee")}${kept}` };
  if (gone) return { verdict: "unknown", sentence: `${text("noAnswerSince", clock(gone))}${kept}`, remarks: text("isItRunning") };
  if (stalled) return { verdict: "unknown", sentence: text("measuredNothingSince", clock(overview.taken_at)), remarks: `${text("fromBefore")} ${text("journalSays")}`, runbook: "SsdpulseStale" };
  return null;
}

// What the programs in the kernel could not deliver, of the drives in view.
function lossOf({ status }, shown) {
  const drives = (status?.not_measured ?? []).filter((gap) => gap.change.includes(LOSING)).map((gap) => gap.what.replace(/: .*$/s, "")).filter((drive) => !shown || drive === shown || drive.endsWith(`(${shown})`));
  return drives.length ? `${text("someLost", some(drives))} ` : "";
}

const linkTo = (one, ...more) => one?.href && element("a", { href: one.href, ...more[0] }, more[1] ?? one.words);

export class Verdict {
  constructor(root, app) {
    this.root = root;
    root.addEventListener("click", (event) => {
      const { runbook } = event.target.dataset;
      if (runbook) app.runbook(runbook, this.parts);
    });
  }

  update(store, shown) {
    const hinders = trouble(store);
    const loss = hinders ? "" : lossOf(store, shown);
    const parts = hinders ?? (store.overview ? partsOf(store, shown) : null);
    if (!parts) return;
    this.parts = parts;
    const { verdict, sentence, facts, remarks, past, aside, runbook, look } = parts;
    this.root.dataset.verdict = verdict;
    const actions = [runbook && element("button", { type: "button", "data-runbook": runbook }, text("whatToDo")), linkTo(look)].filter(Boolean);
    const made = element("section", {},
      element("p", { id: "sentence", "aria-live": "polite", hidden: !sentence }, sentence),
      element("p", { id: "next", hidden: actions.length === 0 }, ...actions),
      element("dl", { id: "facts", hidden: !facts?.length }, ...(facts ?? []).flatMap(([label, words]) => [element("dt", {}, label), element("dd", {}, words)])),
      element("p", { id: "remarks", hidden: !remarks }, remarks ?? ""),
      element("p", { id: "aside", hidden: !aside }, aside ? linkTo(aside) : ""),
      element("p", { id: "past", hidden: !past }, past?.words ?? "", past?.href ? " " : "", linkTo(past, {}, text("showThatTime")) || ""),
      element("p", { id: "losses", hidden: !loss }, loss, element("button", { type: "button", class: "link", "data-runbook": LOSING }, text("whyLost"))));
    [...made.children].forEach((child, i) => (this.root.children[i] ? patch(this.root.children[i], child) : this.root.append(child)));
  }
}
