// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/discard_submissions.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

namespace ssdpulse::block {
namespace {

static_assert(SUBMITTERS == model::kDiscardSubmitters);
static_assert(SUBMITTER_KERNEL == static_cast<int>(model::DiscardSubmitter::kernel));
static_assert(SUBMITTER_OTHER == static_cast<int>(model::DiscardSubmitter::other));

bool has_place(const model::Device& device) {
  return device.coverage == model::Coverage::measured || device.coverage == model::Coverage::stacked;
}

std::uint64_t acquire(const __u64& word) {
  return std::atomic_ref(const_cast<__u64&>(word)).load(std::memory_order_acquire);
}

/// A process names itself: what would end the line or the quotes in which the name is told becomes '?'.
std::string told_name(std::string_view name) {
  std::string told(name);
  std::replace_if(
      told.begin(), told.end(), [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
  return told;
}

}  // namespace

std::uint32_t discard_places(const model::Inventory& inventory) {
  constexpr std::ptrdiff_t kSpare = 32;
  const auto present = std::count_if(inventory.devices.begin(), inventory.devices.end(), has_place);
  return static_cast<std::uint32_t>(present + present / 4 + kSpare);
}

DiscardSubmissionReader::DiscardSubmissionReader(std::span<const discard_cell> cells) : cells_(cells) {
  for (std::uint32_t place = 0; place < cells.size() / SUBMITTERS; ++place) {
    free_.push_back(place);
  }
}

void DiscardSubmissionReader::update(const model::Inventory& inventory) {
  std::set<std::string> present;
  for (const model::Device& device : inventory.devices) {
    if (has_place(device)) {
      present.insert(device.name);
    }
  }
  for (auto known = places_.begin(); known != places_.end();) {
    if (present.count(known->first) != 0) {
      ++known;
      continue;
    }
    free_.push_back(known->second.number);
    known = places_.erase(known);
  }
  for (const std::string& disk : present) {
    if (places_.count(disk) == 0 && !free_.empty()) {
      places_.emplace(disk, Place{free_.front(), read_cells(free_.front())});
      free_.pop_front();
    }
  }
}

std::uint32_t DiscardSubmissionReader::place_of(const std::string& disk) const {
  const auto place = places_.find(disk);
  return place == places_.end() ? 0 : place->second.number + 1;
}

model::DiscardSubmitters DiscardSubmissionReader::read_cells(std::uint32_t place) const {
  model::DiscardSubmitters result;
  for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
    const discard_cell& cell = cells_[std::size_t{place} * SUBMITTERS + submitter];
    model::DiscardSubmissions& out = result[submitter];
    out.bytes = acquire(cell.bytes);
    out.ranges = acquire(cell.ranges);
    out.first_ns = acquire(cell.first_ns);
    out.last_ns = acquire(cell.last_ns);
    out.submitter = told_name({cell.name, strnlen(cell.name, sizeof(cell.name))});
  }
  return result;
}

std::map<std::string, model::DiscardSubmitters> DiscardSubmissionReader::read() const {
  std::map<std::string, model::DiscardSubmitters> result;
  for (const auto& [disk, place] : places_) {
    model::DiscardSubmitters now = read_cells(place.number);
    for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
      now[submitter].bytes -= place.baseline[submitter].bytes;
      now[submitter].ranges -= place.baseline[submitter].ranges;
    }
    result.emplace(disk, std::move(now));
  }
  return result;
}

}  // namespace ssdpulse::block
