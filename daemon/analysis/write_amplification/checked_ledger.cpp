// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_amplification/checked_ledger.h"

namespace ssdpulse::analysis {

void CheckedLedger::observe(const WriteSample& sample) {
  const SampleGate::Verdict verdict = gate_.judge(ledger_.newest(), sample);
  if (verdict.doubted) {
    ledger_.doubt(*verdict.doubted, verdict.fell_further);
  }
  if (verdict.leapt) {
    ledger_.interrupt();
  }
  for (const WriteSample& accepted : verdict.accepted) {
    ledger_.observe(accepted);
    newest_ = accepted;
  }
}

std::string CheckedLedger::save() const {
  if (!in_doubt()) {
    return ledger_.save();
  }
  WriteLedger doubting = ledger_;
  doubting.doubt(*gate_.held(), true);
  return doubting.save();
}

util::Result<CheckedLedger> CheckedLedger::restore(std::string_view text, Time poll_interval, Time at,
                                                   std::chrono::system_clock::time_point wall) {
  return WriteLedger::restore(text, poll_interval, at, wall).map([&](WriteLedger&& ledger) {
    CheckedLedger checked(poll_interval);
    checked.ledger_ = std::move(ledger);
    return checked;
  });
}

}  // namespace ssdpulse::analysis
