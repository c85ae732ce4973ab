// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/model_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"
#include "daemon/flash/binary_state.h"

namespace ssdpulse::flash {
namespace {

using model::FlashSilence;

constexpr mode_t kMode = 0600;  // which pages are followed is secret
constexpr std::string_view kBegin = "flash-";
constexpr std::string_view kStateEnd = ".state";
constexpr std::string_view kTemporaryEnd = ".new";

/// An NVMe drive that has not identified itself by then never will: it may be unreadable.
constexpr std::chrono::seconds kIdentifyTimeout{60};
/// A state of some megabytes is written only after enough host writes, of which it is half a percent at most.
constexpr std::uint64_t kWorthKeeping = 256;  // the host wrote 1/256 of the drive's bytes

util::Result<void> write_all(const std::string& path, std::string_view bytes) {
  const util::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file.valid()) {
    return util::fail_errno(path);
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return util::fail_errno(path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  // If the name reached the disk before the bytes, a crash of the host would leave a damaged state.
  return ::fdatasync(file.get()) == 0 ? util::Result<void>{} : util::fail_errno(path);
}

bool same_layout(const FlashDrive& a, const FlashDrive& b) {
  return a.key == b.key && a.namespaces == b.namespaces && a.page_bytes == b.page_bytes;
}

std::optional<FlashSilence> lasting_silence(const FlashDrive& drive) {
  FlashDriveFacts facts = drive.facts;
  facts.written_elsewhere = 0;  // that may end
  return silence_of(facts);
}

bool is_of(const FlashModelSettings& a, const FlashModelSettings& b) {
  return a.serial == b.serial && a.size_bytes == b.size_bytes && a.page_bytes == b.page_bytes;
}

}  // namespace

std::string StateFiles::path_of(const std::string& key) const {
  return fmt::format("{}/{}{:016x}{}", directory_, kBegin, checksum(key), kStateEnd);
}

util::Result<std::optional<std::string>> StateFiles::read(const std::string& key) const {
  if (!keeps()) {
    return std::nullopt;
  }
  auto bytes = util::read_file(path_of(key), kMaxBytes);
  if (bytes) {
    return std::optional(std::move(*bytes));
  }
  if (bytes.error().error_number == ENOENT) {
    return std::nullopt;
  }
  return tl::make_unexpected(bytes.error());
}

util::Result<void> StateFiles::write(const std::string& key, const std::string& bytes) const {
  if (!keeps()) {
    return {};
  }
  const std::string path = path_of(key);
  // Of this process alone: another one may be writing the same state.
  const std::string temporary = fmt::format("{}.{}{}", path, ::getpid(), kTemporaryEnd);
  std::error_code error;
  const bool known = std::filesystem::exists(path, error);
  auto written = write_all(temporary, bytes);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = util::fail_errno(path);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (!known) {
    tidy();
  }
  return util::sync_names(directory_);
}

void StateFiles::tidy() const {
  namespace fs = std::filesystem;
  std::error_code error;
  struct State {
    fs::file_time_type written;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<State> states;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kBegin)) {
      continue;
    }
    std::error_code gone;
    if (name.ends_with(kTemporaryEnd)) {
      fs::remove(at->path(), gone);
    } else if (name.ends_with(kStateEnd)) {
      const std::uint64_t bytes = at->file_size(gone);
      states.push_back({at->last_write_time(gone), gone ? 0 : bytes, at->path()});
    }
  }
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.written > b.written; });
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    bytes += states[i].bytes;
    if (i >= kMaxFiles || bytes > max_total_bytes_) {
      fs::remove(states[i].path, error);
    }
  }
}

ModelSet::ModelSet(ModelSettings settings)
    : settings_(std::move(settings)), files_(settings_.directory, 2 * settings_.memory_bytes) {
  if (files_.keeps()) {
    files_.tidy();
  }
}

void ModelSet::observe(const FlashInput& input) {
  const bool changed = adopt(input);
  if (changed) {
    plan(input);
  }
  distribute(input);
  if (evaluate_next(input) || changed) {
    describe();
  }
}

bool ModelSet::ready(const Entry& entry, std::chrono::nanoseconds at) const {
  return entry.drive.settled || at - entry.seen_at >= kIdentifyTimeout;
}

