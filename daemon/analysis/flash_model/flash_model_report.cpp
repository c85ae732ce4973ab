// SPDX-License-Identifier: Apache-2.0
// What a model of one drive reports, and what it saves of its state.
#include "daemon/analysis/flash_model/flash_model.h"
#include "daemon/analysis/flash_model/hint_order.h"

namespace ssdpulse::analysis {
namespace {

constexpr std::uint64_t kFormat = 0x31302D6873616C66;  // "flash-01"; a different one for any other layout
constexpr std::array kQuantiles{0.1, 0.5, 0.9};

void save_key(BinaryWriter& out, const FlashModelSettings& settings) {
  out(kFormat);
  out(std::string_view(settings.serial));
  out(settings.size_bytes);
  out(settings.page_bytes);
  out(settings.rate_bits);
  out(settings.seed);
  out(std::uint64_t{settings.what_ifs.size()});
  for (const WhatIf& what : settings.what_ifs) {
    out(what.overprovisioning);
    out(what.policy);
    out(what.discards);
    out(what.placement);
    out(what.unknown);
  }
}

}  // namespace

model::FlashReport FlashModel::report() const {
  model::FlashReport result;
  const WindowMark now = mark(now_);
  for (std::size_t i = 0; i < model::kFlashWindows; ++i) {
    const auto window = static_cast<model::FlashWindow>(i);
    const WindowMark* const from = begin_of(window);
    result.silence[i] = silence(from, now);
    if (!result.silence[i]) {
      const auto found = amplification(window, *from, now);
      result.amplification.insert(result.amplification.end(), found.begin(), found.end());
    }
  }
  result.drive_writes = lifetimes_.drive_writes();
  result.unknown_pages = lifetimes_.unknown_share();
  result.lost_writes = losses_.rates().writes;
  result.lost_discards = losses_.rates().discards;
  result.sampled_writes = sampled_writes_;
  result.block_bytes =
      (std::uint64_t{model_block_pages(sample_.pages())} << settings_.rate_bits) * settings_.page_bytes;
  const auto drive_bytes = static_cast<double>(settings_.size_bytes);
  for (std::uint8_t hint = 0; hint < model::kWriteHints; ++hint) {
    const auto survival = lifetimes_.survival(hint);
    if (survival.pages < kMinDistinctPages) {
      continue;
    }
    result.alive[hint] = static_cast<double>(survival.living) / static_cast<double>(survival.ended + survival.living);
    for (const double quantile : kQuantiles) {
      if (const auto found = survival.quantile(quantile)) {
        result.lifetimes.push_back({hint, quantile, found->lifetime * drive_bytes});
      }
    }
  }
  result.order_violations = hint_order_violations(lifetimes_, drive_bytes);
  if (full_discard_at_) {
    result.written_since_full_discard_bytes = (written_ - *full_discard_at_) * settings_.page_bytes;
  }
  return result;
}

std::string FlashModel::save() const {
  BinaryWriter out;
  save_key(out, settings_);
  save_fields(out);
  out(checksum(out.bytes()));
  return out.bytes();
}

util::Result<std::unique_ptr<FlashModel>> FlashModel::restore(const FlashModelSettings& settings,
                                                              std::string_view state, std::chrono::nanoseconds at) {
  BinaryWriter key;
  save_key(key, settings);
  if (state.substr(0, key.bytes().size()) != key.bytes()) {
    return util::fail("it is of another drive, size, seed or version");
  }
  std::uint64_t sum = 0;
  const std::string_view body = state.substr(0, state.size() - std::min(state.size(), sizeof sum));
  BinaryReader end(state.substr(body.size()));
  end(sum);
  if (!end.complete() || sum != checksum(body)) {
    return util::fail("it is damaged");
  }
  auto result = std::make_unique<FlashModel>(settings);
  BinaryReader in(body.substr(key.bytes().size()));
  if (!result->restore_fields(in) || !in.complete()) {
    return util::fail("it is inconsistent");
  }
  result->marks_.shift(at - result->now_);  // the monotonic clock of another boot
  result->now_ = at;
  return result;
}

void FlashModel::save_fields(BinaryWriter& out) const {
  lifetimes_.save(out);
  classes_.save(out);
  for (const WhatIfRun& run : runs_) {
    run.save(out);
  }
  losses_.save(out);
  marks_.save(out);
  out(std::int64_t{now_.count()});
  out(written_);
  out(warm_at_);
  out(sampled_writes_);
  out(std::uint8_t{full_discard_at_.has_value()});
  out(full_discard_at_.value_or(0));
}

bool FlashModel::restore_fields(BinaryReader& in) {
  std::uint8_t discarded = 0;
  std::uint64_t discarded_at = 0;
  if (!lifetimes_.restore(in) || !classes_.restore(in) ||
      !std::all_of(runs_.begin(), runs_.end(), [&in](WhatIfRun& run) { return run.restore(in); }) ||
      !losses_.restore(in) || !marks_.restore(in, runs_.size())) {
    return false;
  }
  std::int64_t now = 0;
  in(now);
  now_ = std::chrono::nanoseconds(now);
  in(written_);
  in(warm_at_);
  in(sampled_writes_);
  in(discarded);
  in(discarded_at);
  full_discard_at_ = discarded == 1 ? std::optional(discarded_at) : std::nullopt;
  return in.good() && discarded_at <= written_;
}

}  // namespace ssdpulse::analysis
