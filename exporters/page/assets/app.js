// SPDX-License-Identifier: Apache-2.0
// The URL's fragment holds what is shown: #/, or #/device/NAME, #/volume/NAME, #/mount/PATH, #/tenant/NAME, the latter
// three with on=DRIVE; ?range=300&heat=write&to=TIME, or ?from=TIME&to=TIME, with by=seconds for the seconds around a
// slow time, and at=TIME for the cursor; times in seconds since the epoch. Everything else follows from it.

import { Store } from "./store.js";
import { Overview } from "./overview.js";
import { DeviceView } from "./device.js";
import { Subject } from "./subject.js";
import { Help } from "./help.js";
import { Verdict } from "./verdict.js";
import { Answers } from "./answers.js";
import { text, element, clock, date, duration, zone } from "./words.js";
import { markdown } from "./markdown.js";
import { onTheme } from "./plot.js";

const KEYS = [
  ["?", text("keyHelp")], ["/", text("keyFilter")], ["Esc", text("keyBack")], [text("keyTabEnter"), text("keyOpens")], ["p", text("keyPause")], [text("keyBrackets"), text("keyShift")], [text("keySigns"), text("keyZoom")],
  ["Tab", text("keyChart")], ["s", text("keySelection")],
];

class App {
  constructor() {
    this.main = document.getElementById("main");
    this.dialog = document.getElementById("dialog");
    this.store = new Store(() => this.update());
    this.explains = new Help(document.body);
    this.verdict = new Verdict(document.getElementById("why"), this);
    this.overview = new Overview(this);
    document.getElementById("help").addEventListener("click", () => this.help());
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => this.onKey(event));
    onTheme(() => {
      if (this.device) this.device.happened.shown = null; // its swatches have colours of their own
      this.update();
    });
    setInterval(() => this.showConnection(), 1000);
    this.route();
    this.store.soon(0);
  }

  where() {
    const [path, query] = location.hash.slice(1).split("?");
    const match = /^\/(device|volume|mount|tenant)\/([^/]+)$/.exec(path);
    const parameters = new URLSearchParams(query);
    const number = (name) => (/^\d{1,12}$/.test(parameters.get(name) ?? "") ? Number(parameters.get(name)) : null);
    let name = null;
    try {
      name = match ? decodeURIComponent(match[2]) : null;
    } catch (error) { /* not a name of ours */ }
    return { kind: name === null ? null : match[1], name, on: parameters.get("on"), range: number("range"), heat: parameters.get("heat") ?? "read", from: number("from"), to: number("to"),
      by: parameters.get("by") === "seconds" ? "seconds" : null, at: number("at"), select: parameters.get("select"), against: parameters.get("against") };
  }

  // The browser's way back leads to the view before, but not through every pause.
  go(change, again = false) {
    const hash = this.hashOf(change);
    if (again) history.replaceState(null, "", hash);
    else if (hash !== location.hash) history.pushState(null, "", hash);
    this.route();
  }

  // In the URL alone, for whoever it is sent to.
  note(change) { history.replaceState(null, "", this.hashOf(change)); }

  hashOf(change) {
    const { kind, name, ...view } = { ...this.where(), ...change };
    const parameters = new URLSearchParams();
    for (const [key, value] of Object.entries(view)) {
      if (value !== null) parameters.set(key, value);
    }
    return `#/${kind}/${encodeURIComponent(name)}?${parameters}`;
  }

  route() {
    const view = this.where();
    const key = view.kind && `${view.kind} ${view.name}`;
    if (!view.kind) {
      this.device = this.subject = null;
      this.store.select(null, "read");
      if (!this.main.contains(this.overview.root)) this.main.replaceChildren(this.overview.root);
    } else if (key !== this.shown) {
      this.subject = view.kind === "device" ? null : new Subject(this, view.kind, view.name);
      this.device = null;
      this.charts = element("div");
      this.main.replaceChildren(element("p", {}, element("a", { href: "#/" }, `◀ ${text("allDrives")}`)), this.subject?.root ?? "", this.charts);
    }
    this.shown = key;
    document.title = view.kind ? `${view.name} · ssdpulse` : "ssdpulse";
    this.showDrive(view);
    this.update();
  }

  // The drive whose charts are shown: of a volume, a file system or a tenant, one of those below it.
  showDrive(view) {
    const drive = view.kind === "device" ? view.name : view.kind && (view.on ?? this.subject.drives[0] ?? null);
    if (!drive) return;
    if (this.device?.device !== drive) {
      this.device = new DeviceView(this, drive, this.subject !== null);
      this.charts.replaceChildren(this.device.root);
    }
    this.device.configure(view);
  }

  update() {
    this.showConnection();
    this.showDaemon();
    this.main.hidden = !this.store.overview && Boolean(this.store.denied || this.store.gone); // the first line says why
    this.subject?.update(this.device?.device);
    if (this.subject && !this.device && this.subject.drives.length) this.showDrive(this.where());
    this.verdict.update(this.store, this.shown ? this.device?.device ?? "" : null);
    (this.device ?? (this.subject ? null : this.overview))?.update();
  }

  showDaemon() {
    const { status } = this.store;
    if (!status || status === this.said) return;
    this.said = status;
    document.getElementById("host").textContent = text("on", status.host ?? location.hostname);
    document.getElementById("version").textContent = text("runningSince", status.version, date(status.started_at), clock(status.started_at));
  }

  showConnection() {
    const { gone, overview, restarted, denied, stalled } = this.store;
    const status = document.getElementById("connection");
    const now = Date.now() / 1000;
    document.body.classList.toggle("gone", Boolean(gone || denied || stalled));
    status.dataset.state = gone || denied || stalled ? "gone" : overview ? "live" : "connecting";
    let words = text("connecting");
    if (denied) words = text("notPermitted");
    else if (stalled) words = text("nothingNewSince", clock(overview.taken_at), zone(overview.taken_at));
    else if (gone) words = text("noAnswerTrying", clock(gone), duration(now - gone));
    else if (overview) words = text("liveAt", clock(overview.taken_at), zone(overview.taken_at));
    if (!gone && !denied && !stalled && restarted && now - restarted < 60) words += `; ${text("restartedAt", clock(restarted))}`;
    if (status.textContent !== words) status.textContent = words;
  }

  runbookButton(name, about) {
    return name ? element("button", { type: "button", "data-runbook": name, onclick: () => this.runbook(name, about) }, text("whatToDo")) : "";
  }

  show(title, ...content) {
    this.answers = null;
    document.getElementById("dialog-title").textContent = title;
    document.getElementById("dialog-text").replaceChildren(...content);
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0; // the button below has the focus, and would be scrolled to
  }

  help() {
    this.show(text("keys"), element("table", {}, element("tbody", {}, ...KEYS.map(([key, words]) => element("tr", {}, element("th", {}, key), element("td", {}, words))))));
  }

  // `about`: the slow time that it is opened for; the runbook itself is about all causes, so that comes first, and the
  // runbook's commands name this drive.
  async runbook(name, about) {
    const wanted = this.wanted = {};
    let words = "";
    try {
      const answer = await fetch(`runbooks/${encodeURIComponent(name)}.md`, { signal: AbortSignal.timeout(10000) });
      words = answer.ok ? await answer.text() : text("noRunbook");
    } catch (error) {
      words = text("doesNotAnswer");
    }
    if (this.wanted !== wanted) return; // another one was asked for meanwhile
    const why = this.store.overview?.why;
    const next = about?.next ?? (why?.runbook === name ? why.next : "");
    // Only one that the daemon knows: the address of the page may name anything, and these are commands for root.
    const asked = about?.device ?? this.device?.device ?? why?.device;
    const device = this.store.overview?.devices.find((one) => one.name === asked) ?? null;
    const facts = about?.facts ? [element("p", {}, about.sentence), element("dl", {}, ...about.facts.flatMap(([label, fact]) => [element("dt", {}, label), element("dd", {}, fact)]))] : [];
    const here = facts.length || next ? [element("div", { class: "here" }, ...facts, next ? element("p", {}, element("strong", {}, text("next")), " ", next) : "")] : [];
    const answers = new Answers(device, this.store);
    this.show(name, ...here, ...markdown(device ? words.replaceAll(/\bDEVICE\b/g, () => device.name) : words, name, (other) => this.runbook(other, about), (one) => answers.of(one)));
    this.answers = answers;
    answers.watch(() => this.dialog.open && this.answers === answers);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    const typing = event.target.matches?.("input");
    if (event.key === "Escape") {
      if (typing && this.overview.filter.value) this.overview.filter.value = "";
      else if (this.shown) location.hash = "#/";
      event.target.blur?.();
      this.update();
      return;
    }
    if (typing) return;
    if (event.key === "?") this.help();
    else if (event.key === "/" && !this.shown) this.overview.filter.focus();
    else if (event.key === "p" && this.device) this.device.live.click();
    else if (event.key === "[" && this.device) this.device.shift(-1);
    else if (event.key === "]" && this.device) this.device.shift(1);
    else if (event.key === "+" && this.device) this.device.zoom(1 / 4);
    else if (event.key === "-" && this.device) this.device.zoom(4);
    else return;
    event.preventDefault();
  }
}

for (const one of document.querySelectorAll("[data-text]")) one.textContent = text(one.dataset.text);
for (const one of document.querySelectorAll("[data-label]")) one.setAttribute("aria-label", text(one.dataset.label));
new App();
