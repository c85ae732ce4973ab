// SPDX-License-Identifier: Apache-2.0
#include "tests/ticks/tick_recording.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ssdpulse::ticks {
namespace {

using Json = nlohmann::json;

/// Values of one device that change from tick to tick. The same object stands for what was seen and for what is read.
struct DeviceCounters {
  model::DeviceIo io;
  model::DeviceAttribution attribution;
  model::KernelInFlight kernel_in_flight;
  std::uint64_t has_io = 0, has_attribution = 0, has_kernel_in_flight = 0;
  std::uint64_t last_discard_end_ns = 0, kernel_account = 0;
  std::int64_t since_us = 0;
};

/// Visits the counters by name: f(name, integer, unit). Values are kept in whole units.
template <typename F>
void visit_operation(const std::string& name, model::OperationIo& io, F&& f) {
  f(name + ".issues", io.issues, 1);
  f(name + ".completions", io.completions, 1);
  f(name + ".untimed", io.untimed, 1);
  f(name + ".bytes", io.bytes, 1);
  f(name + ".unissued_completions", io.unissued_completions, 1);
  f(name + ".sequential_bytes", io.sequential_bytes, 1);
  f(name + ".queue_full_us", io.queue_full_ns, 1000);
  f(name + ".in_flight", io.in_flight, 1);
  for (std::size_t i = 0; i < model::kRequeueReasons; ++i) {
    f(fmt::format("{}.requeues.{}", name, model::kRequeueReasonNames[i]), io.requeues[i], 1);
  }
  for (std::size_t i = 0; i < model::kIoErrors; ++i) {
    f(fmt::format("{}.errors.{}", name, model::kIoErrorNames[i]), io.errors[i], 1);
  }
}

void attributed(const std::string& name, model::TotalsByOperation& totals, auto&& f) {
  for (std::size_t i = 0; i < model::kAttributedOperations.size(); ++i) {
    const std::string prefix = fmt::format("{}.{}", name, model::name(model::kAttributedOperations[i]));
    f(prefix + ".ios", totals[i].ios, 1);
    f(prefix + ".bytes", totals[i].bytes, 1);
    f(prefix + ".device_us", totals[i].device_ns, 1000);
  }
}

/// h(name, words, size, sum) for each histogram.
void visit_histograms(model::DeviceIo& io, auto&& h) {
  const auto latency = [&](const std::string& name, model::LatencyHistogram& histogram) {
    h(name, histogram.words, std::size_t{LATENCY_OVER_WORD} + 1, histogram.sum_ns, 1000);
  };
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    model::OperationIo& operation = io.operations[i];
    const std::string name(model::kOperationNames[i]);
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      latency(fmt::format("{}.device_latency.{}", name, model::kDuringNames[during]), operation.device_latency[during]);
    }
    latency(name + ".queue_latency", operation.queue_latency);
    latency(name + ".total_latency", operation.total_latency);
    h(name + ".size", operation.size.words, std::size_t{SIZE_WORDS}, operation.size.sum_bytes, 1);
  }
  latency("commit_latency", io.commit_latency);
}

void visit_scalars(DeviceCounters& device, auto&& f) {
  f("has_io", device.has_io, 1);
  f("has_attribution", device.has_attribution, 1);
  f("has_kernel_in_flight", device.has_kernel_in_flight, 1);
  f("kernel_in_flight.reads", device.kernel_in_flight.reads, 1);
  f("kernel_in_flight.writes", device.kernel_in_flight.writes, 1);
  f("last_discard_end_us", device.last_discard_end_ns, 1000);
  f("kernel_account", device.kernel_account, 1);
  f("since_us", device.since_us, 1);
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    visit_operation(std::string(model::kOperationNames[i]), device.io.operations[i], f);
  }
  for (std::size_t i = 0; i < model::kLosses; ++i) {
    f(fmt::format("losses.{}", model::kLossNames[i]), device.io.losses[i], 1);
  }
  for (std::size_t i = 0; i < model::kWriteClasses; ++i) {
    f(fmt::format("writes.{}", model::kWriteClassNames[i]), device.io.writes.class_bytes[i], 1);
  }
  attributed("departed", device.attribution.departed, f);
  attributed("other", device.attribution.other, f);
  f("departed.commits", device.attribution.departed_commits, 1);
  f("other.commits", device.attribution.other_commits, 1);
  for (std::size_t path = 0; path < model::kIoPaths; ++path) {
    for (std::size_t access = 0; access < model::kIoAccesses; ++access) {
      attributed(fmt::format("path.{}.{}", model::kIoPathNames[path], model::kIoAccessNames[access]),
                 device.attribution.paths[path][access], f);
    }
  }
}

