// SPDX-License-Identifier: Apache-2.0
// All drives, worst first, a line each, which opens to all that is known of the drive; and what is not measured here.

import { text, element, patch, duration, latency, megabytes, perSecond, short, clock, zone, deviceLink, slowOperation, some, YEAR } from "./words.js";
import { cividis, colour, hatch, sharpContext } from "./plot.js";
import { DayTable, dayOf, dayWords, drawDay } from "./day.js";
import { factsOf, rate, stateWords, tailOf } from "./drive_facts.js";
import { Stacks } from "./stacks.js";

const TAIL_LOW = 60; // buckets: about 160 us
const TAIL_HIGH = 170; // about 2 s
const LONG_LIFE = 100 * YEAR; // longer than anybody asks about

const READING = [text("readingNumbers"), text("readingMark"), text("readingClick"),
  text("readingQuarter"), text("readingDay"), text("readingBoth")];
// Of a fact, which figure help.js explains.
const HELP = { read: "latency", write: "latency", commit: "latency", ios: "ios", bytes: "ios", amplification: "amplification", life: "life" };

const known = (value, words) => (value == null ? null : words(value));
const tailColumn = (id, head, label) => ({ id, head, label, unit: "ms", fact: id, help: "latency", gauge, value: (device) => tailOf(device, id).words });
const rateColumn = (kind, of, head, unit, words) => ({ id: `${kind}-${of}`, head, unit, fact: of, help: "ios", value: (device) => known(rate(device, kind, of), words) });

// Of numbers: `value` is null where a drive has none. A column that no drive has filled yet is absent.
const COLUMNS = [
  { id: "busy", head: text("busy"), label: text("busy"), unit: "%", fact: "ios", help: "busy", value: (device) => known(device.now?.busy_ratio, (ratio) => (100 * ratio).toFixed(0)) },
  tailColumn("read", text("readP99"), text("readHead")), tailColumn("write", text("writeP99"), text("writeHead")), tailColumn("commit", text("fsyncP99"), text("fsync")),
  rateColumn("read", "ios", text("readsHead"), "/s", perSecond), rateColumn("write", "ios", text("writesHead"), "/s", perSecond),
  rateColumn("read", "bytes", text("readHead"), "MB/s", megabytes), rateColumn("write", "bytes", text("writtenHead"), "MB/s", megabytes),
  { id: "amplification", head: text("writeHead"), unit: text("ampl"), fact: "amplification", help: "amplification", value: (device) => known(device.nvme?.write_amplification.ratio, short) },
  { id: "life", head: text("life"), unit: text("percentLeft"), fact: "life", help: "life", value: (device) => known(device.nvme?.used_ratio, (used) => (100 * Math.max(0, 1 - used)).toFixed(0)) },
  { id: "life-years", head: text("life"), unit: text("yearsLeft"), fact: "life", help: "life", value: (device) => known(device.nvme?.life_seconds, (seconds) => short(seconds / YEAR)) },
];

// How many times its usual the p99 is, from a quarter to 16 times; the mark is the usual. What few I/Os did is no alarm:
// the daemon says what is.
function gauge(device, kind) {
  const { times, usual } = tailOf(device, kind);
  const high = device.spikes.some((spike) => spike.operation === kind) || device.now?.[kind].standstill_seconds > 0 || device.above_baseline?.operation === kind;
  const made = element("span", { class: "gauge", role: "img", "aria-label": usual == null ? text("usualNotKnown") : text("usually", latency(usual)), "data-usual": usual != null, "data-high": high }, element("i"));
  made.firstChild.style.width = `${times === null ? 0 : 100 * Math.min(1, Math.max(0.04, (Math.log2(times) + 2) / 6))}%`;
  return made;
}

const title = (fact) => fact.slice(1).join(", ");

function number(device, { id, label, unit, gauge: made, value }, hint) {
  const words = value(device);
  return element("td", { class: `number ${id}`, title: hint, "data-none": words === null, "data-label": label, "data-unit": /\d$/.test(words) && unit }, words ?? "–", made?.(device, id));
}

