// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "daemon/advice/doctor.h"
#include "daemon/base/confinement.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"
#include "daemon/base/service_manager.h"
#include "daemon/history/history.h"
#include "daemon/history/history_reader.h"
#include "daemon/history/recent_past.h"
#include "daemon/host/inventory.h"
#include "daemon/host/probe.h"
#include "daemon/host/uevent_monitor.h"
#include "daemon/model/metric_groups.h"
#include "daemon/model/version.h"
#include "daemon/nvme/drive_monitor.h"
#include "daemon/runtime/audit_watch.h"
#include "daemon/runtime/publisher.h"
#include "daemon/runtime/sampler.h"
#include "daemon/serve/current_snapshot.h"
#include "daemon/serve/history_routes.h"
#include "daemon/serve/page_routes.h"
#include "daemon/serve/web_server.h"
#include "daemon/tenants/tenant_key.h"
#include "exporters/page/page_site.h"
#include "exporters/prometheus/metrics_page.h"

namespace ssdpulse::runtime {
namespace {

/// What woke the daemon.
struct Wakeup {
  std::uint64_t ticks = 0;  // due since the last wake-up; more than one: some were missed
  bool late = false;        // the tick came more than half an interval after it was due
  bool disks_changed = false;
  bool mounts_changed = false;
  bool reload = false;    // SIGHUP
  bool stop = false;      // SIGTERM, SIGINT
  bool answered = false;  // the watched descriptor can be read
};

/// A second's tick, a signal, a change of disks or mounts, an answer, a deadline: one thread waits for all of them in
/// one place; nothing else in the daemon sleeps.
class Events {
 public:
  /// Blocks SIGTERM, SIGINT and SIGHUP (and ignores SIGPIPE) for this thread and all that it starts later.
  static util::Result<Events> open(std::chrono::nanoseconds tick);

  /// Sleeps until something happens, or until the deadline (CLOCK_MONOTONIC). `watched`: one more descriptor to wait
  /// for.
  Wakeup wait(int watched = -1, std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

 private:
  Events(util::UniqueFd signals, util::UniqueFd timer, util::UniqueFd mounts,
         std::optional<host::UeventMonitor> uevents, std::chrono::nanoseconds tick);

  util::UniqueFd signals_;
  util::UniqueFd timer_;
  util::UniqueFd mounts_;                       // /proc/self/mountinfo: POLLPRI when it changes
  std::optional<host::UeventMonitor> uevents_;  // absent in a network namespace without them
  std::chrono::nanoseconds tick_;
  std::chrono::nanoseconds next_due_;  // CLOCK_MONOTONIC
};

std::chrono::nanoseconds monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

timespec to_timespec(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), (time - seconds).count()};
}

util::Result<util::UniqueFd> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return util::fail_errno("cannot block signals", error);
  }
  signal(SIGPIPE, SIG_IGN);
  util::UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  return fd.valid() ? util::Result<util::UniqueFd>(std::move(fd)) : util::fail_errno("cannot wait for signals");
}

/// For poll(2): rounded up, so that the deadline has passed afterwards; -1 without one.
int milliseconds_until(std::optional<std::chrono::steady_clock::time_point> deadline) {
  if (!deadline) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

Events::Events(util::UniqueFd signals, util::UniqueFd timer, util::UniqueFd mounts,
               std::optional<host::UeventMonitor> uevents, std::chrono::nanoseconds tick)
    : signals_(std::move(signals)),
      timer_(std::move(timer)),
      mounts_(std::move(mounts)),
      uevents_(std::move(uevents)),
      tick_(tick),
      next_due_(monotonic_now() + tick) {
  itimerspec schedule{};
  schedule.it_interval = to_timespec(tick_);
  schedule.it_value = to_timespec(next_due_);
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &schedule, nullptr);
}

util::Result<Events> Events::open(std::chrono::nanoseconds tick) {
  auto signals = open_signals();
  if (!signals) {
    return tl::make_unexpected(signals.error());
  }
  util::UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) {
    return util::fail_errno("cannot create a timer");
  }
  util::UniqueFd mounts(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  std::optional<host::UeventMonitor> uevents;
  if (auto monitor = host::UeventMonitor::open()) {
    uevents = std::move(*monitor);
  }
  return Events(std::move(*signals), std::move(timer), std::move(mounts), std::move(uevents), tick);
}

