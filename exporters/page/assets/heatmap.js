// SPDX-License-Identifier: Apache-2.0
// Where are all I/Os of each second? One pixel per bucket and second on a canvas of its own, drawn scaled in one step.

import { Plot, cividis, colour, isDark } from "./plot.js";
import { text, element, latency, exact, manyOf, plural, span } from "./words.js";

const ZERO = 0; // words of bpf/abi/latency_buckets.h
const UNDER = 1;
const OVER = 210;
const HOLD = 30000; // the least time that a scale is kept, in milliseconds, so that it does not flicker

// "FIRST:LEVELS" -> [first word, levels]; null: no data.
function parse(text) {
  if (text == null) return null;
  const colon = text.indexOf(":");
  return colon < 0 ? [0, ""] : [Number(text.slice(0, colon)), text.slice(colon + 1)];
}

const level = (levels, i) => levels.charCodeAt(i) - 48;
const minCountOf = (one) => 2 ** (one - 1); // the least count of a level

export class Heatmap extends Plot {
  constructor(view) {
    super(view, text("latencyOfAll"), true);
    this.surface.id = "heatmap";
    this.withLines = true;
    this.toggle = element("button", { type: "button", id: "lines", "aria-pressed": "true", onclick: () => {
      this.withLines = !this.withLines;
      this.toggle.setAttribute("aria-pressed", this.withLines);
      this.draw();
    } }, "p50, p99, p99.9");
    this.pixels = document.createElement("canvas");
    this.scale = { low: 70, high: 120, level: 4, until: 0 };
    this.colours = element("canvas", { width: "140", height: "12" });
    this.most = element("span", {});
    this.hover = element("span", { class: "faint" }, "");
    this.heading.append(this.hover);
    this.root.insertBefore(element("div", { class: "key" },
      element("span", {}, `${text("oneIo")} `, this.colours, this.most),
      element("span", {}, element("i", { class: "box" }), text("noneZero")),
      element("span", {}, element("i", { class: "box none" }), text("noDataNotMeasured")),
      element("span", {}, element("i", { class: "box out" }), text("outOfRange")),
      element("span", {}, text("beyondScale")), this.toggle,
      element("button", { type: "button", id: "compare-shown", onclick: () => view.brush.compareShown() }, text("compareShown"))), this.summary);
  }

  // Which buckets are shown, and which level is the last colour: what is visible decides, and the choice is held for a
  // while.
  rescale(visible) {
    let low = OVER;
    let high = 2;
    let most = 1;
    for (const i of visible) {
      const column = parse(this.view.levels[i]);
      if (!column || column[1] === "") continue;
      low = Math.min(low, Math.max(column[0], 2));
      high = Math.max(high, Math.min(column[0] + column[1].length - 1, OVER - 1));
      for (let k = 0; k < column[1].length; k++) most = Math.max(most, level(column[1], k));
    }
    if (high < low) return;
    low = Math.max(2, Math.floor((low - 3) / 4) * 4);
    high = Math.min(OVER - 1, Math.max(Math.ceil((high + 4) / 4) * 4, low + 40));
    const now = performance.now();
    const key = `${this.view.until - this.view.from} ${this.view.heat}`;
    const grows = low < this.scale.low || high > this.scale.high || most > this.scale.level;
    if (grows || now > this.scale.until || key !== this.scale.key) {
      const keep = key === this.scale.key && now <= this.scale.until;
      this.scale = {
        low: keep ? Math.min(low, this.scale.low) : low,
        high: keep ? Math.max(high, this.scale.high) : high,
        level: keep ? Math.max(most, this.scale.level) : most,
        until: now + HOLD,
        key,
      };
    }
  }

  // Rows from the top: over, high .. low, under (with zero).
  rowOf(word) {
    if (word === OVER) return 0;
    if (word === UNDER || word === ZERO) return this.scale.high - this.scale.low + 2;
    return 1 + this.scale.high - word;
  }

  draw() {
    const context = this.begin();
    if (!context || !this.view.columns.end) return;
    const visible = this.view.visible();
    this.rescale(visible);
    const rows = this.scale.high - this.scale.low + 3;
    this.rowHeight = this.box.height / rows;
    this.paint(visible, rows);
    context.imageSmoothingEnabled = false;
    const { end, seconds } = this.view.columns;
    // One step for each run of columns without a gap.
    for (let at = 0; at < visible.length;) {
      let last = at;
      while (last + 1 < visible.length && this.view.follows(visible[last + 1])) last++;
      const left = this.x(end[visible[at]] - seconds[visible[at]]);
      const right = this.x(end[visible[last]]);
      context.save();
      context.beginPath();
      context.rect(this.box.left, this.box.top, this.box.width, this.box.height);
      context.clip();
      context.drawImage(this.pixels, at, 0, last - at + 1, rows, left, this.box.top, right - left, this.box.height);
      context.restore();
      at = last + 1;
    }
    this.noData(context, (i) => this.view.levels[i] === null);
    this.axis(context);
    this.timeAxis(context);
    if (this.withLines) this.quantiles(context, visible);
    this.marks(context);
    this.cursorLine(context);
    this.describe(visible);
    Object.assign(this.surface.dataset, { from: this.view.from, until: this.view.until, low: this.scale.low, high: this.scale.high });
  }