/// Whether the models have to be planned again.
bool ModelSet::adopt(const FlashInput& input) {
  bool changed = false;
  std::map<std::string, Entry> before = std::exchange(drives_, {});
  for (FlashDrive drive : input.drives) {
    drive.facts.wanted_though_virtual = settings_.virtual_too;
    auto known = before.extract(drive.name());
    if (!known.empty() && same_layout(known.mapped().drive, drive)) {
      Entry& entry = known.mapped();
      entry.drive = drive;
      changed = changed || lasting_silence(drive) != entry.lasting || ready(entry, input.at) != entry.was_ready;
      drives_.insert(std::move(known));
      continue;
    }
    if (!known.empty()) {
      end(known.mapped(), input.wall);
    }
    Entry entry;
    entry.drive = drive;
    entry.seen_at = input.at;
    drives_.emplace(drive.name(), std::move(entry));
    changed = true;
  }
  for (auto& [name, entry] : before) {
    end(entry, input.wall);
    changed = true;
  }
  for (auto& [name, entry] : drives_) {
    if (entry.model) {
      entry.model->know(entry.drive, input.wall);
    }
  }
  return changed;
}

FlashModelSettings ModelSet::settings_of(const FlashDrive& drive) const {
  FlashModelSettings result;
  result.serial = drive.key;
  for (const FlashNamespace& entry : drive.namespaces) {
    result.serial += '\n' + entry.made_as + ' ' + std::to_string(entry.size_bytes);
  }
  result.size_bytes = drive.facts.size_bytes;
  result.page_bytes = drive.page_bytes;
  result.what_ifs = default_what_ifs(usual_overprovisioning(drive.facts.size_bytes).likely);
  return result;
}

void ModelSet::plan(const FlashInput& input) {
  std::vector<FlashModelSettings> running;
  std::vector<FlashModelSettings> wanted;  // for the drives that come
  std::vector<Entry*> coming;
  for (auto& [name, entry] : drives_) {
    entry.lasting = entry.silence = lasting_silence(entry.drive);
    entry.was_ready = ready(entry, input.at);
    if (entry.silence) {
      end(entry, input.wall);
    } else if (entry.model) {
      running.push_back(entry.model->settings());
    } else if (entry.was_ready) {
      FlashModelSettings settings = settings_of(entry.drive);
      if (FlashModel::possible(settings_under({.what_ifs = 1, .rate_bits = settings_.rate_bits}, settings))) {
        wanted.push_back(std::move(settings));
        coming.push_back(&entry);
      } else {
        entry.silence = FlashSilence::too_small;
      }
    }
  }
  const ModelPlan plan = ModelBudget(settings_.memory_bytes, settings_.rate_bits).plan(wanted, running);
  for (auto& [name, entry] : drives_) {
    if (entry.model) {
      entry.model->keep_what_ifs(plan.what_ifs);
    }
  }
  for (std::size_t i = 0; i < coming.size(); ++i) {
    if (i < plan.drives) {
      make_model(*coming[i], settings_under(plan, wanted[i]), input);
    } else {
      coming[i]->silence = FlashSilence::no_memory;
    }
  }
  report_scale();
  auto sampling = std::make_shared<Sampling>();
  for (const auto& [name, entry] : drives_) {
    if (entry.model) {
      sampling->merge(entry.model->sampling());
    }
  }
  sampling_ = std::move(sampling);
}

/// Of the models as they are: what a model did not get, or lost, does not come back when there is memory again.
ModelScale ModelSet::scale() const {
  const ModelPlan unlimited = ModelBudget(settings_.memory_bytes, settings_.rate_bits).plan({});
  ModelScale result = ModelScale::all;
  for (const auto& [name, entry] : drives_) {
    if (entry.silence == FlashSilence::no_memory) {
      return ModelScale::fewer_drives;
    }
    if (entry.model) {
      const FlashModelSettings full = settings_under(unlimited, settings_of(entry.drive));
      const FlashModelSettings& has = entry.model->settings();
      if (has.rate_bits > full.rate_bits) {
        result = ModelScale::smaller_samples;
      } else if (has.what_ifs.size() < full.what_ifs.size()) {
        result = std::max(result, ModelScale::fewer_what_ifs);
      }
    }
  }
  return result;
}

