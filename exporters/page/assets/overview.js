// SPDX-License-Identifier: Apache-2.0
// All drives, worst first, and what is not measured here.

import { element, latency, count, bytes, percent, short, duration, clock, zone, deviceLink, plural, slowOperation, busyWords } from "./words.js";
import { cividis, colour, hatch, sharpContext } from "./plot.js";
import { DayTable, dayOf, dayWords, drawDay, hourWords } from "./day.js";
import { Stacks } from "./stacks.js";

const COLUMNS = ["Drive", "State", "Read p99", "Write p99", "fsync p99", "I/Os a second", "Data a second", "Write amplification", "Life", "Last 15 minutes", "Last 24 hours"];
const TEXT_COLUMNS = [0, 1, 9, 10];
const TAIL_LOW = 60; // buckets: about 160 us
const TAIL_HIGH = 170; // about 2 s

function tail(device, kind) {
  const now = device.now?.[kind];
  const usual = device.baseline_p99[kind];
  if (!device.now) return ["no data", ""];
  if (now.standstill_seconds) return ["> " + latency(now.standstill_seconds), "none completes"];
  if (!now || now.ios === 0) return ["none", usual == null ? "" : "usually " + latency(usual)];
  if (now.p99 === null) return ["not timed", ""];
  return [latency(now.p99), usual == null ? "" : `usually ${latency(usual).replace(" ", "\u00a0")}`];
}

function amplification(nvme, modelled) {
  const waf = nvme?.write_amplification;
  if ((!nvme || waf.ratio === null) && modelled?.startsWith("modelled")) return ["not measured", modelled];
  if (!nvme) return ["not known", "no NVMe drive"];
  if (waf.ratio === null) return ["not known", waf.reason || "too little written"];
  return [short(waf.ratio), `${short(waf.lower)} to ${short(waf.upper)}, ${waf.window}, ${waf.source}`];
}

function life(nvme) {
  if (!nvme || nvme.used_ratio === null) return ["not known", nvme?.temperature_celsius ? nvme.temperature_celsius.toFixed(0) + " °C" : ""];
  const parts = [nvme.life_seconds === null ? "" : duration(nvme.life_seconds) + " at this pace",
    nvme.temperature_celsius === null ? "" : nvme.temperature_celsius.toFixed(0) + " °C",
    nvme.spare_ratio === null ? "" : "spare " + percent(nvme.spare_ratio)];
  return [percent(Math.max(0, 1 - nvme.used_ratio)) + " left", parts.filter(Boolean).join(", ")];
}

const cell = (label, [words, ...small], kind = "") => element("td", { class: kind, "data-label": label }, words, ...small.map((one) => (one ? element("small", {}, one) : null)));

function stateWords(device) {
  if (device.state === "slow") {
    const [first] = device.spikes;
    return ["slow", `${plural(first.operation)}: ${first.short_words}`];
  }
  const past = device.spike_seconds ? `slow for ${duration(device.spike_seconds)} of the last 15 min` : "";
  if (device.state === "high") {
    return ["high", `${device.above_baseline.operation}: ${short(device.above_baseline.times)} times usual`, past];
  }
  if (device.state === "unseen") return ["not measured", "no request is seen"];
  if (device.state === "idle") return ["idle", past];
  return device.state === "unknown" ? ["cannot tell", device.now ? "no times recorded" : "no data"] : ["as usual", past];
}