  paint(visible, rows) {
    this.pixels.width = Math.max(1, visible.length);
    this.pixels.height = rows;
    const inside = this.pixels.getContext("2d", { willReadFrequently: true });
    const image = inside.createImageData(this.pixels.width, rows);
    const palette = Array.from({ length: this.scale.level + 1 }, (_, i) => cividis(0.08 + 0.92 * ((i - 1) / Math.max(1, this.scale.level - 1))));
    visible.forEach((i, x) => {
      const column = parse(this.view.levels[i]);
      if (!column) return;
      for (let k = 0; k < column[1].length; k++) {
        const one = level(column[1], k);
        if (one === 0) continue;
        const at = 4 * (this.rowOf(column[0] + k) * this.pixels.width + x);
        const [red, green, blue] = palette[Math.min(one, this.scale.level)];
        image.data.set([red, green, blue, 255], at);
      }
    });
    inside.putImageData(image, 0, 0);
  }

  yOf(word) {
    return this.box.top + (this.rowOf(word) + 0.5) * this.rowHeight;
  }

  axis(context) {
    const bounds = this.view.bounds;
    if (!bounds) return;
    const ticks = [];
    for (let word = this.scale.low; word <= this.scale.high; word++) {
      for (let power = -6; power <= 1; power++) {
        const value = 10 ** power;
        if (bounds[word] >= value && bounds[word - 1] < value) ticks.push([this.box.top + (this.rowOf(word) + 1) * this.rowHeight, latency(value)]);
      }
    }
    context.globalAlpha = 0.55;
    this.ticks(context, ticks);
    context.globalAlpha = 1;
    this.ticks(context, []);
    context.strokeStyle = colour("--line");
    for (const y of [this.box.top + this.rowHeight, this.box.top + this.box.height - this.rowHeight]) {
      context.beginPath();
      context.moveTo(this.box.left, y);
      context.lineTo(this.box.left + this.box.width, y);
      context.stroke();
    }
  }

  quantiles(context, visible) {
    for (const [name, dash] of [["p50", []], ["p99", [7, 4]], ["p999", [2, 3]]]) {
      const words = this.view.series(`${this.view.heat}_${name}`);
      for (const [width, ink] of [[3, isDark() ? "#000a" : "#fffb"], [1.3, colour("--ink")]]) {
        context.strokeStyle = ink;
        context.lineWidth = width;
        context.setLineDash(dash);
        context.beginPath();
        let open = false;
        for (const i of visible) {
          if (words[i] == null) {
            open = false;
            continue;
          }
          const point = [this.x(this.view.columns.end[i] - this.view.columns.seconds[i] / 2), this.yOf(words[i])];
          if (open && this.view.follows(i)) context.lineTo(...point);
          else context.moveTo(...point);
          open = true;
        }
        context.stroke();
      }
    }
    context.setLineDash([]);
  }

  hasMedian() {
    return this.view.series(`${this.view.heat}_p50`).length > 0;
  }

  describe(visible) {
    const bounds = this.view.bounds ?? [];
    const tail = (name, i) => latency(bounds[this.view.series(`${this.view.heat}_${name}`)[i]] ?? null);
    const at = this.view.cursorIndex() ?? visible[visible.length - 1];
    const ios = this.view.series(`${this.view.heat}_ios`);
    this.legend.replaceChildren();
    if (at !== undefined) {
      const missing = this.view.isMissing(at);
      this.hover.textContent = `${this.view.moment(at)} · ` + (missing ? text("noData") : ios[at] === 0 ? text("noKind", plural(this.view.heat)) :
        `${manyOf(ios[at], this.view.heat)} · ` + (this.hasMedian() ? `${text("p50Solid", tail("p50", at))} · ` : "") + text("p99Dashed", tail("p99", at)) + (this.hasMedian() ? ` · ${text("p999Dotted", tail("p999", at))}` : ""));
    }
    this.most.textContent = text("andMoreIos", exact(minCountOf(this.scale.level)));
    const inside = this.colours.getContext("2d");
    for (let x = 0; x < 140; x++) {
      inside.fillStyle = `rgb(${cividis(0.08 + 0.92 * (x / 139)).join(",")})`;
      inside.fillRect(x, 0, 1, 12);
    }
    const with99 = visible.filter((i) => this.view.series(`${this.view.heat}_p99`)[i] != null);
    const p99 = with99.map((i) => this.view.series(`${this.view.heat}_p99`)[i]);
    const missing = visible.filter((i) => this.view.isMissing(i)).length + this.view.unrecorded(visible);
    this.summary.textContent = visible.length === 0 ? (this.view.unanswered ? "" : text("noDataInRange")) : (p99.length === 0 ? text("noKindIn", plural(this.view.heat), this.view.stretches(visible.length)) :
      text(with99.length === 1 ? "oneHasIos" : "manyHaveIos", with99.length, this.view.stretches(visible.length), span(latency(bounds[Math.min(...p99)]), latency(bounds[Math.max(...p99)])))) +
      (missing ? `; ${text("withoutData", this.view.stretches(missing))}` : ".");
    this.surface.setAttribute("aria-label", `${text("heatmapOf", this.view.heat)} ${this.summary.textContent} ${text("chartKeys")}`);
    this.fillTable([text("ios"), "p50", "p99", "p99.9"], (i) => this.view.isMissing(i) ? [text("noData"), "", "", ""] : [exact(ios[i]), tail("p50", i), tail("p99", i), tail("p999", i)]);
  }
}
