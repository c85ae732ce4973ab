// SPDX-License-Identifier: Apache-2.0
// What lies above the drives: a tree below each mount. Asked for only while it is open.

import { Ladders } from "./ladder.js";
import { text, element, latency, bytes, viewLink } from "./words.js";

const FIGURES = [["latency_p50_seconds", "p50", latency], ["latency_p99_seconds", "p99", latency], ["added_latency_seconds", text("adds"), latency], ["bytes_per_second", text("data"), (value) => bytes(value) + "/s"]];

// As of a layer; of reads and writes, the slower.
function figuresOf(now) {
  if (!now) return {};
  const slower = (quantile) => Math.max(...["read", "write"].map((kind) => now[kind][quantile] ?? -1));
  const known = (value) => (value < 0 ? null : value);
  return { latency_p50_seconds: known(slower("p50")), latency_p99_seconds: known(slower("p99")), bytes_per_second: (now.read.bytes + now.write.bytes) / now.seconds };
}

export class Stacks {
  // `device`: only the stacks that it is in, or that are mounted there; null: all.
  constructor(store, device) {
    this.store = store;
    this.device = device;
    this.places = [];
    this.list = element("div");
    this.note = element("p", { class: "faint" });
    this.ladders = new Ladders();
    this.root = element("details", { class: "stacks", ontoggle: () => {
      store.wantsStacks = this.root.open;
      if (this.root.open) store.soon(0);
    } }, element("summary", {}, device ? text("stacksOfIt") : text("stacks")), this.list, this.note, this.ladders.root);
  }

  update() {
    const { stacks: answer, overview } = this.store;
    this.store.wantsStacks = this.root.open;
    if (!this.root.open || !answer) return;
    const shown = answer.stacks.filter((stack) => !this.device || stack.mountpoint === this.device || stack.places.some((place) => place.name === this.device));
    const layers = new Map(answer.layers.map((layer) => [layer.name, layer]));
    const devices = new Map(overview.devices.map((device) => [device.name, device]));
    const key = JSON.stringify([shown, [...devices.keys()], location.hash]); // links keep the range
    if (key !== this.shown) {
      this.shown = key;
      this.places = [];
      this.list.replaceChildren(...shown.map((stack) => this.tree(stack, devices)));
    }
    const measured = answer.layers.some((layer) => layer.latency_p99_seconds != null);
    for (const place of this.places) this.fill(place, layers.get(place.name), devices.get(place.name), measured);
    this.ladders.update(answer, devices, (ladder) => !this.device || [...ladder.drives, ...ladder.volumes].includes(this.device));
    this.note.textContent = shown.length === 0 ? text("noStacks")
      : (this.device ? "" : text("stacksExplained"))
        + (answer.not_measured ? ` ${text("volumesNotMeasured", answer.not_measured)}` : "")
        + (answer.left_out ? ` ${text("notListed", answer.left_out)}` : "");
  }

  tree(stack, devices) {
    const root = element("ul");
    const items = [];
    for (const place of stack.places) {
      const item = element("li", {}, this.floor(place, devices));
      const parent = place.floor === 0 ? null : items[place.floor - 1];
      if (parent && parent.lastElementChild.tagName !== "UL") parent.append(element("ul"));
      (parent ? parent.lastElementChild : root).append(item);
      items[place.floor] = item;
    }
    return element("section", { "data-stack": stack.mountpoint ?? "" },
      element("h3", {}, stack.mountpoint ? element("a", { href: viewLink("mount", stack.mountpoint) }, stack.mountpoint) : text("notMounted"), " ", element("small", {}, stack.fstype ?? "")), root);
  }

  floor(place, devices) {
    const cells = ["name", "kind", "health", ...FIGURES.map(() => "figure")].map((kind) => element("span", { class: kind }));
    const [name, kind] = cells;
    name.append(element("a", { href: viewLink(devices.has(place.name) ? "device" : "volume", place.name) }, place.name), " ", element("small"));
    kind.textContent = place.kind.replace("_", " ");
    this.places.push({ ...place, cells });
    return element("div", { class: "floor", "data-place": place.name }, ...cells);
  }

  fill({ shared, cut, cells }, layer, device, measured) {
    const [name, , health, ...figures] = cells;
    const set = (cell, words) => {
      if (cell.textContent !== words) cell.textContent = words;
    };
    set(name.lastElementChild, layer?.title || device?.model || "");
    set(health, [layer?.health, shared ? text("isShared") : "", cut ? text("moreBelow") : ""].filter(Boolean).join("; "));
    health.classList.toggle("bad", layer?.bad === true);
    const values = layer ?? figuresOf(device?.now);
    FIGURES.forEach(([field, label, words], i) => {
      figures[i].hidden = !measured;
      set(figures[i], values[field] == null ? "" : `${label} ${words(values[field])}`);
    });
  }
}
