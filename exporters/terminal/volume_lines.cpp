// SPDX-License-Identifier: Apache-2.0
// The stacks of an answer as lines: what is mounted from a volume, then, below it, what that lies on.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "exporters/terminal/top_answers.h"
#include "exporters/terminal/top_view.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

/// Of a volume's bios.
Tails bio_tails_from(const Json& of) {
  Tails tails;
  tails.ios_per_second = number(at(of, "ios_per_second")).value_or(0);
  tails.bytes_per_second = number(at(of, "bytes_per_second")).value_or(0);
  tails.p50 = number(at(of, "p50_seconds"));
  tails.p99 = number(at(of, "p99_seconds"));
  return tails;
}

/// In one word. What is bad and has no word here is what the daemon calls it: broken, inactive.
std::string state_from(const Json& layer, const std::string& health) {
  const std::string word = at(layer, "suspended") == true ? words::terminal::kSuspended
                           : number(at(layer, "missing_members")).value_or(0) > 0
                               ? words::terminal::kDegraded
                               : health.substr(0, health.find_first_of(",;"));
  return at(layer, "bad") == true ? "▲ " + word : word;
}

std::string joined(const std::vector<std::string>& all) {
  std::string list;
  for (const std::string& one : all) {
    list += (list.empty() ? "" : " ") + one;
  }
  return list;
}

std::string kind_from(const Json& json) {
  std::string kind = text(at(json, "kind"));
  std::replace(kind.begin(), kind.end(), '_', ' ');
  return kind;
}

/// `use`: what is mounted from it; empty: its title is what it is used for.
Volume volume_from(const Json& layer, const std::string& use) {
  Volume volume;
  volume.name = text(at(layer, "name"));
  const std::string title = text(at(layer, "title"));
  volume.use = use.empty() ? title : use;
  volume.kind = kind_from(layer);
  const std::string members = joined(texts(at(layer, "members")));
  volume.where = (use.empty() ? "" : title) + (members.empty() ? "" : " " + fmt::format(words::shared::kOn, members));
  volume.where.erase(0, volume.where.find_first_not_of(' '));
  volume.health = text(at(layer, "health"));
  volume.state = state_from(layer, volume.health);
  volume.bad = at(layer, "bad") == true;
  volume.measured = at(layer, "read").is_object();
  volume.read = bio_tails_from(at(layer, "read"));
  volume.write = bio_tails_from(at(layer, "write"));
  volume.added_seconds = number(at(layer, "added_latency_seconds"));
  return volume;
}

Volume drive_line(const Drive& drive) {
  Volume line;
  line.where = drive.cause.empty() ? drive.where : drive.cause;
  line.state = drive.state == "slow"   ? fmt::format("▲ {}", words::shared::kSlow)
               : drive.state == "high" ? fmt::format("△ {}", words::shared::kHigh)
                                       : "";
  line.bad = drive.state == "slow";
  line.measured = drive.measured;
  line.read = drive.read;
  line.write = drive.write;
  line.is_drive = true;
  return line;
}

/// Compressed or plain memory is not measured unless somebody asked for it.
bool is_of_interest(const Json& layer) {
  const std::string kind = text(at(layer, "kind"));
  return at(layer, "read").is_object() || (kind != "zram" && kind != "ramdisk");
}

class Lines {
 public:
  Lines(const Json& stacks, const Overview& overview) {
    for (const Json& layer : at(stacks, "layers")) {
      if (is_of_interest(layer)) {
        layers_.emplace(text(at(layer, "name")), &layer);
      }
    }
    for (const Drive& drive : overview.drives) {
      drives_.emplace(drive.name, &drive);
    }
    for (const Json& stack : at(stacks, "stacks")) {
      add(stack);
    }
    for (const auto& [name, layer] : layers_) {  // of stacks that are not listed
      if (!listed_.contains(name)) {
        stacks_.push_back({volume_from(*layer, joined(texts(at(*layer, "mountpoints"))))});
      }
    }
  }

