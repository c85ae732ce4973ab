// SPDX-License-Identifier: Apache-2.0
// Latency spikes of reads, writes, flushes and commits, by cause.
// Every cause is present from the start, at 0, for each operation of every present device.
#include <string>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/labels.h"

namespace ssdpulse::exposition {
namespace {

using model::Operation;
using model::Snapshot;
using model::SpikeFigures;

template <typename Value>
void for_each_cause(
    const Snapshot& snapshot, Samples& out, bool counter, Value value,
    bool (*known)(const model::Device&) = [](const model::Device&) { return true; }) {
  for (const auto& device : snapshot.devices) {
    if (device.unseen || !known(*device.device)) {
      continue;
    }
    const auto since = counter && device.io ? std::optional(device.io->since) : std::nullopt;
    for (const Operation operation : model::kSpikeOperations) {
      for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
        out.add({{"device", device.device->name},
                 {"operation", std::string(name(operation))},
                 {"cause", std::string(model::kSpikeCauseNames[cause])}},
                value(device.spikes[operation], cause), since);
      }
    }
  }
}

constexpr LabelDescription kSpikeLabels[] = {
    kDevice,
    {"operation", "which latency spiked; commit: what a caller of fsync waits for", model::kSpikeOperationNames},
    {"cause", "what explains most of the slow time; unknown: nothing does", model::kSpikeCauseNames},
};

constexpr LabelDescription kOperationLabels[] = {kDevice, kSpikeLabels[1]};

constexpr FamilyDescription kFamilies[] = {

    {"ssdpulse_latency_spikes_total",
     "Latency spikes that are over, by final cause, which is known within 90 seconds of the end.", "", Type::counter,
     Modes::all, kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return to_double(figures.spikes[cause]); });
     }},
    {"ssdpulse_latency_spike_seconds_total", "Duration of those spikes.", "seconds", Type::counter, Modes::all,
     kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return figures.seconds[cause]; });
     }},
    {"ssdpulse_latency_excess_seconds_total",
     "Time that I/Os waited beyond what is usual, summed over I/Os. In a spike: what all of them took beyond the usual "
     "mean, counted once the cause is final. Outside spikes, as unknown: what those beyond the limit of a spike took.",
     "seconds", Type::counter, Modes::all, kSpikeLabels, "the kernel stamps no requests (queue/iostats is 0)",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(
           s, out, true, [](const SpikeFigures& figures, std::size_t cause) { return figures.excess_seconds[cause]; },
           // If the kernel stamps no requests, no total latency is known.
           [](const model::Device& device) { return device.iostats; });
     }},
    {"ssdpulse_latency_spike_pending_excess_seconds",
     "Time that I/Os waited beyond what is usual in spikes whose cause is not final yet: not in the counter yet.",
     "seconds", Type::gauge, Modes::all, kOperationLabels, "the kernel stamps no requests (queue/iostats is 0)",
     [](const Snapshot& s, Samples& out) {
       for (const auto& device : s.devices) {
         for (const Operation operation : model::kSpikeOperations) {
           if (device.device->iostats && !device.unseen) {
             out.add({{"device", device.device->name}, {"operation", std::string(name(operation))}},
                     device.spikes[operation].pending_excess_seconds);
           }
         }
       }
     }},
    {"ssdpulse_latency_spike_active", "1 while a spike lasts, at the most likely cause so far.", "", Type::gauge,
     Modes::all, kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, false, [](const SpikeFigures& figures, std::size_t cause) {
         return figures.active && index(*figures.active) == cause ? 1.0 : 0.0;
       });
     }},
};

}  // namespace

std::span<const FamilyDescription> spike_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