function row(device, day, first, columns, open) {
  const past = dayOf(day, device.name);
  const facts = factsOf(device, day, past);
  const [state, why] = stateWords(device);
  const link = deviceLink(device.name, first?.device === device.name && first.operation ? first.operation : slowOperation(device));
  return element("tr", { "data-state": device.state, "data-device": device.name, "data-begin": device.now?.begin, "data-end": device.now?.end, "data-day-from": day?.day?.from, "data-hour-to": day?.hour?.to },
    element("td", { class: "name", title: title(facts.drive) }, element("a", { href: link }, device.use ? element("span", { class: "use" }, device.use) : null, element("span", {}, device.name))),
    element("td", { class: "state", title: title(facts.state) }, element("button", { type: "button", "data-state": device.state, "aria-expanded": String(open), "aria-controls": open && `details-${device.name}`, "aria-label": text("allAbout", title(facts.state), device.title) },
      element("span", {}, state, ["slow", "high"].includes(device.state) ? element("small", {}, why) : null))),
    ...columns.map((column) => number(device, column, title(facts[column.fact]))),
    strip(device, "quarter", stripWords(device)), day?.reason ? null : strip(device, "day", dayWords(day, past)));
}

// Which drives wear out first, of those that say how long they last. A controller's namespaces wear out together.
function firstToWearOut(devices) {
  const drives = new Map();
  for (const { title, nvme } of devices) {
    const life = nvme?.used_ratio >= 1 ? 0 : nvme?.life_seconds;
    if (life != null) drives.set(nvme.controller, { life, titles: [...drives.get(nvme.controller)?.titles ?? [], title] });
  }
  const first = Math.min(...[...drives.values()].map(({ life }) => life));
  if (drives.size === 0 || first > LONG_LIFE) return "";
  const titles = some([...drives.values()].filter(({ life }) => life === first).flatMap((one) => one.titles).sort());
  if (first === 0) return `; ${text("wornOut", titles)}`;
  return `; ${drives.size === 1 ? text("wearsOut", titles, duration(first)) : text("firstToWearOut", titles, duration(first))}`;
}

// What is so of several drives, and for the same reason, is said once.
function alike(gaps) {
  const found = new Map();
  for (const gap of gaps) {
    const [, drive, what] = /^(.*?): (.*)$/s.exec(gap.what) ?? [null, "", gap.what];
    const key = JSON.stringify([what, gap.why, gap.change]);
    const drives = [...found.get(key)?.drives ?? [], drive].filter(Boolean);
    found.set(key, { ...gap, what: drives.length ? `${some(drives, 4)}: ${what}` : what, drives });
  }
  return [...found.values()];
}

const strip = (device, kind, words) => element("td", { class: `strip ${kind}`, title: words }, element("canvas", { class: kind, role: "img", "aria-label": `${kind === "day" ? text("lastDay") : text("lastQuarter")}: ${words}` }));

// All that is known, below the drive's line.
function details(device, day, columns) {
  const past = dayOf(day, device.name);
  const facts = Object.entries(factsOf(device, day, past));
  const unknown = facts.filter(([, [, words]]) => words === text("notKnownHere")).map(([, [label]]) => label.toLowerCase());
  const range = (seconds, words) => element("a", { href: `#/device/${encodeURIComponent(device.name)}?range=${seconds}` }, words);
  return element("tr", { class: "details", id: `details-${device.name}`, "data-of": device.name }, element("td", { colspan: columns.length + 4 },
    element("ul", { class: "facts" }, ...facts.filter(([, [, words]]) => words !== text("notKnownHere")).map(([name, [label, words, ...more]]) => element("li", { "data-fact": name, "data-help": HELP[name] }, element("span", { tabindex: HELP[name] && "0" }, label), element("b", {}, words), ...more.map((one) => element("small", {}, one))))),
    unknown.length ? element("p", { class: "faint unknown" }, text("notKnownOf", unknown.join(", "))) : null,
    device.spikes.length ? element("p", {}, element("button", { type: "button", "data-runbook": device.spikes[0].runbook }, text("whatToDo"))) : null,
    element("div", { class: "strips" },
      element("p", {}, range(900, text("lastQuarter")), ": ", stripWords(device)), element("canvas", { class: "quarter", role: "img", "aria-label": text("lastQuarter") }),
      element("p", {}, range(86400, text("lastDay")), ": ", dayWords(day, past)), element("canvas", { class: "day", role: "img", "aria-label": text("lastDay") }))));
}

