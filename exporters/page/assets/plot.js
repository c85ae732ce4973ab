// SPDX-License-Identifier: Apache-2.0
// A chart over time: a frame with axes that line charts and the heatmap share, one time cursor for all of them, and
// the three states that never look alike: a value, no value to measure (a gap), and no data (hatched).

import { text, element, clock, date } from "./words.js";

const LEFT = 58;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 20;
const BRUSH = 6; // pixels: a shorter way is a click

const DAY = 86400;
const STEPS = [10, 15, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY];

const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"]
  .map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));

// 0..1 -> [red, green, blue]; high shares are dark on a light background, bright on a dark one.
export function cividis(share) {
  const at = Math.min(0.9999, Math.max(0, isDark() ? share : 1 - share)) * (CIVIDIS.length - 1);
  const low = CIVIDIS[Math.floor(at)];
  const high = CIVIDIS[Math.floor(at) + 1];
  return low.map((value, i) => Math.round(value + (high[i] - value) * (at % 1)));
}

const darkness = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
export const isDark = () => darkness.matches && !root.classList.contains("paper");
// Paper is light and narrow, whatever the window is: all is drawn for it first, and for the window again afterwards.
export function onTheme(changed) {
  darkness.addEventListener("change", changed);
  for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      root.classList.toggle("paper", paper);
      changed();
    });
  }
}
export const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

// A context to draw on in CSS pixels, as sharp as the screen; earlier drawings are erased.
export function sharpContext(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

export function hatch(context, ink = colour("--hatch")) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const inside = tile.getContext("2d");
  inside.strokeStyle = ink;
  inside.lineWidth = 1.5;
  for (const shift of [-8, 0, 8]) {
    inside.beginPath();
    inside.moveTo(shift, 8);
    inside.lineTo(shift + 8, 0);
    inside.stroke();
  }
  return context.createPattern(tile, "repeat");
}

export class Plot {
  constructor(view, title, wide) {
    this.view = view;
    this.wide = wide;
    this.canvas = element("canvas");
    this.surface = element("div", { class: "plot", tabindex: "0", role: "img", "aria-label": title }, this.canvas);
    this.legend = element("ul", { class: "legend" });
    this.summary = element("p", { class: "summary" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text("asTableOf", title) });
    this.details = element("details", { ontoggle: () => this.draw() }, element("summary", {}, text("asATable")), this.table);
    this.heading = element("div", { class: "head" }, element("h3", {}, title), this.legend);
    this.root = element("figure", { class: wide ? "chart wide" : "chart" }, this.heading, this.surface, this.summary, this.details);
    this.surface.addEventListener("pointermove", (event) => this.move(event));
    this.surface.addEventListener("pointerleave", () => view.setCursor(null));
    this.surface.addEventListener("pointerdown", (event) => {
      this.pressed = event.button === 0 ? event.clientX : null;
      this.dragged = false;
    });
    this.surface.addEventListener("pointerup", () => {
      this.pressed = null;
      if (this.dragged) view.brush.done();
    });
    this.surface.addEventListener("click", (event) => {
      this.point(event);
      if (!this.dragged) view.explainAt(view.cursor);
    });
    this.surface.addEventListener("keydown", (event) => view.onChartKey(event));
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(this.surface);
  }

