// SPDX-License-Identifier: Apache-2.0
// EvidenceWords: what was measured in a spike, in sentences: what decided its cause, what other causes it ruled out,
// and the rest. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/spikes.h"

namespace ssdpulse::live {

struct EvidenceWords {
  std::vector<std::string> decided;    // how much was slow, who did and who waited; what speaks for the cause
  std::vector<std::string> ruled_out;  // what speaks against other causes
  std::vector<std::string> other;
};

EvidenceWords evidence_words(const model::LatencySpike& spike);

}  // namespace ssdpulse::live