void visit_cgroup(model::CgroupId id, model::DeviceAttribution& attribution, auto&& f) {
  attributed(fmt::format("cgroup.{}", id), attribution.cgroups[id], f);
  f(fmt::format("cgroup.{}.commits", id), attribution.commits[id], 1);
}

void visit_submissions(model::DiscardSubmitters& submitters, auto&& f) {
  for (std::size_t i = 0; i < model::kDiscardSubmitters; ++i) {
    const std::string name = std::to_string(i);
    f(name + ".ranges", submitters[i].ranges, 1);
    f(name + ".bytes", submitters[i].bytes, 1);
    f(name + ".first_us", submitters[i].first_ns, 1000);
    f(name + ".last_us", submitters[i].last_ns, 1000);
  }
}

std::int64_t microseconds(auto duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

DeviceCounters counters_of(const model::DeviceTick& device) {
  DeviceCounters counters;
  if (device.block.io) {
    counters.has_io = 1;
    counters.io = *device.block.io;
    counters.since_us = microseconds(counters.io.since.time_since_epoch());
  }
  if (device.block.attribution) {
    counters.has_attribution = 1;
    counters.attribution = *device.block.attribution;
  }
  if (device.kernel_in_flight) {
    counters.has_kernel_in_flight = 1;
    counters.kernel_in_flight = *device.kernel_in_flight;
  }
  counters.last_discard_end_ns = device.block.last_discard_end_ns;
  counters.kernel_account = device.kernel_account;
  return counters;
}

/// Without the cgroups whose counts have moved to `departed`.
model::DeviceAttribution present(model::DeviceAttribution attribution) {
  std::erase_if(attribution.commits, [](const auto& one) { return one.second == 0; });
  std::erase_if(attribution.cgroups, [&](const auto& one) {
    return one.second == model::TotalsByOperation{} && !attribution.commits.contains(one.first);
  });
  return attribution;
}

Json json_of(const model::Inventory& inventory) {
  Json json{{"devices", Json::array()},
            {"memberships", Json::array()},
            {"volumes", Json::array()},
            {"filesystems", Json::array()}};
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::excluded || device.coverage == model::Coverage::empty) {
      continue;
    }
    Json paths = Json::array();
    for (const model::Path& path : device.paths) {
      paths.push_back({path.disk_name, path.hardware_queues, path.queue_depth, path.diskseq});
    }
    json["devices"].push_back({{"name", device.name},
                               {"major", device.major},
                               {"minor", device.minor},
                               {"coverage", model::index(device.coverage)},
                               {"paths", paths},
                               {"model", util::for_history(device.model)},
                               {"serial", util::for_history(device.serial)},
                               {"transport", device.transport},
                               {"scheduler", device.scheduler},
                               {"size_bytes", device.size_bytes},
                               {"rotational", device.rotational},
                               {"write_back_cache", device.write_back_cache},
                               {"discard", device.discard},
                               {"iostats", device.iostats}});
  }
  for (const model::Membership& one : inventory.memberships) {
    json["memberships"].push_back({one.array, one.device, one.kind, util::for_history(one.name)});
  }
  for (const model::Volume& one : inventory.volumes) {
    json["volumes"].push_back({one.name, one.major, one.minor, one.device, one.carries_array});
  }
  for (const model::Filesystem& one : inventory.filesystems) {
    Json options = Json::array();
    for (const util::OutsideText& option : one.options) {
      options.push_back(util::for_history(option));
    }
    json["filesystems"].push_back({one.device, util::for_history(one.mountpoint), util::for_history(one.fstype),
                                   one.discard, one.volumes, options});
  }
  return json;
}

