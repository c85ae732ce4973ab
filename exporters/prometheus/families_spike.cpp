// SPDX-License-Identifier: Apache-2.0
// When were reads, writes, flushes or commits slower than they use to be, and why? One entry per family in kFamilies.
// Every cause is there from the start, at 0, for each operation of every present device.
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;
using model::SpikeFigures;

template <typename Value>
void for_each_cause(
    const Snapshot& snapshot, Samples& out, bool counter, Value value,
    bool (*known)(const model::Device&) = [](const model::Device&) { return true; }) {
  for (const auto& device : snapshot.devices) {
    if (!known(*device.device)) {
      continue;
    }
    const auto since = counter && device.io ? std::optional(device.io->since) : std::nullopt;
    for (std::size_t operation = 0; operation < device.spikes.size(); ++operation) {
      for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
        out.add({{"device", device.device->name},
                 {"operation", std::string(model::kSpikeOperationNames[operation])},
                 {"cause", std::string(model::kSpikeCauseNames[cause])}},
                value(device.spikes[operation], cause), since);
      }
    }
  }
}

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_latency_spikes_total",
     "Times in which the operation was slower than it uses to be, by cause; counted once the cause is final, at "
     "most one reading of the drive's logs after the end.",
     "", Type::counter, Modes::all,
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return to_double(figures.spikes[cause]); });
     }},
    {"ssdpulse_latency_spike_seconds_total", "How long those times were.", "seconds", Type::counter, Modes::all,
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return figures.seconds[cause]; });
     }},
    {"ssdpulse_latency_excess_seconds_total",
     "Time that I/Os waited beyond what is usual of them, all added up: in spikes, once the cause is final, what all "
     "took "
     "beyond the usual mean; outside (unknown), what those took that were beyond the limit of a spike.",
     "seconds", Type::counter, Modes::all,
     [](const Snapshot& s, Samples& out) {
       for_each_cause(
           s, out, true, [](const SpikeFigures& figures, std::size_t cause) { return figures.excess_seconds[cause]; },
           // Where the kernel stamps no requests, no total latency is known.
           [](const model::Device& device) { return device.iostats; });
     }},
    {"ssdpulse_latency_spike_active", "Whether such a time goes on, with the best cause so far; 1: yes.", "",
     Type::gauge, Modes::all,
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, false, [](const SpikeFigures& figures, std::size_t cause) {
         return figures.active && index(*figures.active) == cause ? 1.0 : 0.0;
       });
     }},
};

}  // namespace

std::span<const FamilyDescription> spike_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