function row(device, day, first) {
  const rate = (kind, of) => (device.now ? device.now[kind][of] / device.now.seconds : null);
  const [state, ...why] = stateWords(device);
  const others = [...device.mounts.map((mount) => mount.mountpoint), ...device.arrays].filter((one) => !device.title.includes(one));
  const where = [device.model, ...others].filter(Boolean).join(" · ");
  const past = dayOf(day, device.name);
  const words = dayWords(day, past);
  const strip = element("canvas", { role: "img", "aria-label": stripWords(device) });
  const dayStrip = element("canvas", { class: "day", role: "img", "aria-label": `Last 24 hours: ${words}` });
  const made = element("tr", { "data-state": device.state, "data-device": device.name, "data-begin": device.now?.begin, "data-end": device.now?.end, "data-day-from": day?.day?.from, "data-hour-to": day?.hour?.to },
    element("td", { class: "name", "data-label": "" }, element("a", { href: deviceLink(device.name, first?.device === device.name && first.operation ? first.operation : slowOperation(device)) }, device.title), element("small", {}, [bytes(device.size_bytes), where].filter(Boolean).join(" · "))),
    element("td", { "data-label": "State" }, element("span", { class: "state", "data-state": device.state }, state), ...why.filter(Boolean).map((one) => element("small", {}, one))),
    cell("Read p99", [...tail(device, "read"), hourWords(day, past, "read")], "number"),
    cell("Write p99", [...tail(device, "write"), hourWords(day, past, "write")], "number"),
    cell("fsync p99", tail(device, "commit"), "number"),
    cell("I/Os a second", [`${count(rate("read", "ios"))} read`, `${count(rate("write", "ios"))} write`, device.now ? `${device.now.in_flight} in flight` : "", busyWords(device)], "number"),
    cell("Data a second", [`${bytes(rate("read", "bytes"))} read`, `${bytes(rate("write", "bytes"))} write`], "number"),
    cell("Write amplification", amplification(device.nvme, device.modelled), "number"),
    cell("Life", life(device.nvme), "number"),
    element("td", { class: "strip", "data-label": "Last 15 minutes" }, strip),
    element("td", { class: "strip", "data-label": "Last 24 hours" }, dayStrip, element("small", {}, element("a", { href: `#/device/${encodeURIComponent(device.name)}?range=86400` }, words))));
  return { made, strip, dayStrip, past, marks: device.strip };
}

function stripWords(device) {
  const slow = device.strip.marks.filter((mark) => mark & 1).length;
  const bursts = device.strip.marks.filter((mark) => mark & 2).length;
  return `Worst p99 by ten seconds; ${slow} of ${device.strip.marks.length} cells with a slow time, ${bursts} with a burst of discards`;
}

// All at once: reading one size after changing another would lay out the whole table again each time.
function drawStrips(rows, day) {
  const box = rows[0]?.strip.getBoundingClientRect();
  const dayBox = rows[0]?.dayStrip.getBoundingClientRect();
  if (!box || box.width === 0) return;
  const inks = { bad: colour("--bad"), burst: colour("--c4"), line: colour("--line"), none: colour("--hatch"), out: colour("--out") };
  inks.pattern = (context) => hatch(context, inks.none);
  for (const { strip, marks, dayStrip, past } of rows) {
    drawStrip(strip, marks, box, inks);
    drawDay(dayStrip, day, past, dayBox, inks);
  }
}

// The height and colour of a bar is the worst p99; slow times have a bar on top, bursts one below.
function drawStrip(canvas, strip, { width, height }, inks) {
  const context = sharpContext(canvas, width, height);
  const none = inks.pattern(context);
  const cells = 900 / strip.columns_per_cell + 1;
  const step = width / cells;
  const first = cells - strip.p99.length;
  context.fillStyle = none;
  context.fillRect(0, 5, Math.max(0, first * step), height - 10);
  strip.p99.forEach((word, i) => {
    const x = (first + i) * step;
    if (word === null) {
      context.fillStyle = none;
      context.fillRect(x, 5, step, height - 10);
      return;
    }
    const share = word === 0 ? 0 : Math.min(1, Math.max(0.06, (word - TAIL_LOW) / (TAIL_HIGH - TAIL_LOW)));
    context.fillStyle = `rgb(${cividis(0.15 + 0.85 * share).join(",")})`;
    const tall = share * (height - 12);
    context.fillRect(x, height - 6 - tall, Math.max(1, step - 0.6), tall);
    const mark = strip.marks[i];
    if (mark & 5) {
      context.fillStyle = inks.bad;
      context.fillRect(x, 0, step, 3);
    }
    if (mark & 2) {
      context.fillStyle = inks.burst;
      context.fillRect(x, height - 3, step, 3);
    }
  });
  context.fillStyle = inks.line;
  context.fillRect(0, height - 6, width, 1);
}

