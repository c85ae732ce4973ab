// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

constexpr double kFull = 0.01;  // the free share of the file system

Findings history_directory(const Start& start) {
  const auto& place = start.host.history_directory;
  if (!place) {
    return {finding(model::Verdict::info, "", "no history would be kept", "history.directory is empty")};
  }
  if (!place->answers) {
    return {finding(model::Verdict::unknown, "", "whether a history can be kept",
                    "the file system of " + place->path + " does not answer", "check its server or its disk")};
  }
  if (!place->exists) {
    return {finding(model::Verdict::info, "", "there is no history yet", place->path + " is not there",
                    "started by systemd or by root, the daemon makes it")};
  }
  if (!place->directory) {
    return {finding(model::Verdict::advise, "", "no history could be kept", place->path + " is not a directory",
                    "name a directory in history.directory")};
  }
  if (!place->writable) {
    return {finding(model::Verdict::unknown, "", "whether a history can be kept",
                    "this user may not write to " + place->path, "ask as root")};
  }
  if (place->free_ratio.value_or(1) < kFull) {
    auto one = finding(model::Verdict::advise, "", "the history has no room",
                       fmt::format("the file system of {} is full", place->path), "make room there");
    one.evidence = {{"free_ratio", *place->free_ratio}};
    return {one};
  }
  return {};
}

}  // namespace

const HostCheck kHistoryDirectory{"history-directory", "the history has a place", history_directory};

}  // namespace ssdpulse::doctor