  timeAt(x) {
    const box = this.surface.getBoundingClientRect();
    const share = (x - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return this.view.from + Math.min(1, Math.max(0, share)) * (this.view.until - this.view.from);
  }

  point(event) { this.view.setCursor(this.timeAt(event.clientX)); }

  // Pressed and moved far enough, it brushes a range.
  move(event) {
    this.point(event);
    if (this.pressed == null || event.buttons !== 1 || (!this.dragged && Math.abs(event.clientX - this.pressed) < BRUSH)) return;
    if (!this.dragged) this.surface.setPointerCapture(event.pointerId);
    this.dragged = true;
    this.view.brush.drag(this.timeAt(this.pressed), this.timeAt(event.clientX));
  }

  begin() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.surface.getBoundingClientRect();
    if (width < 40 || this.view.until === undefined || !this.view.marks) return null;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    this.box = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM };
    return context;
  }

  x(time) {
    return this.box.left + ((time - this.view.from) / (this.view.until - this.view.from)) * this.box.width;
  }

  timeAxis(context) {
    const span = this.view.until - this.view.from;
    const step = STEPS.find((one) => span / one <= Math.max(2, this.box.width / 85)) ?? STEPS[STEPS.length - 1];
    const zone = new Date(this.view.from * 1000).getTimezoneOffset() * 60; // days begin at local midnight
    context.fillStyle = colour("--faint");
    context.textAlign = "center";
    context.textBaseline = "top";
    for (let at = Math.ceil((this.view.from - zone) / step) * step + zone; at <= this.view.until; at += step) {
      const x = this.x(at);
      if (x > this.box.left + 22 && x < this.box.left + this.box.width - 22) {
        context.fillText(step >= DAY || clock(at) === "00:00:00" ? date(at).slice(5) : step >= 60 ? clock(at).slice(0, 5) : clock(at), x, this.box.top + this.box.height + 5);
      }
    }
  }

  ticks(context, ticks) {
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [y, words] of ticks) {
      context.strokeStyle = colour("--grid");
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(this.box.left, Math.round(y) + 0.5);
      context.lineTo(this.box.left + this.box.width, Math.round(y) + 0.5);
      context.stroke();
      context.fillStyle = colour("--faint");
      context.fillText(words, this.box.left - 6, y);
    }
  }

  // Times without a column, or without this device in it, are hatched, never empty. Times not kept any more, or yet to
  // come, are grey.
  noData(context, isMissing) {
    const { end, seconds } = this.view.columns;
    const fill = (from, to, style) => {
      const left = Math.max(this.box.left, this.x(from));
      const right = Math.min(this.box.left + this.box.width, this.x(to));
      if (right - left > 0.5) {
        context.fillStyle = style;
        context.fillRect(left, this.box.top, right - left, this.box.height);
      }
    };
    const none = hatch(context);
    const begin = Math.max(this.view.from, this.view.oldest ?? this.view.from);
    const now = Math.min(this.view.until, this.view.newest ?? this.view.until);
    fill(this.view.from, begin, colour("--out"));
    fill(now, this.view.until, colour("--out"));
    let known = begin;
    for (let i = 0; i < end.length; i++) {
      const start = end[i] - seconds[i];
      if (start - known > 0.6) fill(known, Math.min(start, now), none);
      if (isMissing(i)) fill(start, end[i], none);
      known = Math.max(known, end[i]);
    }
    // The newest column may still be on its way.
    if (now - known > this.view.delay) fill(known, now, none);
  }

  marks(context) {
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const mark of this.view.marks) {
      const from = Math.max(this.box.left, this.x(mark.begin));
      const to = Math.min(this.box.left + this.box.width, Math.max(from + 2, this.x(mark.end ?? this.view.until)));
      if (to < this.box.left || from > this.box.left + this.box.width) continue;
      if (mark.kind === "settings" || mark.kind === "marks" || mark.kind === "clock") {
        context.fillStyle = colour("--ink");
        context.fillText("▾", from, this.box.top);
        continue;
      }
      const burst = mark.kind === "bursts";
      context.strokeStyle = burst ? colour("--c4") : colour("--bad");
      context.lineWidth = 3;
      const y = this.box.top + (burst ? this.box.height - 2 : 2);
      context.beginPath();
      context.moveTo(from, y);
      context.lineTo(to, y);
      context.stroke();
      if (!burst && this.wide) {
        context.lineWidth = 1;
        context.setLineDash([3, 3]);
        context.beginPath();
        context.moveTo(from, this.box.top);
        context.lineTo(from, this.box.top + this.box.height);
        context.stroke();
        context.setLineDash([]);
      }
    }
  }

  cursorLine(context) {
    const { range } = this.view.brush;
    if (range) {
      const [left, right] = range.map((time) => Math.max(this.box.left, Math.min(this.box.left + this.box.width, this.x(time))));
      context.strokeStyle = context.fillStyle = colour("--accent");
      context.globalAlpha = 0.18;
      context.fillRect(left, this.box.top, right - left, this.box.height);
      context.globalAlpha = 1;
      context.lineWidth = 1;
      context.strokeRect(left + 0.5, this.box.top + 0.5, Math.max(1, right - left), this.box.height - 1);
    }
    if (this.view.cursor === null) return;
    const x = this.x(this.view.cursor);
    context.strokeStyle = colour("--ink");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, this.box.top);
    context.lineTo(x, this.box.top + this.box.height);
    context.stroke();
  }

  // Rows: [cells of one column], the newest first; at most 60, so that the table can be read aloud.
  fillTable(heads, row) {
    if (!this.details.open) return;
    const { end } = this.view.columns;
    const rows = [];
    for (let i = end.length - 1; i >= 0 && rows.length < 60; i--) {
      if (end[i] <= this.view.until && end[i] >= this.view.from) {
        rows.push(element("tr", {}, element("td", {}, this.view.moment(i)), ...row(i).map((cell) => element("td", { class: "number" }, cell))));
      }
    }
    this.table.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, element("th", {}, this.view.unit), ...heads.map((head) => element("th", { class: "number" }, head)))),
      element("tbody", {}, ...rows)));
  }
}