Wakeup Events::wait(int watched, std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::array<pollfd, 5> waits{{{signals_.get(), POLLIN, 0},
                               {timer_.get(), POLLIN, 0},
                               {mounts_.get(), POLLPRI, 0},
                               {uevents_ ? uevents_->fd() : -1, POLLIN, 0},
                               {watched, POLLIN, 0}}};
  Wakeup wakeup;
  if (poll(waits.data(), waits.size(), milliseconds_until(deadline)) < 0) {
    return wakeup;  // EINTR: the caller just waits again
  }
  signalfd_siginfo received{};
  while (read(signals_.get(), &received, sizeof(received)) == sizeof(received)) {
    wakeup.reload = wakeup.reload || received.ssi_signo == SIGHUP;
    wakeup.stop = wakeup.stop || received.ssi_signo != SIGHUP;
  }
  std::uint64_t expirations = 0;
  if (read(timer_.get(), &expirations, sizeof(expirations)) == sizeof(expirations)) {
    wakeup.ticks = expirations;
    next_due_ += tick_ * static_cast<std::int64_t>(expirations);
    wakeup.late = monotonic_now() - (next_due_ - tick_) > tick_ / 2;
  }
  wakeup.mounts_changed = (waits[2].revents & (POLLPRI | POLLERR)) != 0;
  wakeup.disks_changed = uevents_ && (waits[3].revents & POLLIN) != 0 && uevents_->drain();
  wakeup.answered = (waits[4].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  return wakeup;
}

constexpr std::chrono::seconds kTick{1};

ExitCode exit_with(ExitCode code, const std::string& problem) {
  log::error("{}", problem);
  return code;
}

void log_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    log::error("{}", problem);
  }
}

host::DeviceFilter filter_of(const config::Config& config) { return {config.devices.include, config.devices.exclude}; }

block::BlockChoices choices_of(const config::Config& config) {
  block::BlockChoices choices;
  choices.completion_only = config.latency.mode == config::LatencyMode::completion_only;
  choices.attribution = config.attribution.enabled;
  choices.attributed_cgroups = static_cast<std::uint32_t>(config.attribution.tenants);
  choices.volumes = config.volumes.enabled;
  choices.flash_samples = config.flash_model.enabled;
  if (config.writes.page_hints != config::PageHints::automatic) {
    choices.hints_of_pages = config.writes.page_hints == config::PageHints::always;
  }
  return choices;
}

model::AnalysisSettings settings_of(const config::Config& config) {
  return {config.discard.burst_gap, config.spikes.floor, config.attribution.tenants, config.limits.cpu_ratio,
          config.limits.after};
}

/// Nothing if names are not to be shown. Hidden names stay the same as long as the key is kept.
std::optional<tenants::TenantNamer> tenant_namer(const config::Config& config) {
  std::vector<tenants::TenantPattern> patterns;
  for (const config::TenantPattern& pattern : config.attribution.patterns) {
    patterns.push_back({pattern.match, pattern.tenant});
  }
  if (config.attribution.names == config::TenantNames::off) {
    return std::nullopt;
  }
  if (config.attribution.names == config::TenantNames::full) {
    return tenants::TenantNamer(std::move(patterns), std::nullopt);
  }
  auto key =
      config.history.directory.empty() ? util::random_hash_key() : tenants::persistent_key(config.history.directory);
  if (!key) {
    log::warning("tenants will have different names after the next start: {}", key.error().message);
    key = util::random_hash_key();
  }
  if (!key) {
    log::warning("tenants are not named: {}", key.error().message);
    return std::nullopt;
  }
  return tenants::TenantNamer(std::move(patterns), *key);
}