model::Inventory inventory_of(const Json& json) {
  model::Inventory inventory;
  for (const Json& from : json.at("devices")) {
    model::Device device;
    device.name = from.at("name");
    device.major = from.at("major");
    device.minor = from.at("minor");
    device.coverage = static_cast<model::Coverage>(from.at("coverage").get<int>());
    for (const Json& path : from.at("paths")) {
      device.paths.push_back({path[0], path[1], path[2], path[3]});
    }
    device.model = from.at("model").get<std::string>();
    device.serial = from.at("serial").get<std::string>();
    device.transport = from.at("transport");
    device.scheduler = from.at("scheduler");
    device.size_bytes = from.at("size_bytes");
    device.rotational = from.at("rotational");
    device.write_back_cache = from.at("write_back_cache");
    device.discard = from.at("discard");
    device.iostats = from.at("iostats");
    inventory.devices.push_back(std::move(device));
  }
  for (const Json& one : json.at("memberships")) {
    inventory.memberships.push_back({one[0], one[1], one[2], one[3].get<std::string>()});
  }
  for (const Json& one : json.at("volumes")) {
    inventory.volumes.push_back({one[0], one[1], one[2], one[3], one[4]});
  }
  for (const Json& one : json.at("filesystems")) {
    const auto options = one[5].get<std::set<std::string>>();
    inventory.filesystems.push_back({one[0],
                                     one[1].get<std::string>(),
                                     one[2].get<std::string>(),
                                     one[3],
                                     one[4],
                                     {options.begin(), options.end()}});
  }
  return inventory;
}

Json json_of(const model::Tick& tick) {
  Json tenants = Json::array();
  if (tick.tenants) {
    for (const auto& [id, tenant] : *tick.tenants) {
      tenants.push_back({id, tenant.name, model::index(tenant.kind), util::for_history(tenant.cgroup)});
    }
  }
  return {{"tenants", tenants}, {"io_accounting", model::index(tick.io_accounting)}};
}

