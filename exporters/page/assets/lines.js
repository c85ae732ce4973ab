// SPDX-License-Identifier: Apache-2.0
// Lines over time: latencies on a logarithmic axis, all else on one from zero.

import { Plot, colour } from "./plot.js";
import { text, element, latency, span } from "./words.js";

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

export class Lines extends Plot {
  // lines: [{name, values(i) -> number | null, n(i)?}]; i is a column of the view. `none`: the words for a column
  // without a value that is not missing.
  constructor(view, title, lines, words, logarithmic, { none = text("none"), isMissing = (i) => view.isMissing(i) } = {}) {
    super(view, title, false);
    this.none = none;
    this.isMissing = isMissing;
    this.title = title;
    this.lines = lines;
    this.words = words;
    this.logarithmic = logarithmic;
    this.items = lines.map((line, i) => element("li", { class: "c" + (i + 1) }, line.name));
    this.legend.replaceChildren(...this.items);
  }

  hasValues(visible) { return visible.some((i) => this.lines.some((line) => line.values(i) > 0)); }

  range(visible) {
    let low = Infinity;
    let high = -Infinity;
    for (const i of visible) {
      for (const line of this.lines) {
        const value = line.values(i);
        if (value == null || (this.logarithmic && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (high < low) return null;
    if (!this.logarithmic) return [0, high > 0 ? high * 1.08 : 1];
    return [Math.min(low / 1.3, high / 10), high * 1.3];
  }

  draw() {
    const context = this.begin();
    if (!context || !this.view.columns.end) return;
    const visible = this.view.visible();
    const range = this.range(visible);
    this.root.classList.toggle("empty", !range);
    this.noData(context, this.isMissing);
    if (range) this.axis(context, range);
    this.timeAxis(context);
    if (range) this.lines.forEach((line, at) => this.line(context, line, at, visible, range));
    this.marks(context);
    this.cursorLine(context);
    this.describe(visible);
  }

  y(value, [low, high]) {
    const share = this.logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return this.box.top + this.box.height * (1 - share);
  }

  axis(context, range) {
    const [low, high] = range;
    const ticks = [];
    if (this.logarithmic) {
      const decades = Math.log10(high / low);
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (const digit of decades < 1.6 ? [1, 2, 5] : [1]) {
          const value = digit * 10 ** power;
          if (value >= low && value <= high) ticks.push([this.y(value, range), this.words(value)]);
        }
      }
    } else {
      const raw = high / 4;
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= raw);
      for (let value = 0; value <= high; value += step) ticks.push([this.y(value, range), this.words(value)]);
    }
    this.ticks(context, ticks);
  }

  line(context, line, at, visible, range) {
    context.strokeStyle = colour("--c" + (at + 1));
    context.lineWidth = 1.6;
    context.setLineDash(DASHES[at]);
    context.beginPath();
    let open = false;
    let alone = null;
    for (const i of visible) {
      const value = line.values(i);
      if (value == null || (this.logarithmic && value <= 0)) {
        if (alone) this.dot(context, alone);
        open = false;
        alone = null;
        continue;
      }
      const { end, seconds } = this.view.columns;
      const moment = end[i] - (this.view.inPast ? seconds[i] / 2 : 0); // a minute's value stands in its middle
      const point = [Math.max(this.box.left, Math.min(this.box.left + this.box.width, this.x(moment))), this.y(value, range)];
      if (open && !this.view.follows(i)) {
        if (alone) this.dot(context, alone);
        open = false;
      }
      if (open) {
        context.lineTo(...point);
        alone = null;
      } else {
        context.moveTo(...point);
        alone = point;
      }
      open = true;
    }
    context.stroke();
    if (alone) this.dot(context, alone);
    context.setLineDash([]);
  }

  // A second between gaps has no line, so it gets a dot.
  dot(context, [x, y]) {
    context.fillStyle = context.strokeStyle;
    context.fillRect(x - 1.5, y - 1.5, 3, 3);
  }

  describe(visible) {
    const at = this.view.cursorIndex() ?? visible[visible.length - 1];
    this.lines.forEach((line, i) => {
      const value = at === undefined ? null : line.values(at);
      const n = line.n && at !== undefined ? line.n(at) : undefined;
      const words = value == null ? (this.isMissing(at) ? text("noData") : this.none) : this.words(value);
      this.items[i].textContent = `${line.name}: ${words}` + (n === undefined || n === null ? "" : ` (n ${n})`);
    });
    const parts = this.lines.map((line) => {
      const values = visible.map((i) => line.values(i)).filter((value) => value != null);
      if (values.length === 0) return `${line.name}: ${visible.every(this.isMissing) ? text("noData") : this.none}`;
      return `${line.name}: ${span(this.words(Math.min(...values)), this.words(Math.max(...values)))}`;
    });
    this.summary.textContent = parts.join("; ");
    this.surface.setAttribute("aria-label", `${this.title}. ${this.summary.textContent}`);
    this.fillTable(this.lines.map((line) => line.name), (i) => this.lines.map((line) => {
      const value = line.values(i);
      return value == null ? (this.isMissing(i) ? text("noData") : this.none) : this.words(value);
    }));
  }
}

export const latencyLines = (view, title, lines) => new Lines(view, title, lines, latency, true);