  /// The worst stack first.
  std::vector<Volume> take() {
    std::stable_sort(stacks_.begin(), stacks_.end(), [](const auto& a, const auto& b) { return harm(a) > harm(b); });
    std::vector<Volume> lines;
    for (std::size_t stack = 0; stack < stacks_.size(); ++stack) {
      const std::string top = stacks_[stack].front().name;
      for (std::size_t i = 0; i < stacks_[stack].size(); ++i) {
        lines.push_back(std::move(stacks_[stack][i]));
        lines.back().stack = stack;
        lines.back().id = top + "/" + std::to_string(i);
      }
    }
    return lines;
  }

 private:
  static std::pair<bool, double> harm(const std::vector<Volume>& stack) {
    std::pair<bool, double> worst{false, -1};
    for (const Volume& line : stack) {
      const double slower = std::max(line.read.p99.value_or(-1), line.write.p99.value_or(-1));
      worst = {worst.first || line.bad, line.is_drive ? worst.second : std::max(worst.second, slower)};
    }
    return worst;
  }

  void add(const Json& stack) {
    const Json& places = at(stack, "places");
    std::string tops;
    std::size_t count = 0;
    bool has_layer = false;
    for (const Json& place : places) {
      const bool is_top = number(at(place, "floor")) == 0;
      count += is_top ? 1 : 0;
      tops += is_top ? " " + text(at(place, "name")) : "";
      has_layer = has_layer || layers_.contains(text(at(place, "name")));
    }
    const std::string mountpoint = text(at(stack, "mountpoint"));
    if (!has_layer) {
      return;
    }
    if (const auto [same, is_new] = by_tops_.emplace(tops, stacks_.size()); !is_new) {  // mounted at several places
      Volume& first = stacks_[same->second].front();
      (count > 1 ? first.name : first.use) += " " + mountpoint;
      return;
    }
    std::vector<Volume> lines;
    const std::size_t above = count > 1 ? 1 : 0;  // a line for what is mounted from several
    if (above > 0) {
      lines.emplace_back();
      lines.back().name = mountpoint;
      lines.back().kind = text(at(stack, "fstype"));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t depth = floor_of(element(places, i));
      std::string use = depth + above == 0 ? mountpoint : "";
      if (is_partition_of_drive(places, i)) {
        use = text(at(element(places, i++), "name"));
      }
      const Json& place = element(places, i);
      Volume line = line_of(text(at(place, "name")), use);
      line.kind = line.kind.empty() ? kind_from(place) : line.kind;
      line.depth = depth + above;
      for (const auto& [field, words] :
           {std::pair("shared", words::shared::kIsShared), std::pair("cut", words::shared::kMoreBelow)}) {
        line.where += at(place, field) == true ? (line.where.empty() ? "" : "; ") + std::string(words) : "";
      }
      listed_.insert(line.name);
      lines.push_back(std::move(line));
    }
    stacks_.push_back(std::move(lines));
  }

  static std::size_t floor_of(const Json& place) {
    return static_cast<std::size_t>(std::clamp(number(at(place, "floor")).value_or(0), 0.0, 64.0));
  }

  /// Both have one line then. A partition of an array keeps its own: figures are the array's.
  [[nodiscard]] bool is_partition_of_drive(const Json& places, std::size_t i) const {
    const Json& below = element(places, i + 1);
    return text(at(element(places, i), "kind")) == "partition" && floor_of(below) > floor_of(element(places, i)) &&
           !layers_.contains(text(at(below, "name")));
  }

  [[nodiscard]] Volume line_of(const std::string& name, const std::string& use) const {
    if (const auto layer = layers_.find(name); layer != layers_.end()) {
      return volume_from(*layer->second, use);
    }
    const auto drive = drives_.find(name);
    Volume line = drive == drives_.end() ? Volume() : drive_line(*drive->second);
    line.name = name;
    line.use = use;
    return line;
  }

  std::map<std::string, const Json*> layers_;
  std::map<std::string, const Drive*> drives_;
  std::map<std::string, std::size_t> by_tops_;
  std::vector<std::vector<Volume>> stacks_;
  std::set<std::string> listed_;
};

}  // namespace

Volumes volumes_from(const Json& stacks, const Overview& overview) {
  return {.volumes = Lines(stacks, overview).take(),
          .not_measured = text(at(stacks, "not_measured")),
          .left_out = number(at(stacks, "layers_left_out")).value_or(0)};
}

}  // namespace ssdpulse::terminal
