// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/attribution_account.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ssdpulse::block {
namespace {

constexpr std::size_t list_index(model::Operation operation) {
  return index_in(model::kAttributedOperations, operation);
}

static_assert(list_index(model::Operation::write) == ATTRIBUTED_WRITE);
static_assert(list_index(model::Operation::discard) == ATTRIBUTED_DISCARD);
static_assert(ATTRIBUTED_COMMIT == model::kAttributedOperations.size(), "commits come behind what has bytes");

/// Stands for all cgroups that departed; no directory has this inode.
constexpr model::CgroupId kDeparted = std::numeric_limits<model::CgroupId>::max();

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

model::IoPath path_of(std::uint32_t code) {
  switch (code & ~static_cast<std::uint32_t>(PATH_RAW)) {
    case PATH_IO_URING:
      return model::IoPath::io_uring;
    case PATH_SQPOLL:
      return model::IoPath::sqpoll;
    case PATH_LIBAIO:
      return model::IoPath::libaio;
    case PATH_SYNC:
      return model::IoPath::sync;
    case PATH_DIRECT:
      return model::IoPath::direct;
    case PATH_BUFFERED_READ:
      return model::IoPath::buffered_read;
    case PATH_WRITEBACK:
      return model::IoPath::writeback;
    case PATH_JOURNAL:
      return model::IoPath::journal;
    case PATH_METADATA:
      return model::IoPath::metadata;
    case PATH_SWAP:
      return model::IoPath::swap;
    case PATH_LOOP:
      return model::IoPath::loop;
    case PATH_STACKED:
      return model::IoPath::stacked;
    default:
      return model::IoPath::other;
  }
}

/// Takes as much of `waiting` as fits into `room`; its time in proportion.
model::AttributedTotals take(model::AttributedTotals& waiting, model::AttributedTotals& room) {
  model::AttributedTotals taken{std::min(waiting.ios, room.ios), std::min(waiting.bytes, room.bytes), 0};
  taken.device_ns = taken.ios == waiting.ios ? waiting.device_ns : waiting.device_ns / waiting.ios * taken.ios;
  waiting -= taken;
  room.ios -= taken.ios;
  room.bytes -= taken.bytes;
  return taken;
}

}  // namespace

void AttributionAccount::add(const AttributedIncrement& increment) {
  if (increment.operation == ATTRIBUTED_COMMIT) {
    published_.reset();
    (increment.owner ? totals_.commits[*increment.owner] : totals_.other_commits) += increment.totals.ios;
    return;
  }
  operations_[increment.operation].waiting[{increment.owner, increment.path}] += increment.totals;
}

void AttributionAccount::publish(std::size_t operation, const Owner& owner, Path path,
                                 const model::AttributedTotals& totals) {
  published_.reset();
  model::TotalsByOperation& of_owner = !owner                ? totals_.other
                                       : *owner == kDeparted ? totals_.departed
                                                             : totals_.cgroups[*owner];
  of_owner[operation] += totals;
  const model::IoAccess access = (path & PATH_RAW) != 0 ? model::IoAccess::raw : model::IoAccess::file;
  totals_.paths[static_cast<std::size_t>(path_of(path))][static_cast<std::size_t>(access)][operation] += totals;
  operations_[operation].published += totals;
}

/// Publishes what is waiting, as far as there is room.
void AttributionAccount::publish_all(std::size_t which, model::AttributedTotals room) {
  Operation& operation = operations_[which];
  for (auto entry = operation.waiting.begin(); entry != operation.waiting.end();) {
    const auto& [owner, path] = entry->first;
    const model::AttributedTotals taken = take(entry->second, room);
    if (!(taken == model::AttributedTotals{})) {
      publish(which, owner, path, taken);
    }
    entry = entry->second == model::AttributedTotals{} ? operation.waiting.erase(entry) : std::next(entry);
  }
  operation.waited = !operation.waiting.empty();
}

void AttributionAccount::leave_out(model::Operation which, std::uint64_t ios, std::uint64_t bytes) {
  Operation& operation = operations_[which];
  publish_all(list_index(which), {kAll, kAll, 0});
  operation.target = {ios, bytes, 0};
  operation.left_out = {ios - std::min(ios, operation.published.ios),
                        bytes - std::min(bytes, operation.published.bytes), 0};
}

void AttributionAccount::settle(model::Operation which, std::uint64_t ios, std::uint64_t bytes) {
  Operation& operation = operations_[which];
  const bool stood_still = operation.target.ios == ios && operation.target.bytes == bytes;
  operation.target = {ios, bytes, 0};
  if (operation.waiting.empty()) {
    return;
  }
  const std::uint64_t known_ios = operation.published.ios + operation.left_out.ios;
  const std::uint64_t known_bytes = operation.published.bytes + operation.left_out.bytes;
  model::AttributedTotals room{ios - std::min(ios, known_ios), bytes - std::min(bytes, known_bytes), 0};
  if (stood_still && operation.waited) {
    room = {kAll, kAll, 0};
  }
  publish_all(list_index(which), room);
}

void AttributionAccount::depart(model::CgroupId cgroup) {
  const auto move = [&](auto& by_cgroup, auto& departed) {
    if (const auto found = by_cgroup.find(cgroup); found != by_cgroup.end()) {
      departed(found->second);
      by_cgroup.erase(found);
      published_.reset();
    }
  };
  auto add_commits = [&](std::uint64_t commits) { totals_.departed_commits += commits; };
  auto add_totals = [&](const model::TotalsByOperation& totals) {
    for (std::size_t operation = 0; operation < totals.size(); ++operation) {
      totals_.departed[operation] += totals[operation];
    }
  };
  move(totals_.commits, add_commits);
  move(totals_.cgroups, add_totals);
  for (Operation& operation : operations_) {
    for (Path path = 0; path < PATH_CODES; ++path) {
      if (const auto found = operation.waiting.find({cgroup, path}); found != operation.waiting.end()) {
        operation.waiting[{kDeparted, path}] += found->second;
        operation.waiting.erase({cgroup, path});
      }
    }
  }
}

std::shared_ptr<const model::DeviceAttribution> AttributionAccount::published() {
  if (!published_) {
    published_ = std::make_shared<const model::DeviceAttribution>(totals_);
  }
  return published_;
}

}  // namespace ssdpulse::block
