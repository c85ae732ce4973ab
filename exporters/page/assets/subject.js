// SPDX-License-Identifier: Apache-2.0
// A volume, a file system or a tenant: what is known of it, above the charts of one of the drives that it uses. Range,
// cursor and operation are those of the drives: they are in the URL.

import { text, element, patch, latency, bytes, count, percent, short, viewLink, fullWords } from "./words.js";
import { Stacks } from "./stacks.js";
import { between } from "./tenants.js";

const INTERVAL = 5; // seconds between two questions about a tenant
const WINDOW = 60; // seconds that its figures cover
const MAX_DRIVES = 16; // that are asked about a tenant
const KINDS = { volume: text("volume"), mount: text("fileSystem"), tenant: text("tenant") };

const fact = (label, words, small, help) => (words == null ? null : element("li", { "data-help": help }, element("span", { tabindex: help && "0" }, label), element("b", {}, words), small ? element("small", {}, small) : null));
const figure = (value, words) => (value == null ? null : words(value));

export class Subject {
  constructor(app, kind, name) {
    Object.assign(this, { app, kind, name, drives: [], samples: new Map(), askedAt: 0 });
    this.title = element("h2", {}, name);
    this.line = element("p", { class: "subject" });
    this.facts = element("ul", { class: "facts" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("drivesItUses"), hidden: true });
    this.tabs = element("div", { class: "bar group", role: "group", "aria-label": text("driveOfCharts") });
    this.stacks = kind === "tenant" ? null : new Stacks(app.store, name);
    this.root = element("section", { "data-subject": kind }, ...[this.title, this.line, this.facts, this.table, this.stacks?.root, this.tabs].filter(Boolean));
    if (this.stacks) this.stacks.root.open = true;
  }

  update(shown) {
    const { overview } = this.app.store;
    if (!overview) return;
    const devices = new Map(overview.devices.map((device) => [device.name, device]));
    if (this.kind === "tenant") this.showTenant(devices);
    else this.showStack(devices);
    patch(this.tabs, element("div", { class: "bar group", role: "group", "aria-label": text("driveOfCharts") }, ...(this.drives.length < 2 ? [] : this.drives.map((drive) => element("a", { class: "tab", href: viewLink(this.kind, this.name, { on: drive }), "aria-current": drive === shown ? "true" : null }, devices.get(drive)?.title ?? drive)))));
  }

  say(title, more, bad, words, facts) {
    patch(this.title, element("h2", {}, title, " ", element("small", {}, [KINDS[this.kind], ...more].filter(Boolean).join(" · "))));
    patch(this.line, element("p", { class: "subject", "data-bad": bad }, words));
    patch(this.facts, element("ul", { class: "facts" }, ...facts.filter(Boolean)));
  }

  // What lies on slow drives is not therefore slow: only what is known is said.
  lineOf(health, devices) {
    const slow = this.drives.map((drive) => devices.get(drive)).filter((device) => device?.state === "slow");
    if (health) return [true, `▲ ${health}.`];
    if (slow.length) return [true, `▲ ${slow.length === 1 ? text("belowSlow", slow[0].name) : text("belowSlowMany", slow.map((device) => device.name).join(` ${text("and")} `))}`];
    return [false, this.drives.length ? `✓ ${text("belowNoneSlow")}` : text("belowNoneMeasured")];
  }

  showStack(devices) {
    const { stacks: answer } = this.app.store;
    this.stacks.update();
    this.app.store.wantsStacks = true; // its figures, even where the tree is closed
    if (!answer) return;
    const of = answer.stacks.filter((stack) => (this.kind === "mount" ? stack.mountpoint === this.name : stack.places.some((place) => place.name === this.name)));
    const layers = new Map(answer.layers.map((layer) => [layer.name, layer]));
    const places = of.flatMap((stack) => below(stack, this.kind === "mount" ? null : this.name));
    const order = (name) => (devices.get(name).state === "slow" ? 0 : 1);
    this.drives = [...new Set(places.map((place) => place.name))].filter((name) => devices.has(name)).sort((a, b) => order(a) - order(b));
    const layer = layers.get(this.kind === "mount" ? of[0]?.places[0]?.name : this.name);
    if (of.length === 0) {
      this.say(this.name, [], false, text(this.kind === "mount" ? "noSuchMount" : "noSuchVolume"), []);
      return;
    }
    const [bad, words] = this.lineOf(layer?.health && layer.bad ? `${layer.title || layer.name}: ${layer.health}` : "", devices);
    const mount = [...devices.values()].flatMap((device) => device.mounts).find((one) => one.mountpoint === this.name);
    const tail = (kind) => fact(text(kind === "read" ? "readP99" : "writeP99"), figure(layer?.[kind]?.p99_seconds, latency), figure(layer?.[kind]?.p50_seconds, (value) => `p50 ${latency(value)}`), "volume_latency");
    const facts = [tail("read"), tail("write"),
      fact(text("addsTitle"), figure(layer?.added_latency_seconds, latency), text("addsAtLeast"), "added"),
      ...["read", "write"].map((kind) => fact(text(kind === "read" ? "readsHead" : "writesHead"), figure(layer?.[kind]?.ios_per_second, (value) => `${count(value)}/s`), figure(layer?.[kind]?.bytes_per_second, (value) => `${bytes(value)}/s`), "volume_ios")),
      this.kind === "mount" && mount?.size_bytes ? fact(text("free"), bytes(mount.available_bytes), `${text("ofSize", bytes(mount.size_bytes))}${fullWords(mount)}`, "free") : null,
      ...(this.kind === "volume" && of[0].mountpoint ? [fact(text("carries"), of.map((stack) => stack.mountpoint).filter(Boolean).join(", "))] : [])];
    const why = !layer && this.kind === "volume" && answer.not_measured ? ` ${text("volumeNotMeasured", answer.not_measured)}` : "";
    this.say(layer?.title && this.kind === "volume" ? layer.title : this.name, this.kind === "mount" ? [of[0].fstype, mount?.discard ? text("withDiscard") : ""] : [layer?.title ? layer.name : "", layer?.kind.replace("_", " ")], bad, words + why, facts);
  }