function stripWords(device) {
  const slow = device.strip.marks.filter((mark) => mark & 1).length;
  const bursts = device.strip.marks.filter((mark) => mark & 2).length;
  return text("stripSays", slow, device.strip.marks.length, bursts);
}

// All at once: reading one size after changing another would lay out the whole table again each time.
function drawStrips(body, devices, day) {
  const inks = { bad: colour("--bad"), burst: colour("--c4"), line: colour("--line"), none: colour("--hatch"), out: colour("--out") };
  inks.pattern = (context) => hatch(context, inks.none);
  const canvases = [...body.querySelectorAll("canvas")].map((canvas) => [canvas, canvas.getBoundingClientRect()]);
  for (const [canvas, box] of canvases.filter(([, one]) => one.width > 0)) {
    const { device, of } = canvas.closest("tr").dataset;
    if (canvas.className === "day") drawDay(canvas, day, dayOf(day, device ?? of), box, inks);
    else drawStrip(canvas, devices.get(device ?? of).strip, box, inks);
  }
}

// The height and colour of a bar is the worst p99; slow times have a bar on top, bursts one below.
function drawStrip(canvas, strip, { width, height }, inks) {
  const context = sharpContext(canvas, width, height);
  const none = inks.pattern(context);
  const cells = 900 / strip.columns_per_cell + 1;
  const step = width / cells;
  const first = cells - strip.p99.length;
  const room = height < 30 ? 4 : 6; // above and below the bars
  context.fillStyle = none;
  context.fillRect(0, room, Math.max(0, first * step), height - 2 * room);
  strip.p99.forEach((word, i) => {
    const x = (first + i) * step;
    if (word === null) {
      context.fillStyle = none;
      context.fillRect(x, room, step, height - 2 * room);
      return;
    }
    const share = word === 0 ? 0 : Math.min(1, Math.max(0.06, (word - TAIL_LOW) / (TAIL_HIGH - TAIL_LOW)));
    context.fillStyle = `rgb(${cividis(0.15 + 0.85 * share).join(",")})`;
    const tall = share * (height - 2 * room);
    context.fillRect(x, height - room - tall, Math.max(1, step - 0.6), tall);
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
  context.fillRect(0, height - room, width, 1);
}

export class Overview {
  constructor(app) {
    this.app = app;
    this.filter = element("input", { type: "search", id: "filter", placeholder: text("filter"), "aria-label": text("filterTheDrives"), oninput: () => this.update() });
    this.number = element("span", { class: "faint", role: "status" });
    this.head = element("thead");
    this.body = element("tbody", { onclick: (event) => this.toggle(event) });
    this.lines = new Map(); // by the device, and by its details
    this.open = new Set();
    this.filled = new Set();
    this.day = new DayTable();
    this.stacks = new Stacks(app.store, null);
    this.findings = element("div");
    this.gaps = element("div");
    this.drives = element("div", {}, element("div", { class: "bar" }, this.filter, this.number),
      element("div", { class: "scroll" }, element("table", { class: "drives", "aria-label": text("allDrives") }, this.head, this.body)),
      element("details", { class: "more reading" }, element("summary", {}, text("howToRead")), element("ul", {}, ...READING.map((one) => element("li", {}, one)))));
    this.root = element("div", {}, this.drives, this.day.root, this.stacks.root, this.findings, this.gaps);
  }

  // A click anywhere on a line but on its link; of the keyboard, on its button.
  toggle(event) {
    const { runbook } = event.target.dataset;
    if (runbook) this.app.runbook(runbook, { device: event.target.closest("tr").dataset.of });
    const name = event.target.closest("tr").dataset.device;
    const selects = event.detail > 0 && !getSelection().isCollapsed;
    if (!name || event.target.closest("a") || selects) return;
    if (!this.open.delete(name)) this.open.add(name);
    this.update();
  }

  // Keeps a line's elements from one second to the next: what somebody points at, selects or has the focus on.
  line(key, made) {
    if (this.lines.has(key)) patch(this.lines.get(key), made);
    else this.lines.set(key, made);
    return key;
  }

  update() {
    const { overview, status, day } = this.app.store;
    if (!overview) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = overview.devices.filter((device) => JSON.stringify([device.title, device.model, device.mounts, device.arrays, device.state]).toLowerCase().includes(wanted));
    for (const { id, value } of COLUMNS) {
      if (!this.filled.has(id) && overview.devices.some((device) => value(device) !== null)) this.filled.add(id);
    }
    const columns = COLUMNS.filter(({ id }) => this.filled.has(id));
    const heading = (name, kind, unit, help) => element("th", { scope: "col", class: kind, "data-help": help }, name, unit ? element("small", {}, ` ${unit}`) : null);
    const head = element("thead", {}, element("tr", {}, heading(text("drive"), "name"), heading(text("state"), "state"), ...columns.map(({ id, head, unit, help }) => heading(head, `number ${id}`, unit, help)),
      heading(text("quarterHead"), "strip quarter"), day?.reason ? null : heading(text("dayHead"), "strip day")));
    patch(this.head, head);
    const keys = shown.flatMap((device) => [this.line(device.name, row(device, day, overview.why, columns, this.open.has(device.name))),
      this.open.has(device.name) && this.line(`/${device.name}`, details(device, day, columns))]).filter(Boolean);
    this.lines = new Map(keys.map((key) => [key, this.lines.get(key)]));
    const lines = [...this.lines.values()];
    if (lines.length !== this.body.children.length || lines.some((line, i) => line !== this.body.children[i])) {
      const focused = document.activeElement;
      this.body.replaceChildren(...lines);
      if (this.body.contains(focused)) focused.focus({ preventScroll: true });
    }
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => drawStrips(this.body, new Map(shown.map((device) => [device.name, device])), day));
    this.day.show(day, new Map(shown.map((device) => [device.name, device.title])));
    this.stacks.update();
    this.drives.hidden = overview.devices.length === 0;
    const counted = overview.devices.length === 1 ? text("oneDrive") : text("drivesWorstFirst", overview.devices.length);
    this.number.textContent = wanted ? text("drivesShown", shown.length, overview.devices.length) : counted + firstToWearOut(overview.devices);
    if (status && status !== this.said) this.showStatus(status);
  }

  // A runbook that a text names is opened from there.
  withRunbook(words) {
    const [all, before, name, after] = /^(.*?)(?:the runbook )(Ssdpulse\w+)(.*)$/s.exec(words) ?? [];
    return all ? [before, element("button", { type: "button", class: "link", onclick: () => this.app.runbook(name) }, text("theRunbook", name)), after] : [words];
  }

  showStatus(status) {
    this.said = status;
    this.findings.replaceChildren();
    if (status.findings.length) {
      this.findings.append(element("h2", {}, text("costlySettings")), element("ul", {}, ...status.findings.map((one) =>
        element("li", {}, `${one.what} `, one.evidence && `${one.evidence}. `, one.change && `${text("change", one.change)} `, this.app.runbookButton(one.runbook)))));
    }
    const gaps = alike(status.not_measured);
    this.gaps.replaceChildren(gaps.length === 0 ? element("p", { id: "not-measured", class: "faint" }, text("allMeasured"))
      : element("details", { class: "more" }, element("summary", { id: "not-measured" }, `${text("whatIsNotMeasured")} (${gaps.length})`),
        element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("asTableOf", text("notMeasuredHere")) }, element("table", {},
          element("thead", {}, element("tr", {}, ...[text("what"), text("why"), text("whatWouldChange")].map((name) => element("th", { scope: "col" }, name)))),
          element("tbody", {}, ...gaps.map((gap) => element("tr", {}, element("td", {}, gap.what), element("td", {}, gap.why), element("td", {}, ...this.withRunbook(gap.change)))))))));
    this.gaps.append(element("p", { class: "faint" }, text("asOf", clock(status.taken_at), zone(status.taken_at))));
  }
}