export class Overview {
  constructor(app) {
    this.app = app;
    this.filter = element("input", { type: "search", id: "filter", placeholder: "Filter ( / )", "aria-label": "Filter the drives", oninput: () => this.update() });
    this.number = element("span", { class: "faint", role: "status" });
    this.body = element("tbody");
    this.day = new DayTable();
    this.stacks = new Stacks(app.store, null);
    this.findings = element("div");
    this.gaps = element("div");
    this.root = element("div", {},
      element("div", { class: "bar" }, this.filter, this.number),
      element("div", { class: "scroll" }, element("table", { class: "drives" },
        element("thead", {}, element("tr", {}, ...COLUMNS.map((name, i) => element("th", { scope: "col", class: TEXT_COLUMNS.includes(i) ? "" : "number" }, name)))), this.body)),
      element("p", { class: "faint" }, "Numbers are of the last ten seconds; “1 h” is the p99 of the last hour, of n I/Os. In the strip of 15 minutes, taller is slower, and a bar on top is a slow time. In that of 24 hours, a bar is a quarter of an hour with slow times: the taller, the more was waited. In both, one below the line is a burst of discards, hatched is no data, and grey is not kept."),
      this.day.root, this.stacks.root, this.findings, this.gaps);
  }

  update() {
    const { overview, status, day } = this.app.store;
    if (!overview) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = overview.devices.filter((device) => JSON.stringify([device.title, device.model, device.mounts, device.arrays, device.state]).toLowerCase().includes(wanted));
    const focusedRow = document.activeElement?.closest?.("tr[data-device]");
    const focused = focusedRow?.dataset.device;
    const link = focusedRow ? [...focusedRow.querySelectorAll("a")].indexOf(document.activeElement) : -1;
    const rows = shown.map((device) => row(device, day, overview.why));
    this.body.replaceChildren(...rows.map((one) => one.made));
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => drawStrips(rows, day));
    this.day.show(day, new Map(shown.map((device) => [device.name, device.title])));
    if (focused) this.body.querySelectorAll(`tr[data-device="${CSS.escape(focused)}"] a`)[link]?.focus({ preventScroll: true });
    this.stacks.update();
    this.number.textContent = wanted ? `${shown.length} of ${overview.devices.length} drives` : overview.devices.length === 1 ? "1 drive" : `${overview.devices.length} drives, worst first`;
    if (status && status !== this.said) this.showStatus(status);
  }

  showStatus(status) {
    this.said = status;
    document.getElementById("version").textContent = `ssdpulse ${status.version}, running since ${new Date(status.started_at * 1000).toLocaleString()}`;
    this.findings.replaceChildren();
    if (status.findings.length) {
      this.findings.append(element("h2", {}, "What is wrong for good"), element("ul", {}, ...status.findings.map((one) =>
        element("li", {}, `${one.what} `, one.evidence && `${one.evidence}. `, one.change && `Change: ${one.change} `, this.app.runbookButton(one.runbook)))));
    }
    this.gaps.replaceChildren(element("h2", { id: "not-measured" }, "What is not measured here, and why"));
    if (status.not_measured.length === 0) this.gaps.append(element("p", {}, "Nothing: every source answers."));
    else {
      this.gaps.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What is not measured here, as a table" }, element("table", {},
        element("thead", {}, element("tr", {}, ...["What", "Why", "What would change it"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...status.not_measured.map((gap) => element("tr", {}, element("td", {}, gap.what), element("td", {}, gap.why), element("td", {}, gap.change)))))));
    }
    this.gaps.append(element("p", { class: "faint" }, `As of ${clock(status.taken_at)} ${zone(status.taken_at)}. Times on this page are in the time zone of this browser; those in sentences say UTC.`));
  }
}