/// What has been read so far.
class Reader {
 public:
  explicit Reader(const std::string& file) {
    const gzFile opened = gzopen(file.c_str(), "rb");
    if (opened == nullptr) {
      throw std::runtime_error("cannot read " + file);
    }
    std::string text;
    std::array<char, 65536> buffer{};
    int got = 0;
    while ((got = gzread(opened, buffer.data(), buffer.size())) > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    gzclose(opened);
    if (got < 0) {
      throw std::runtime_error("damaged: " + file);
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      take(line);
    }
  }
  std::vector<model::Tick> ticks;

 private:
  using Add = std::function<void(std::int64_t)>;

  void take(const std::string& line) {
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    std::istringstream words(rest);
    switch (line.empty() ? ' ' : line.front()) {
      case 'I':
        inventory_ = std::make_shared<const model::Inventory>(inventory_of(Json::parse(rest)));
        break;
      case 'U':
        take_tenants(Json::parse(rest));
        break;
      case 'D':
        names_.clear();
        for (std::string name; words >> name;) {
          names_.push_back(name);
        }
        break;
      case 'N':
        adders_.push_back(adder(rest));
        break;
      case 'S': {
        std::string volume;
        std::size_t number = 0;
        words >> volume >> number;
        std::string submitter;
        std::getline(words >> std::ws, submitter);
        discards_[volume].at(number).submitter = submitter;
        break;
      }
      case 'T':
        take_tick(words);
        break;
      default:
        throw std::runtime_error("unknown line: " + line);
    }
  }

  void take_tenants(const Json& json) {
    auto tenants = std::make_shared<model::Tenants>();
    auto cgroups = std::make_shared<model::SeenCgroups>();
    for (const Json& one : json.at("tenants")) {
      const model::CgroupId id = one[0];
      tenants->emplace(
          id, model::Tenant{one[1], static_cast<model::TenantKind>(one[2].get<int>()), one[3].get<std::string>()});
      cgroups->emplace(id, model::SeenCgroup{});
    }
    tenants_ = std::move(tenants);
    cgroups_ = std::move(cgroups);
    accounting_ = static_cast<model::IoAccounting>(json.at("io_accounting").get<int>());
  }

  /// What adds to the counter of that name: KIND/OWNER/COUNTER.
  Add adder(const std::string& name) {
    const std::size_t first = name.find('/');
    const std::size_t second = name.find('/', first + 1);
    const std::string kind = name.substr(0, first);
    const std::string owner = name.substr(first + 1, second - first - 1);
    const std::string counter = name.substr(second + 1);
    Add found;
    const auto apply = [&](const std::string& one, auto& value, int unit) {
      if (one == counter) {
        found = [&value, unit](std::int64_t change) {
          value =
              static_cast<std::remove_reference_t<decltype(value)>>(static_cast<std::int64_t>(value) + change * unit);
        };
      }
    };
    if (kind == "volume") {
      visit_submissions(discards_[owner], apply);
    } else {
      DeviceCounters& device = devices_[owner];
      if (counter.starts_with("cgroup.")) {
        visit_cgroup(std::stoull(counter.substr(7)), device.attribution, apply);
      } else {
        visit_scalars(device, apply);
        visit_histograms(device.io,
                         [&](const std::string& histogram, auto& words, std::size_t size, auto& sum, int unit) {
                           apply(histogram + ".sum", sum, unit);
                           if (counter.starts_with(histogram + ".") && counter != histogram + ".sum") {
                             words.resize(size);
                             apply(counter, words.at(std::stoul(counter.substr(histogram.size() + 1))), 1);
                           }
                         });
      }
    }
    if (!found) {
      throw std::runtime_error("no counter " + name);
    }
    return found;
  }

  void take_tick(std::istringstream& words) {
    std::int64_t wall = 0, steady = 0, boot = 0, change = 0;
    words >> wall >> steady >> boot;
    wall_us_ += wall;
    steady_us_ += steady;
    boot_us_ += boot;
    for (std::size_t number = 0; words >> number >> change;) {
      adders_.at(number)(change);
    }
    using std::chrono::microseconds;
    model::Tick tick;
    tick.wall = model::WallTime(microseconds(wall_us_));
    tick.at = model::SteadyTime(microseconds(steady_us_));
    tick.boot = microseconds(boot_us_);
    tick.inventory = inventory_;
    for (const std::string& name : names_) {
      tick.devices.push_back(device_of(name));
    }
    tick.discards = discards_;
    tick.cgroups = cgroups_;
    tick.tenants = tenants_;
    tick.io_accounting = accounting_;
    ticks.push_back(std::move(tick));
  }

  model::DeviceTick device_of(const std::string& name) {
    const DeviceCounters& counters = devices_[name];
    model::DeviceTick device;
    const auto& all = inventory_->devices;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (found == all.end()) {
      throw std::runtime_error("not in the inventory: " + name);
    }
    device.block.device = std::shared_ptr<const model::Device>(inventory_, &*found);
    if (counters.has_io != 0) {
      auto io = std::make_shared<model::DeviceIo>(counters.io);
      io->since = model::WallTime(std::chrono::microseconds(counters.since_us));
      for (model::OperationIo& operation : io->operations) {
        operation.active = operation.issues + operation.completions + operation.unissued_completions > 0;
      }
      device.block.io = std::move(io);
    }
    if (counters.has_attribution != 0) {
      device.block.attribution = std::make_shared<const model::DeviceAttribution>(present(counters.attribution));
    }
    if (counters.has_kernel_in_flight != 0) {
      device.kernel_in_flight = counters.kernel_in_flight;
    }
    device.block.last_discard_end_ns = counters.last_discard_end_ns;
    device.kernel_account = counters.kernel_account;
    return device;
  }

  std::shared_ptr<const model::Inventory> inventory_ = std::make_shared<const model::Inventory>();
  std::shared_ptr<const model::Tenants> tenants_;
  std::shared_ptr<const model::SeenCgroups> cgroups_;
  model::IoAccounting accounting_ = model::IoAccounting::unknown;
  std::vector<std::string> names_;
  std::map<std::string, DeviceCounters> devices_;
  std::map<std::string, model::DiscardSubmitters> discards_;
  std::vector<Add> adders_;
  std::int64_t wall_us_ = 0, steady_us_ = 0, boot_us_ = 0;
};

}  // namespace

