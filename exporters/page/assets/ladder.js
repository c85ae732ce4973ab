// SPDX-License-Identifier: Apache-2.0
// Where writes are amplified: bars for the rungs from file systems to media, with the factor between them, for each
// group of drives that share volumes; of the last minute in which the stacks were looked at.

import { text, element, bytes, duration, short } from "./words.js";

const WINDOW = 60; // seconds
const BETWEEN = 5; // seconds between answers that are kept
const MOST = 32; // ladders that are shown

const grown = (before, now) => (before == null || now == null || now < before ? null : now - before);
const keyOf = (one) => [one.rung, one.device, one.class].join(" ");

const rungsOf = (answer) => [...answer.host_rungs, ...answer.ladders.flatMap((one) => one.rungs)];

// {rung: bytes} of some rungs, and {drive: bytes}. What began to count after the first answer was written since.
function written(before, rungs) {
  const earlier = new Map(rungsOf(before).map((one) => [keyOf(one), one]));
  const sums = {}, drives = new Map();
  for (const one of rungs) {
    const then = earlier.get(keyOf(one));
    const size = then && then.counts_since === one.counts_since ? grown(then.bytes, one.bytes) ?? 0 : one.counts_since >= before.taken_at ? one.bytes : 0;
    sums[one.rung] = (sums[one.rung] ?? 0) + size;
    if (one.rung === "drive") drives.set(one.device, size);
  }
  return { sums, drives };
}

// The gaps of the first answer, and what has gone since, belong to the minute, too: only part of their bytes is known.
function withGapsOf(before, answer) {
  const merged = (...gaps) => [...new Map(gaps.flat().map((gap) => [keyOf({ ...gap, class: gap.reason }), gap])).values()];
  const ladders = answer.ladders.map((ladder) => {
    const then = before.ladders.filter((one) => one.drives.some((name) => ladder.drives.includes(name)));
    const known = [...ladder.drives, ...ladder.volumes];
    const rungs = then.flatMap((one) => one.rungs);
    const incarnation = (one) => `${keyOf(one)} ${one.counts_since}`;
    const goOn = new Set(ladder.rungs.map(incarnation));
    const sentByDrives = new Set(rungs.filter((one) => one.rung === "drive").map((one) => one.device));
    // What has gone, or was made again, may have been sent more meanwhile, which the drives below it counted.
    const gone = rungs.filter((one) => !goOn.has(incarnation(one)) && (one.rung === "drive" || (one.rung === "file_system" && !sentByDrives.has(one.device))));
    return { ...ladder, gaps: merged(ladder.gaps, then.flatMap((one) => one.gaps).filter((gap) => known.includes(gap.device)),
      gone.map(({ rung, device }) => ({ rung, device, reason: rung === "drive" ? "drive_not_measured" : "volume_not_measured" }))) };
  });
  return { ...answer, ladders, host_gaps: merged(answer.host_gaps, before.host_gaps) };
}

// What a volume made of what it was sent; null: nothing, or it is not known.
function volumeRows(before, now) {
  const of = (field) => (before?.counts_since === now?.counts_since ? grown(before?.[field], now?.[field]) : null);
  const [sent, below, read, readBelow] = ["written_bytes", "members_written_bytes", "read_bytes", "members_read_bytes"].map(of);
  if (sent === null || below === null || sent + below === 0) return [];
  const rows = [{ who: `${now.title || now.name} (${now.kind.replace("_", " ")})`, size: below, times: sent > 0 ? below / sent : null }];
  if (read !== null && readBelow > read) rows.push({ who: text("extraReads", now.title || now.name), size: readBelow - read, times: null, read: true });
  return rows;
}

// By the drives' own counters, which show it over hours; null unless each that was written to has them.
function mediaRow(drives, devices) {
  let media = 0, all = 0;
  for (const [name, size] of drives) {
    const ratio = devices.get(name)?.nvme?.write_amplification.ratio ?? null;
    if (ratio === null && size > 0) return null;
    media += size * (ratio ?? 0);
    all += size;
  }
  return all > 0 ? { who: text("media"), size: media, times: media / all } : null;
}

export class Ladders {
  constructor() {
    this.kept = [];
    this.root = element("div", { class: "ladders" });
  }