void ModelSet::report_scale() {
  const ModelScale now = scale();
  if (now == scale_) {
    return;
  }
  std::uint64_t bytes = 0;
  std::size_t models = 0;
  for (const auto& [name, entry] : drives_) {
    if (entry.model) {
      bytes += FlashModel::memory_bytes(entry.model->settings());
      ++models;
    }
  }
  log::write(log::line(now > scale_ ? log::Level::warning : log::Level::info, "flash models",
                       log::field("scale", kModelScaleNames[static_cast<std::size_t>(now)]),
                       log::field("drives", models), log::field("memory_bytes", bytes),
                       log::field("limit_bytes", settings_.memory_bytes)));
  scale_ = now;
}

void ModelSet::make_model(Entry& entry, const FlashModelSettings& wanted, const FlashInput& input) {
  // A smaller sample than there is memory for is still resumed: restarting would cost days.
  const auto fits = [&](const FlashModelSettings& settings) {
    return is_of(settings, wanted) && settings.rate_bits >= wanted.rate_bits && FlashModel::possible(settings);
  };
  FlashModelSettings settings = wanted;
  if (auto state = kept(entry.drive)) {
    settings.seed = state->settings.seed;
    if (fits(state->settings)) {
      if (auto resumed = DriveModel::resume(entry.drive, *state, input.at, input.wall)) {
        entry.model = std::move(*resumed);
        entry.model->keep_what_ifs(wanted.what_ifs.size());
      } else {
        ++states_rejected_;
        log::warning("flash model of {} restarts: {}: {}", entry.drive.name(), files_.path_of(entry.drive.key),
                     resumed.error().message);
      }
    } else {
      log::info("flash model of {} restarts: its namespaces, page or sample have changed", entry.drive.name());
    }
  } else {
    settings.seed = settings_.make_seed();
  }
  if (!entry.model) {
    entry.model = std::make_unique<DriveModel>(entry.drive, settings);
  }
  entry.model->know(entry.drive, input.wall);
  entry.evaluate_at = input.at;
  entry.keep_at = input.at + settings_.keep_interval;
  entry.kept_bytes = 0;
}

std::optional<DriveState> ModelSet::kept(const FlashDrive& drive) {
  if (!drive.has_lasting_key) {
    return std::nullopt;
  }
  const std::string& key = drive.key;
  const auto bytes = files_.read(key);
  if (bytes && !*bytes) {
    return std::nullopt;
  }
  auto state = bytes ? read_state(**bytes, key) : util::Result<DriveState>(tl::make_unexpected(bytes.error()));
  if (state) {
    return std::move(*state);
  }
  ++states_rejected_;
  log::warning("flash model restarts: {}: {}", files_.path_of(key), state.error().message);
  return std::nullopt;
}

void ModelSet::distribute(const FlashInput& input) {
  std::map<std::string, DriveModel*> models;  // by device
  for (auto& [name, entry] : drives_) {
    if (entry.model) {
      for (const auto& [device, wanted] : entry.model->sampling()) {
        const auto in_force = input.sampling ? input.sampling->find(device) : Sampling::const_iterator{};
        if (input.sampling && in_force != input.sampling->end() && in_force->second == wanted) {
          models.emplace(device, entry.model.get());
        }
      }
    }
  }
  const auto model_of = [&models](const std::string& device) {
    const auto found = models.find(device);
    return found == models.end() ? nullptr : found->second;
  };
  for (const auto& [device, events] : input.overflowed) {
    overflowed_ += std::accumulate(events.begin(), events.end(), std::uint64_t{0});
    if (DriveModel* const model = model_of(device)) {
      model->count_lost(events);
    }
  }
  if (input.samples) {
    std::erase_if(totals_, [&](const auto& entry) {
      return std::none_of(input.samples->devices.begin(), input.samples->devices.end(),
                          [&](const model::DeviceFlashSamples& device) { return device.device == entry.first; });
    });
    std::vector<DriveModel*> by_index;
    for (const model::DeviceFlashSamples& device : input.samples->devices) {
      by_index.push_back(model_of(device.device));
      const model::DeviceFlashSamples since = since_last_tick(device);
      if (by_index.back() != nullptr) {
        by_index.back()->count(since);
      }
    }
    for (const model::FlashEvent& event : input.samples->events) {
      if (event.device < by_index.size() && by_index[event.device] != nullptr) {
        by_index[event.device]->collect(event);
      }
    }
  }
  for (auto& [name, entry] : drives_) {
    if (entry.model) {
      entry.model->end_tick(input.at);
    }
  }
}