Writer::Writer(const std::string& file) : file_(gzopen(file.c_str(), "wb9")) {
  if (file_ == nullptr) {
    throw std::runtime_error("cannot write " + file);
  }
}

Writer::~Writer() { gzclose(static_cast<gzFile>(file_)); }

void Writer::line(const std::string& text) {
  if (gzputs(static_cast<gzFile>(file_), (text + '\n').c_str()) < 0) {
    throw std::runtime_error("cannot write the recording");
  }
}

void Writer::line_if_new(const std::string& key, const std::string& text) {
  if (std::string& last = lines_[key]; last != text) {
    last = text;
    line(text);
  }
}

void Writer::add(const model::Tick& tick) {
  line_if_new("I", "I " + json_of(*tick.inventory).dump());
  line_if_new("U", "U " + json_of(tick).dump());
  std::string names = "D";
  std::map<std::size_t, std::int64_t> changes;
  std::string prefix;
  const auto see = [&](const std::string& counter, const auto& value, int unit) {
    const auto now = static_cast<std::int64_t>(value) / unit;
    const std::string name = prefix + counter;
    auto found = counters_.find(name);
    if (found == counters_.end()) {
      if (now == 0) {
        return;
      }
      found = counters_.emplace(name, Counter{counters_.size()}).first;
      line("N " + name);
    }
    if (const std::int64_t change = now - std::exchange(found->second.value, now); change != 0) {
      changes[found->second.number] = change;
    }
  };
  for (const model::DeviceTick& device : tick.devices) {
    const std::string& name = device.block.device->name;
    names += " " + name;
    prefix = "device/" + name + "/";
    DeviceCounters counters = counters_of(device);
    visit_scalars(counters, see);
    std::set<model::CgroupId>& cgroups = cgroups_[name];
    for (const auto& [id, totals] : counters.attribution.cgroups) {
      cgroups.insert(id);
    }
    for (const auto& [id, commits] : counters.attribution.commits) {
      cgroups.insert(id);
    }
    for (const model::CgroupId id : cgroups) {
      visit_cgroup(id, counters.attribution, see);
    }
    visit_histograms(counters.io, [&](const std::string& histogram, auto& words, std::size_t, auto& sum, int unit) {
      see(histogram + ".sum", sum, unit);
      for (std::size_t i = 0; i < words.size(); ++i) {
        see(fmt::format("{}.{}", histogram, i), words[i], 1);
      }
    });
  }
  line_if_new("D", names);
  for (const auto& [volume, seen] : tick.discards) {
    prefix = "volume/" + volume + "/";
    model::DiscardSubmitters submitters = seen;
    visit_submissions(submitters, see);
    for (std::size_t i = 0; i < submitters.size(); ++i) {
      if (submitters[i].ranges > 0) {
        line_if_new(fmt::format("S {} {}", volume, i),
                    fmt::format("S {} {} {}", volume, i, util::for_log(submitters[i].submitter)));
      }
    }
  }
  const std::int64_t wall = microseconds(tick.wall.time_since_epoch());
  const std::int64_t steady = microseconds(tick.at.time_since_epoch());
  const std::int64_t boot = microseconds(tick.boot);
  std::string text = fmt::format("T {} {} {}", wall - std::exchange(wall_us_, wall),
                                 steady - std::exchange(steady_us_, steady), boot - std::exchange(boot_us_, boot));
  for (const auto& [number, change] : changes) {
    text += fmt::format(" {} {}", number, change);
  }
  line(text);
  gzflush(static_cast<gzFile>(file_), Z_NO_FLUSH);
}

std::vector<model::Tick> read(const std::string& file) { return std::move(Reader(file).ticks); }

}  // namespace ssdpulse::ticks