  // `answer`: of stacks; `wanted`: which ladders are shown.
  update(latest, devices, wanted) {
    if (this.kept.at(-1)?.run !== latest.run) this.kept = [];
    const last = this.kept.at(-1);
    if (!last || latest.taken_at >= last.taken_at + BETWEEN) this.kept.push(latest);
    while (this.kept.length > 1 && this.kept[1].taken_at <= latest.taken_at - WINDOW) this.kept.shift();
    const [before] = this.kept;
    const answer = withGapsOf(before, latest);
    const seconds = answer.taken_at - before.taken_at;
    if (seconds <= 0 || (seconds > BETWEEN && this.drawn === this.kept.at(-1).snapshot)) return;
    this.drawn = this.kept.at(-1).snapshot;
    const shown = answer.ladders.filter(wanted).map((ladder) => this.ladder(before, answer, ladder, devices, seconds)).filter(Boolean);
    this.root.replaceChildren(...this.host(before, answer, seconds), ...shown.slice(0, MOST));
  }

  // What processes write is counted for the whole host alone.
  host(before, answer, seconds) {
    const { sums } = written(before, rungsOf(answer));
    if (!sums.application && !sums.file_system) return [];
    const gaps = [...answer.host_gaps, ...answer.ladders.flatMap((ladder) => ladder.gaps)].filter((gap) => gap.rung === "application" || gap.rung === "file_system");
    const lacking = [...new Set(gaps.map((gap) => gap.device || text("thePageCache")))].join(", ");
    const [above = 0, below = 0] = [sums.application, sums.file_system];
    const rows = [{ who: text("applicationsTitle"), size: above, times: null }, { who: text("fileSystemsTitle"), size: below, times: gaps.length === 0 && above > 0 ? below / above : null }];
    return [element("section", { "data-host-ladder": "" },
      element("h3", {}, text("writtenByHost")),
      element("ul", { class: "bars" }, ...rows.map((row) => this.bar(row, Math.max(above, below), seconds))),
      element("p", { class: "faint" }, `${text("inTheLast", duration(seconds))}${lacking ? ` ${text("notAllKnown", lacking)}` : ""}`))];
  }

  ladder(before, answer, ladder, devices, seconds) {
    const { sums, drives } = written(before, ladder.rungs);
    if (!sums.file_system && !sums.drive) return null;
    const named = (list, name) => list.find((one) => one.name === name);
    const lacking = ladder.gaps.filter((gap) => gap.rung === "file_system" || gap.rung === "drive");
    const whole = lacking.length === 0;
    const media = mediaRow(drives, devices);
    const rows = [{ who: text("fileSystemsTitle"), size: sums.file_system ?? 0, times: null },
      ...ladder.volumes.flatMap((name) => volumeRows(named(before.layers, name), named(answer.layers, name))),
      { who: text("drivesTitle"), size: sums.drive ?? 0, times: whole && sums.file_system > 0 ? sums.drive / sums.file_system : null },
      ...(media ? [media] : [])];
    const highest = Math.max(...rows.map((row) => row.size));
    const together = whole && media && sums.file_system > 0 ? ` ${text("toMedia", short(media.size / sums.file_system))}` : "";
    return element("section", { "data-ladder": ladder.drives.join(" ") },
      element("h3", {}, text("writtenTo", ladder.drives.join(", "))),
      element("ul", { class: "bars" }, ...rows.map((row) => this.bar(row, highest, seconds))),
      element("p", { class: "faint" }, `${text("inTheLast", duration(seconds))}${together}`
        + (media ? "" : ` ${text("notAllCountMedia")}`)
        + (whole ? "" : ` ${text("lacking", lacking.map((gap) => `${gap.device} (${gap.reason.replaceAll("_", " ")})`).join(", "))}`)));
  }

  bar({ who, size, times, read }, highest, seconds) {
    const bar = element("span", { class: read ? "bar-of read" : "bar-of", "aria-hidden": "true" });
    bar.style.width = `${highest > 0 ? Math.max(0.5, (100 * size) / highest) : 0}%`;
    return element("li", {}, element("span", { class: "who", title: who }, who), element("span", { class: "track" }, bar),
      element("span", { class: "much" }, `${bytes(size / seconds)}/s`, times === null ? "" : ` × ${short(times)}`));
  }
}