/// Also for disks without a model: a later model must not take what was counted before it.
model::DeviceFlashSamples ModelSet::since_last_tick(const model::DeviceFlashSamples& now) {
  model::DeviceFlashSamples& before = totals_[now.device];
  if (before.sampling != now.sampling) {
    before = {now.device, now.sampling, {}, {}};
  }
  model::DeviceFlashSamples result = now;
  for (std::size_t hint = 0; hint < now.written.size(); ++hint) {
    result.written[hint] -= before.written[hint];
  }
  for (std::size_t kind = 0; kind < now.lost.size(); ++kind) {
    result.lost[kind] -= before.lost[kind];
  }
  before = now;
  return result;
}

/// Whether a model was evaluated: that takes milliseconds, so at most one per tick, the one that has waited longest.
bool ModelSet::evaluate_next(const FlashInput& input) {
  Entry* next = nullptr;
  for (auto& [name, entry] : drives_) {
    if (entry.model && input.at >= entry.evaluate_at && (next == nullptr || entry.evaluate_at < next->evaluate_at)) {
      next = &entry;
    }
  }
  if (next != nullptr) {
    next->model->evaluate(input.wall);
    next->evaluate_at = input.at + settings_.evaluation_interval;
  }
  for (auto& [name, entry] : drives_) {
    if (entry.model && input.at >= entry.keep_at) {
      entry.keep_at = input.at + settings_.keep_interval;
      if (entry.model->written_bytes() - entry.kept_bytes >= entry.model->settings().size_bytes / kWorthKeeping) {
        keep(entry, input.wall);
        break;
      }
    }
  }
  return next != nullptr;
}

void ModelSet::keep(Entry& entry, model::WallTime wall) {
  if (!entry.model || !files_.keeps() || !entry.drive.has_lasting_key) {
    return;
  }
  entry.kept_bytes = entry.model->written_bytes();
  if (const auto kept = files_.write(entry.drive.key, bytes_of(entry.model->state(wall))); !kept) {
    ++state_failures_;
    log::warning("flash model of {} not kept: {}", entry.drive.name(), kept.error().message);
  }
}

/// Its losses still count: a drive's total never falls.
void ModelSet::end(Entry& entry, model::WallTime wall) {
  if (!entry.model) {
    return;
  }
  keep(entry, wall);
  const model::FlashEstimate last = entry.model->estimate();
  if (last.lost_writes + last.lost_discards > 0) {
    Lost& lost = lost_before_[entry.drive.key];
    lost.writes += last.lost_writes;
    lost.discards += last.lost_discards;
  }
  entry.model.reset();
}

void ModelSet::keep_all(model::WallTime wall) {
  for (auto& [name, entry] : drives_) {
    keep(entry, wall);
  }
}

void ModelSet::describe() {
  auto figures = std::make_shared<model::FlashFigures>();
  figures->scale = kModelScaleNames[static_cast<std::size_t>(scale_)];
  figures->memory_limit_bytes = settings_.memory_bytes;
  figures->overflowed_events = overflowed_;
  figures->states_rejected = states_rejected_;
  figures->state_failures = state_failures_;
  for (const auto& [name, entry] : drives_) {
    if (entry.model) {
      figures->memory_bytes += FlashModel::memory_bytes(entry.model->settings());
      figures->drives.push_back(entry.model->estimate());
    } else if (entry.silence) {
      model::FlashEstimate silent;
      silent.controller = entry.drive.controller;
      for (const FlashNamespace& name_space : entry.drive.namespaces) {
        silent.devices.push_back(name_space.device);
      }
      silent.size_bytes = entry.drive.facts.size_bytes;
      silent.page_bytes = entry.drive.page_bytes;
      silent.silence = entry.silence;
      figures->drives.push_back(std::move(silent));
    } else {
      continue;
    }
    if (const auto lost = lost_before_.find(entry.drive.key); lost != lost_before_.end()) {
      figures->drives.back().lost_writes += lost->second.writes;
      figures->drives.back().lost_discards += lost->second.discards;
    }
  }
  figures_ = std::move(figures);
}

}  // namespace ssdpulse::flash