  // Each drive keeps what each tenant did since the daemon's start: what grew in the last minute is what it does now.
  async ask(devices) {
    const now = Date.now() / 1000;
    const first = [...this.samples.values()].some((samples) => samples.length === 1);
    if (document.hidden || this.asking || now - this.askedAt < (first ? 1 : INTERVAL)) return;
    Object.assign(this, { asking: true, askedAt: now });
    const busy = [...devices.values()].filter((device) => device.now && ["read", "write", "discard"].some((kind) => device.now[kind].ios > 0)).slice(0, MAX_DRIVES);
    try {
      for (const device of busy) {
        const answer = await this.app.store.ask(`devices/${encodeURIComponent(device.name)}/tenants`);
        if (!answer?.tenants) continue;
        const kept = this.samples.get(device.name)?.filter((one) => one.run === answer.run) ?? [];
        kept.push(answer);
        while (kept.length > 2 && answer.taken_at - kept[1].taken_at >= WINDOW) kept.shift();
        this.samples.set(device.name, kept);
      }
    } catch (error) { /* the connection status shows it */ }
    this.asking = false;
  }

  showTenant(devices) {
    this.ask(devices);
    const rows = [...this.samples].map(([drive, samples]) => {
      const [before, after] = [samples[0], samples.at(-1)];
      const all = between(before.tenants, after.tenants) ?? [];
      return { drive, seconds: after.taken_at - before.taken_at, own: all.find((one) => one.name === this.name), title: after.tenants.find((one) => one.name === this.name)?.title, all: all.reduce((sum, one) => sum + one.bytes, 0) };
    }).filter((row) => row.seconds > 0 && row.own && devices.has(row.drive)).sort((a, b) => b.own.bytes - a.own.bytes);
    const { why } = this.app.store.overview;
    if (rows.length > 0) this.drives = rows.map((row) => row.drive);
    else if (this.drives.length === 0 && [why.culprit, why.victim].includes(this.name) && devices.has(why.device)) this.drives = [why.device];
    const role = why.verdict !== "slow" ? "" : why.culprit === this.name ? text("slowsDrive", why.device) : why.victim === this.name ? text("slowedMost", why.device) : "";
    const waiting = [...this.samples.values()].every((samples) => samples.length < 2);
    const sum = (of) => rows.reduce((all, row) => all + of(row), 0);
    this.say(rows.find((row) => row.title)?.title ?? this.name, [], role !== "", role ? `▲ ${role}` : rows.length ? `✓ ${text("slowsNothing")}` : waiting ? text("countedInSeconds") : text("noIoLastMinute"),
      rows.length === 0 ? [] : [fact(text("dataTitle"), `${bytes(sum(({ own, seconds }) => own.bytes / seconds))}/s`, null, "tenant_bytes"), fact(text("ios"), `${count(sum(({ own, seconds }) => own.ios / seconds))}/s`, null, "tenant_ios"), fact(text("deviceTime"), percent(sum(({ own, seconds }) => own.device / seconds)), text("ofTheTimeOverAll"), "tenant_time")]);
    this.table.hidden = rows.length < 2;
    const cell = (words) => element("td", { class: "number" }, words);
    this.table.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, text("drive")), ...[text("dataPerSecondHead"), text("ofDrivesData"), text("meanLatencyHead")].map((head) => element("th", { scope: "col", class: "number" }, head)))),
      element("tbody", {}, ...rows.map(({ drive, own, all, seconds }) => element("tr", {}, element("td", {}, element("a", { href: viewLink("device", drive) }, devices.get(drive).title)), cell(`${bytes(own.bytes / seconds)}/s`), cell(all > 0 ? `${short((100 * own.bytes) / all)} %` : "–"), cell(own.ios > 0 && own.device > 0 ? latency(own.device / own.ios) : "–"))))));
  }
}

// The places below one of a stack; of all, those of the whole stack.
function below({ places }, name) {
  if (name === null) return places;
  const at = places.findIndex((place) => place.name === name);
  if (at < 0) return [];
  const end = places.findIndex((place, i) => i > at && place.floor <= places[at].floor);
  return places.slice(at, end < 0 ? places.length : end);
}
