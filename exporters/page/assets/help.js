// SPDX-License-Identifier: Apache-2.0
// What a figure means, on hover and on focus: the help of the metric that it is made from, from the daemon's own table.

import { text, element } from "./words.js";

// The figure, the metric, and what the page makes of it.
export const FIGURES = {
  latency: ["ssdpulse_io_latency_seconds", text("helpTail")],
  busy: ["ssdpulse_device_busy_seconds_total", text("helpBusy")],
  ios: ["ssdpulse_io_bytes_total", text("helpIos")],
  free: ["ssdpulse_filesystem_available_bytes", ""],
  amplification: ["ssdpulse_write_amplification_ratio", ""],
  life: ["ssdpulse_nvme_percentage_used_ratio", text("helpLife")],
  temperature: ["ssdpulse_nvme_temperature_celsius", ""],
  volume_latency: ["ssdpulse_volume_latency_seconds", text("helpVolumeTail")],
  volume_ios: ["ssdpulse_volume_ios_total", text("helpLastMinute")],
  added: ["ssdpulse_volume_member_latency_seconds", text("helpAdded")],
  tenant_bytes: ["ssdpulse_tenant_bytes_total", text("helpLastMinute")],
  tenant_ios: ["ssdpulse_tenant_ios_total", text("helpLastMinute")],
  tenant_time: ["ssdpulse_tenant_device_seconds_total", text("helpShareOfMinute")],
};

// Of each element with data-help, a key of the table above.
export class Help {
  constructor(root) {
    this.bubble = element("div", { id: "help-of-figure", role: "tooltip", hidden: true });
    root.querySelector("footer").append(this.bubble); // a landmark that no view replaces
    for (const name of ["pointerover", "focusin"]) root.addEventListener(name, (event) => this.show(event.target.closest?.("[data-help]")));
    for (const name of ["scroll", "resize"]) addEventListener(name, () => this.hide(), { passive: true });
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.bubble.hidden) return;
      this.hide();
      event.stopPropagation(); // Esc closes this alone
    }, true);
  }

  hide() {
    this.bubble.hidden = true;
    this.of?.removeAttribute("aria-describedby");
    this.of = null;
  }

  async table() {
    this.metrics ??= fetch("api/v1/metrics").then((answer) => answer.json()).then(({ metrics }) => new Map(metrics.map((metric) => [metric.name, metric])));
    return this.metrics;
  }

  async show(of) {
    if (of === this.of || (of && this.bubble.contains(of))) return;
    this.hide();
    if (!of) return;
    this.of = of;
    const [name, here] = FIGURES[of.dataset.help] ?? [];
    let metric = null;
    try {
      metric = (await this.table()).get(name);
    } catch (error) {
      this.metrics = null; // another time
    }
    if (this.of !== of || !metric) return;
    this.bubble.replaceChildren(element("p", {}, `${metric.help} ${here}`.trim()), element("p", { class: "faint" }, name));
    this.bubble.hidden = false;
    of.setAttribute("aria-describedby", this.bubble.id);
    const { left, bottom } = of.getBoundingClientRect();
    this.bubble.style.left = `${Math.max(8, Math.min(left, innerWidth - this.bubble.offsetWidth - 8))}px`;
    this.bubble.style.top = `${Math.min(bottom + 4, innerHeight - this.bubble.offsetHeight - 4)}px`;
  }
}