/// A tenant that knew which pages are sampled could write only to other pages.
std::uint32_t secret_seed() {
  std::uint32_t seed = 0;
  return ::getrandom(&seed, sizeof seed, 0) == sizeof seed
             ? seed
             : static_cast<std::uint32_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

flash::ModelSettings model_settings(const config::Config& config) {
  flash::ModelSettings settings;
  settings.memory_bytes = config.flash_model.memory_bytes;
  if (config.flash_model.sample != 0) {
    settings.rate_bits = static_cast<unsigned>(std::countr_zero(config.flash_model.sample));
  }
  settings.virtual_too = config.flash_model.virtual_disks;
  settings.directory = config.history.directory;
  settings.make_seed = secret_seed;
  return settings;
}

/// Allows more clients than the usual 1024 descriptors; those beyond the hard limit wait in the backlog. Returns what
/// is wrong with the limit that is then in force.
std::optional<std::string> raise_file_limit() {
  rlimit limit{};
  const rlim_t wanted = http::Limits{}.fds(16) + 256;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? util::too_few_open_files(limit.rlim_cur) : std::nullopt;
}

/// For what the kernel has refused without judging the kernel: a failure, unless it is the limit of open files.
ExitCode code_of(const util::Error& error) {
  return error.error_number == EMFILE ? ExitCode::open_files : ExitCode::failure;
}

/// Rendered pages are large and short-lived. With an arena for each thread, each keeps the memory of its largest one.
void limit_malloc() {
  constexpr int kArenas = 1;
  constexpr int kMinMappingBytes = 256 << 10;  // returned to the kernel when freed
  ::mallopt(M_ARENA_MAX, kArenas);
  ::mallopt(M_MMAP_THRESHOLD, kMinMappingBytes);
}

/// The groups that /metrics shows by default.
model::MetricGroups groups_of(const config::Metrics& metrics) {
  if (metrics.profile == config::MetricsProfile::fleet) {
    if (!metrics.exclude.empty()) {
      log::warning("metrics.exclude has no effect with metrics.profile fleet, which selects the metrics itself");
    }
    return model::fleet_metric_groups();
  }
  auto groups = model::all_metric_groups();
  for (const std::string& name : metrics.exclude) {
    groups.reset(model::metric_group(name).value());
  }
  return groups;
}

/// Warns of devices that are included by name, or all, and not measured.
void warn_of_unmeasured(const Sampler& sampler, const config::Config& config) {
  for (const auto& [device, reason] : host::named_and_not_measured(config.devices.include, sampler.inventory())) {
    log::warning("{} is included by name and not measured: {}", log::field("device", device), reason);
  }
  if (sampler.measured_devices() == 0) {
    log::warning(
        "no device is measured: devices.include [{}] without devices.exclude [{}] leaves none; "
        "'ssdpulse devices' shows each disk and why",
        fmt::join(config.devices.include, " "), fmt::join(config.devices.exclude, " "));
  }
}

/// A good configuration is applied as far as a running daemon can apply it; a bad one changes nothing.
void apply(const config::Configured& wanted, config::Config& running, model::ConfigurationFigures& figures,
           Sampler& sampler, nvme::DriveMonitor& nvme) {
  figures.last_reload_successful = wanted.has_value();
  if (!wanted) {
    log_problems(wanted.error());
    log::warning("configuration not reloaded: the running one stays in force");
    return;
  }
  for (const std::string& key : config::keys_requiring_restart(running, *wanted)) {
    log::warning("configuration {} changed: takes effect after a restart", log::field("key", key));
  }
  running.devices = wanted->devices;
  sampler.set_filter(filter_of(running));
  running.discard = wanted->discard;
  running.nvme.poll_interval = wanted->nvme.poll_interval;
  nvme.set_poll_interval(running.nvme.poll_interval);
  running.spikes = wanted->spikes;
  running.limits = wanted->limits;
  figures.loaded_at = std::chrono::system_clock::now();
  log::info("configuration reloaded", log::field("devices_measured", sampler.measured_devices()));
  warn_of_unmeasured(sampler, running);
}

/// When a refresh of the inventory is due: when disks changed, at once, but no more often than five times a second;
/// when mounts changed, at the next tick; and now and then unprompted, as not everything in sysfs is announced.
class InventoryClock {
 public:
  bool due(const Wakeup& wakeup, bool saw_unknown_disks) {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    disks_ = disks_ || wakeup.disks_changed;
    mounts_ = mounts_ || wakeup.mounts_changed;
    const auto age = now - last_;
    const bool tick = wakeup.ticks > 0;
    const bool due = (disks_ && age >= 200ms) || (tick && (mounts_ || disks_ || age >= 30s)) ||
                     (tick && saw_unknown_disks && age >= 5s);
    if (due) {
      disks_ = mounts_ = false;
      last_ = now;
    }
    return due;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool disks_ = false;
  bool mounts_ = false;
};

std::string status_line(const Parts& parts) {
  const auto taken = parts.web.taken();
  return fmt::format("measuring {} device(s){}{}", parts.sampler.measured_devices(),
                     taken.empty() ? "" : "; another program listens on ", fmt::join(taken, " "));
}

/// From the first sample to the stop signal.
void serve(const config::Configure& configure, config::Config& running, model::ConfigurationFigures& figures,
           Events& events, const Parts& parts) {
  Sampler& sampler = parts.sampler;
  nvme::DriveMonitor& nvme = parts.drives;
  InventoryClock inventory;
  config::ConfigurationReader configuration(configure);
  std::uint64_t missed_ticks = 0;
  Publisher publisher(parts);
  publisher.publish(settings_of(running), missed_ticks);
  service::ready(status_line(parts));
  while (true) {
    const Wakeup wakeup = events.wait(nvme.descriptor(), nvme.deadline());
    if (wakeup.stop) {
      publisher.finish(settings_of(running));
      return;
    }
    if (wakeup.reload) {
      service::reloading();
      parts.web.reload();
      configuration.ask();
    }
    if (const auto wanted = configuration.answer()) {
      apply(*wanted, running, figures, sampler, nvme);
      service::ready(status_line(parts));
    }
    if (inventory.due(wakeup, sampler.saw_unknown_disks())) {
      sampler.refresh_inventory();
      nvme.refresh_drives();
      service::status(status_line(parts));
    }
    nvme.advance(sampler);
    if (wakeup.ticks > 0) {
      missed_ticks += wakeup.ticks - 1 + (wakeup.late ? 1 : 0);
      publisher.publish(settings_of(running), missed_ticks);
      service::notify_watchdog();
    }
  }
}

/// Null values become what was opened; the exit code for a problem, which is logged.
std::optional<ExitCode> open_history(const config::History& config, std::shared_ptr<history::History>& history,
                                     std::shared_ptr<history::Reader>& reader) {
  history::Options options;
  options.directory = config.directory;
  options.limits.retention = std::chrono::ceil<std::chrono::minutes>(config.retention);
  options.limits.bytes = config.size;
  auto opened = history::History::open(std::move(options));
  if (!opened) {
    return exit_with(opened.error().error_number == 0 ? ExitCode::usage : ExitCode::failure, opened.error().message);
  }
  history = std::move(*opened);
  const auto suspect = [writer = std::weak_ptr(history)] {
    if (const auto running = writer.lock()) {
      running->suspect();
    }
  };
  auto reading = history::Reader::open(config.directory + "/" + history::kFileName, suspect);
  if (!reading) {
    return exit_with(ExitCode::failure, reading.error().message);
  }
  reader = std::move(*reading);
  return std::nullopt;
}

}  // namespace

ExitCode run(const config::Configure& configure) {
  auto config = configure();
  if (!config) {
    log_problems(config.error());
    return ExitCode::usage;
  }
  log::info("ssdpulse {} ({}) starting", model::kVersion, model::kRevision);
  if (const auto too_few = raise_file_limit()) {
    return exit_with(ExitCode::open_files, *too_few);
  }
  limit_malloc();
  auto events = Events::open(kTick);
  if (!events) {
    return exit_with(code_of(events.error()), events.error().message);
  }
  // The address first: it is the cheapest thing to check, and if another daemon has it, nothing has to be undone.
  auto listeners = serve::open_web_listeners(config->web, config->history.directory);
  if (!listeners) {
    return exit_with(ExitCode::address, listeners.error().message);
  }
  auto local = serve::open_web_socket(config->web);
  if (!local) {
    return exit_with(ExitCode::address, local.error().message);
  }
  // Reports errors in this file before the kernel is touched. It is read for use later, without any privilege.
  const auto security = serve::WebServer::read(config->web.config_file);
  if (!security) {
    return security.error();
  }
  if (const auto compared = serve::WebServer::compare_with_last_run(*security, config->history.directory,
                                                                    config->web.allow_less_protection);
      !compared) {
    return compared.error();
  }
  auto sampler = Sampler::open({}, filter_of(*config), choices_of(*config));
  if (!sampler) {
    return exit_with(util::exit_code_of(sampler.error().error_number), sampler.error().message);
  }
  auto nvme = nvme::DriveMonitor::start(config->nvme.poll_interval, config->nvme.reader_socket);
  if (!nvme) {
    return exit_with(code_of(nvme.error()), nvme.error().message);
  }
  const bool some_taken = std::any_of(listeners->begin(), listeners->end(), [](const auto& one) { return one.taken; });
  const confinement::Partners partners{!config->nvme.reader_socket.empty(), service::takes_notifications(), some_taken};
  if (auto confined = confinement::confine(config->history.directory, partners); !confined) {
    return exit_with(ExitCode::failure, confined.error().message);
  }
  // Threads start only now: they have the capabilities of this one, which are none.
  std::atomic<const history::History*> unfinished = nullptr;  // what a stop waits for; none once it is closed
  std::optional<service::StopGuard> guard;
  const std::shared_ptr<void> closed(nullptr, [&unfinished](void*) { unfinished = nullptr; });
  std::shared_ptr<history::History> history;
  std::shared_ptr<history::Reader> reader;  // the audit's thread may outlive everything else
  if (!config->history.directory.empty()) {
    if (const auto code = open_history(config->history, history, reader)) {
      return *code;
    }
  }
  if (auto namer = tenant_namer(*config)) {
    (*sampler)->name_tenants(std::move(*namer));
  }
  const auto models =
      config->flash_model.enabled ? std::make_unique<flash::ModelRunner>(model_settings(*config)) : nullptr;
  serve::CurrentSnapshot current;
  AuditWatch audit(current, AuditWatch::by_the_rules(reader));
  const model::MetricGroups shown = groups_of(config->metrics);
  exposition::MetricsPage metrics(shown);
  history::RecentPast past;
  advice::FindingAges finding_ages;
  page::AskMoment ask_moment;
  page::AskDay ask_day;
  if (reader) {
    ask_moment = [&reader](model::PastTime at) { return reader->moment(at); };
    ask_day = [&reader](model::PastTime at) { return reader->day(at); };
  }
  page::Site site(past, finding_ages, std::move(ask_moment), std::move(ask_day), host::host_name());
  auto pages = serve::daemon_routes(current, metrics, shown, config->web.hosts, reader.get());
  serve::add_measured(pages, current, config->web.hosts);
  if (config->web.page) {
    serve::add_page(pages, current, site, config->web.hosts);
    if (reader) {
      const auto keep_mark = [&history, &audit](model::Mark mark) {
        audit.recheck();  // the mark may stand for a changed setting
        return history->keep(std::move(mark));
      };
      serve::add_history(pages, *reader, keep_mark, config->web.hosts, host::host_name());
    }
  }
  auto web = serve::WebServer::start(std::move(*listeners), std::move(*local), std::move(pages),
                                     config->web.config_file, config->history.directory);
  if (!web) {
    return web.error();
  }
  model::ConfigurationFigures figures{true, std::chrono::system_clock::now()};
  ::malloc_trim(0);  // frees ten megabytes that the kernel's type information took
  log::info("measuring", log::field("devices", (*sampler)->measured_devices()),
            log::field("mode", config->latency.mode == config::LatencyMode::full ? "full" : "completion-only"));
  warn_of_unmeasured(**sampler, *config);
  serve(configure, *config, figures, *events,
        {**sampler, **nvme, history.get(), **web, past, finding_ages, current, figures, models.get(), audit});
  log::info("stopping");
  service::stopping();
  unfinished = history.get();
  guard.emplace([&unfinished] {
    log::error("something does not answer, probably a disk: stopping without waiting for it any longer");
    if (const history::History* waits = unfinished) {
      waits->log_unwritten();
    }
  });
  // First what others miss if it stays: the port, and the programs in the kernel.
  (*web)->stop();
  web->reset();
  nvme->reset();
  sampler->reset();
  return ExitCode::success;
}

}  // namespace ssdpulse::runtime
