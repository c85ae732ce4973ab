// SPDX-License-Identifier: Apache-2.0
// What the daemon reports: asks once a second while the page is visible, keeps the columns of one device, and knows
// since when there has been no answer.

import { text } from "./words.js";

const MAX_COLUMNS = 900; // columns that the daemon keeps
const DAY_INTERVAL = 60000; // milliseconds: as often as the answer changes
const DAY_RETRY = 10000; // if there was none
const STALLED = 10000; // milliseconds without a new snapshot; there is one a second
const DENIED = [401, 403, 421];

export class Store {
  constructor(changed) {
    this.changed = changed;
    this.overview = null;
    this.status = null;
    this.stacks = null;
    this.wantsStacks = false; // somebody looks at them
    this.gone = null; // since when, in seconds
    this.denied = null; // how the daemon refused
    this.run = null;
    this.restarted = null;
    this.device = null;
    this.heat = "read";
    this.forget();
    this.failures = 0;
    this.timer = null;
    this.statusAt = 0;
    this.day = null;
    this.dayAt = 0;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.soon(0);
    });
  }

  // Whether the daemon answers with the same snapshot all the time.
  get stalled() { return this.overview !== null && !this.gone && !this.denied && performance.now() - this.newAt > STALLED; }

  forget() {
    this.columns = {};
    this.levels = [];
    this.marks = { spikes: new Map(), bursts: new Map(), waits: new Map(), clock: new Map() };
    this.to = 0;
    this.bounds = this.bounds ?? null;
  }

  select(device, heat) {
    if (device === this.device && heat === this.heat) return;
    this.device = device;
    this.heat = heat;
    this.forget();
    this.soon(0);
  }

  soon(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.poll(), milliseconds);
  }

  async ask(path) {
    const answer = await fetch("api/v1/" + path, { signal: AbortSignal.timeout(8000) });
    if (answer.status === 404) return null;
    if (!answer.ok) throw Object.assign(new Error("HTTP " + answer.status), { status: answer.status, words: (await answer.text()).slice(0, 300).trim() });
    return answer.json();
  }

  // The history may take a while: nothing waits for it.
  async askDay() {
    if (this.askingDay || Date.now() < this.dayAt) return;
    this.askingDay = true;
    let wait = DAY_RETRY;
    try {
      this.day = (await this.ask("day")) ?? { reason: text("doesNotSay"), devices: [] };
      if (!this.day.reason) wait = DAY_INTERVAL;
    } catch (error) { /* the connection status shows it */ }
    this.dayAt = Date.now() + wait;
    this.askingDay = false;
    this.changed();
  }

  async poll() {
    if (document.hidden || this.asking) return;
    this.asking = true;
    try {
      const device = this.device;
      const heat = this.heat;
      const [overview, live, stacks] = await Promise.all([
        this.ask("devices"),
        device ? this.ask(`devices/${encodeURIComponent(device)}/live?since=${this.to}&heat=${heat}`) : null,
        this.wantsStacks ? this.ask("stacks") : null,
      ]);
      if (!this.status || Date.now() - this.statusAt > 30000) {
        this.status = await this.ask("status");
        this.statusAt = Date.now();
      }
      this.note(overview);
      this.stacks = stacks ?? this.stacks;
      this.askDay();
      if (live && device === this.device && heat === this.heat) this.take(live);
      this.missing = device && !live ? device : null;
      this.gone = this.denied = null;
      this.failures = 0;
    } catch (error) {
      this.denied = DENIED.includes(error.status) ? error : null;
      this.gone = this.denied ? null : this.gone ?? Date.now() / 1000;
      this.failures += 1;
    }
    this.asking = false;
    // First, so that a view that fails does not end the polling.
    this.soon(this.failures ? Math.min(5000, 500 * 2 ** Math.min(this.failures, 4)) : 1000);
    this.changed();
  }

  note(overview) {
    if (this.run && this.run !== overview.run) {
      this.restarted = Date.now() / 1000;
      this.forget();
      this.status = null;
      this.dayAt = 0;
    }
    // By this browser's clock: that of the host may be another.
    if (this.run !== overview.run || this.overview?.snapshot !== overview.snapshot) this.newAt = performance.now();
    this.run = overview.run;
    this.overview = overview;
  }

  // An answer may begin earlier than asked: then it is all there is.
  take(live) {
    if (live.run !== this.run) return;
    if (live.from !== 0 && live.from !== this.to) return; // the answer to a question that is out of date
    if (live.from === 0) this.forget();
    if (live.bounds_seconds) this.bounds = live.bounds_seconds;
    for (const [name, values] of Object.entries(live.columns)) {
      (this.columns[name] ??= []).push(...values);
    }
    // Columns follow each other without a gap except for steps of the clock, and so do their snapshots' numbers.
    let end = live.begin;
    let number = live.to - live.heat.levels.length;
    this.columns.end ??= [];
    this.columns.number ??= [];
    this.columns.seconds ??= [];
    const steps = new Map(live.clock_steps.map((step) => [step.column, step]));
    const first = number + 1;
    for (const milliseconds of live.columns.milliseconds ?? []) {
      number += 1;
      // The clock was set, or the host slept: what is in between belongs to no column.
      const step = steps.get(number);
      if (step && number > first) end += step.milliseconds / 1000;
      if (step) this.marks.clock.set(step.column, { id: `clock-${step.column}`, kind: "clock", begin: step.at, end: step.at, seconds: step.milliseconds / 1000 });
      end += milliseconds / 1000;
      this.columns.end.push(end);
      this.columns.number.push(number);
      this.columns.seconds.push(milliseconds / 1000);
    }
    this.levels.push(...live.heat.levels);
    const spare = this.levels.length - MAX_COLUMNS;
    if (spare > 0) {
      for (const values of Object.values(this.columns)) values.splice(0, spare);
      this.levels.splice(0, spare);
    }
    for (const kind of ["spikes", "bursts", "waits"]) {
      for (const mark of live.marks[kind]) this.marks[kind].set(mark.id, { ...mark, kind });
    }
    this.to = live.to;
  }

  series(name) {
    return this.columns[name] ?? [];
  }

  // Sorted by their beginning; only those of the visible time.
  marksBetween(from, to) {
    return [...this.marks.spikes.values(), ...this.marks.bursts.values(), ...this.marks.waits.values(), ...this.marks.clock.values()]
      .filter((mark) => mark.begin <= to && (mark.end ?? Infinity) >= from)
      .sort((a, b) => a.begin - b.begin);
  }
}
