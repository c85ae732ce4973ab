// SPDX-License-Identifier: Apache-2.0
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/cli/asked_times.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/own_daemon.h"
#include "exporters/terminal/curses_terminal.h"
#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_words.h"

namespace ssdpulse::cli {
namespace {

// Asks once a second, draws, and listens to keys in between. If there is no daemon, root starts one for the duration.

struct TopOptions {
  ClientOptions client;
  std::string at;     // see asked_times.h; empty: now
  bool once = false;  // one screen as text, without a terminal
};

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTick{1};
constexpr std::size_t kTextWidth = 200;  // where there is no terminal

constexpr double kWholeTick = 1;       // seconds; over a part of one, rates mean little
constexpr int kNoSampleYet = 503;      // what a daemon that has just started answers
constexpr std::size_t kMinutes = 120;  // of the heatmap of the past

/// The daemon that we ask.
struct Source {
  Api api;
  std::unique_ptr<OwnDaemon> own = nullptr;  // null: a daemon that somebody else has started
  std::string own_since = {};                // when it began to measure

  [[nodiscard]] std::string trouble(const util::Error& error) const {
    const auto ending = own ? own->ending() : std::nullopt;
    return ending ? "the daemon that top started has ended: " + *ending : error.message;
  }
};

/// The current ones, and those that only the history knows from that time: a drive that is gone was there then.
nlohmann::json devices_of(const nlohmann::json& now, const nlohmann::json& history, double from, double to) {
  nlohmann::json all = now;
  for (const auto& known : history.value("devices", nlohmann::json::array())) {
    const std::string name = known.value("name", "");
    const auto& present = now.value("devices", nlohmann::json::array());
    const bool here = std::any_of(present.begin(), present.end(),
                                  [&](const auto& device) { return device.value("name", "") == name; });
    if (!here && known.value("first", to) < to && known.value("last", from) >= from) {
      all["devices"].push_back({{"name", name}, {"model", known.value("model", "")}});
    }
  }
  return all;
}

/// Asks about one minute (the hour that holds it where minutes are no longer kept) and, for the drive on the screen,
/// about the minutes before. The first line's answer decides between minute and hour, so that everything is from the
/// same time.
void ask_the_past(Api& api, const terminal::View& view, terminal::State& state) {
  const auto at = static_cast<std::int64_t>(*view.at);
  const auto range = [](std::int64_t from, std::int64_t to) {
    return "?from=" + std::to_string(from) + "&to=" + std::to_string(to);
  };
  const auto now = api.get("devices");
  const auto why = api.get("why?at=" + std::to_string(at));
  state.trouble = !now ? now.error().message : !why ? why.error().message : "";
  if (!now || !why) {
    return;
  }
  const auto step = why->value("/why/moment/step_seconds"_json_pointer, std::int64_t{60});
  const std::int64_t begin = at / step * step;
  const auto known = api.get("history" + range(begin, begin + step));
  const auto devices =
      known ? devices_of(*now, *known, static_cast<double>(begin), static_cast<double>(begin + step)) : *now;
  std::map<std::string, nlohmann::json> histories;
  std::string trouble = known ? "" : known.error().message;  // such as if no history is kept
  for (const auto& device : devices.value("devices", nlohmann::json::array())) {
    const std::string name = device.value("name", "");
    auto history = api.get("history/" + escaped(name) + range(begin, begin + step) + "&points=2");
    if (history) {
      histories[name] = std::move(*history);
    } else if (history.error().error_number != 404) {  // a drive that the history does not know yet
      trouble = history.error().message;
    }
  }
  state.overview = terminal::overview_at(*view.at, devices, *why, histories);
  state.tenants = terminal::tenants_at(*view.at, histories);
  state.trouble = trouble;
  if (view.screen != terminal::Screen::device) {
    return;
  }
  const std::int64_t end = at / 60 * 60 + 60;
  const std::string window = range(end - 60 * static_cast<std::int64_t>(kMinutes), end);
  const std::string path = "history/" + escaped(view.selected) + window;
  const auto by_minute = api.get(path + "&minutes=1");
  const auto history = api.get(path + "&points=2&heat=" + std::string(heat_name(view.heat)));
  if (!by_minute || !history) {
    state.trouble = !by_minute ? by_minute.error().message : history.error().message;
  }
  state.seconds = by_minute && history ? std::optional(terminal::minutes_at(*view.at, std::string(heat_name(view.heat)),
                                                                            kMinutes, *history, *history, *by_minute))
                                       : std::nullopt;
}

/// Whether more than the overview is needed for it.
bool is_fetched(terminal::Screen screen) {
  return screen != terminal::Screen::overview && screen != terminal::Screen::help;
}

/// Figures of tenants are differences: over the last minute, or as long as they were on the screen.
class TenantWindow {
 public:
  /// What is known by now. Asks about every drive, once a second at first and then every five.
  terminal::Tenants observe(Api& api, const terminal::Overview& overview) {
    if (Clock::now() >= due_) {
      terminal::TenantAnswers answers;
      for (const terminal::Drive& drive : overview.drives) {
        auto answer = api.get("devices/" + escaped(drive.name) + "/tenants");
        if (answer) {
          answers[drive.name] = std::move(*answer);
        }
      }
      if (!all_.empty() && run_of(all_.back().second) != run_of(answers)) {
        all_.clear();  // the daemon was restarted, and counts from the beginning
      }
      all_.push_back({Clock::now(), std::move(answers)});
      while (all_.size() > 2 && all_.back().first - all_[1].first >= kWindow) {
        all_.pop_front();
      }
      due_ = Clock::now() + (all_.size() < 3 ? kTick : kInterval);
    }
    return terminal::tenants_between(all_.front().second, all_.back().second);
  }

 private:
  static nlohmann::json run_of(const terminal::TenantAnswers& answers) {
    const nlohmann::json none;
    const nlohmann::json& first = answers.empty() ? none : answers.begin()->second;
    const auto run = first.find("run");  // the end, if it is not an object
    return run == first.end() ? none : *run;
  }

  static constexpr std::chrono::seconds kWindow{60};
  static constexpr std::chrono::seconds kInterval{5};

  std::deque<std::pair<Clock::time_point, terminal::TenantAnswers>> all_;
  Clock::time_point due_{};
};

/// What is not asked for with every tick.
struct Asked {
  Clock::time_point status_due{};
  TenantWindow tenants;
};

/// Asks for what the screen needs now. If an answer does not come, the last one stays, and a note says so.
void ask(Source& source, const terminal::View& view, terminal::State& state, Asked& asked) {
  Api& api = source.api;
  if (view.at && source.own) {
    state.trouble = "the past is known to a service with a history, and top measures by itself: press n";
    return;
  }
  if (view.at) {
    ask_the_past(api, view, state);
    return;
  }
  const auto devices = api.get("devices");
  state.trouble = devices ? "" : source.trouble(devices.error());
  if (!devices) {
    return;
  }
  state.overview = terminal::overview_from(*devices);
  if (Clock::now() >= asked.status_due) {
    if (const auto status = api.get("status")) {
      state.gaps = terminal::gaps_from(*status);
      state.host = source.own ? "" : terminal::host_from(*status);
    }
    asked.status_due = Clock::now() + std::chrono::seconds(30);
  }
  if (view.screen == terminal::Screen::volumes) {
    const auto stacks = api.get("stacks");
    if (stacks) {
      state.volumes = terminal::volumes_from(*stacks, *state.overview);
    } else {
      state.trouble = source.trouble(stacks.error());
    }
  }
  if (view.screen == terminal::Screen::tenants) {
    state.tenants = asked.tenants.observe(api, *state.overview);
  }
  if (view.screen == terminal::Screen::device) {
    const auto live = api.get("devices/" + view.selected + "/live?heat=" + std::string(heat_name(view.heat)));
    state.seconds = live ? std::optional(terminal::seconds_from(*live)) : std::nullopt;
  }
}

bool wants(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_utf8() { return std::string_view(::nl_langinfo(CODESET)) == "UTF-8"; }

bool dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) == "dumb" || ::isatty(STDOUT_FILENO) == 0 ||
         ::isatty(STDIN_FILENO) == 0;
}

bool print_once(Source& source, const terminal::View& view, terminal::State& state) {
  Asked asked;
  ask(source, view, state, asked);
  if (!state.overview) {
    std::cerr << state.trouble << '\n';
    return false;
  }
  winsize size{};
  const bool sized = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::size_t rows = state.overview->drives.size() + 20;
  auto text = terminal::draw(state, view, sized ? size.ws_col : kTextWidth, rows, is_utf8()).text();
  text.erase(text.rfind('\n', text.size() - 2));  // no keys
  text.erase(text.find_last_not_of('\n') + 1);
  std::cout << text << '\n';
  return true;
}

/// Anything beyond the last minute that the history can have is the present.
void bound(terminal::View& view) {
  constexpr std::chrono::seconds kWritten{10};  // after its end, a minute is in the history
  const auto current = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now() - kWritten);
  if (view.at && *view.at >= std::chrono::duration<double>(current.time_since_epoch()).count()) {
    view.at.reset();
  }
}

void run(Source& source, terminal::View view, terminal::State& state) {
  terminal::CursesTerminal terminal(!wants("NO_COLOR"));
  Asked asked;
  auto due = Clock::now();
  while (!view.over && !terminal::CursesTerminal::interrupted()) {
    if (!(view.paused || view.at) && Clock::now() >= due) {
      ask(source, view, state, asked);
      due = Clock::now() + kTick;
    }
    terminal.show(terminal::draw(state, view, terminal.width(), terminal.height(), is_utf8()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
    const terminal::View before = view;
    const bool waits = view.paused || view.at;
    if (const auto pressed =
            terminal.key(waits ? std::chrono::milliseconds(kTick) : std::max(left, std::chrono::milliseconds(1)))) {
      press(view, *pressed, state.overview.value_or(terminal::Overview{}), state.volumes.value_or(terminal::Volumes{}),
            state.tenants.value_or(terminal::Tenants{}));
    }
    bound(view);
    if (before.screen != view.screen || before.heat != view.heat || before.at != view.at) {
      state.seconds.reset();
      state.volumes.reset();
      state.tenants.reset();
      due = Clock::now();  // what is new on the screen must be fetched
      if (view.at || before.at || (view.paused && is_fetched(view.screen))) {
        ask(source, view, state, asked);
      }
    }
  }
}

/// Waits until it has measured for this long. Prints a note if that takes a while.
util::Result<void> wait_until_measured(Source& source, double seconds) {
  constexpr std::chrono::milliseconds kPause{50};
  const auto announce_at = Clock::now() + std::chrono::seconds(2);
  bool announced = false;
  std::optional<double> first;  // when the first sample that we saw was taken
  while (true) {
    const auto answers = source.own->answers_within(kPause);
    if (!answers) {
      return tl::make_unexpected(answers.error());
    }
    const auto devices = *answers ? source.api.get("devices") : util::fail("", kNoSampleYet);
    if (!devices && devices.error().error_number != kNoSampleYet) {
      return util::fail(source.trouble(devices.error()));
    }
    if (devices) {
      const double taken_at = devices->value("taken_at", 0.0);
      if (!first) {
        first = taken_at;
        source.own_since = terminal::clock_text(taken_at);
      }
      if (std::abs(taken_at - *first) >= seconds) {  // the clock may be set back meanwhile
        return {};
      }
    }
    if (!announced && Clock::now() >= announce_at) {
      std::cerr << (devices ? "waiting for rates of a whole second\n" : "loading the programs that measure\n");
      announced = true;
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// A daemon of our own. `nobody`: why there is no other.
util::Result<Source> measure(const std::string& nobody, const config::Config& config, double seconds) {
  if (::geteuid() != 0) {
    return util::fail(nobody +
                      "; start the service (systemctl start ssdpulse), or measure without it: sudo ssdpulse top");
  }
  const auto cannot = [&](const util::Error& error) {
    return util::fail(nobody + ", and top cannot measure by itself: " + error.message);
  };
  auto own = OwnDaemon::start(config);
  if (!own) {
    return cannot(own.error());
  }
  auto api = Api::open({(*own)->address(), ""}, config.web);
  if (!api) {
    return cannot(api.error());
  }
  std::cerr << nobody << ": top measures by itself, at the cost of a daemon, until it ends\n";
  Source ours{std::move(*api), std::move(*own)};
  if (auto waited = wait_until_measured(ours, seconds); !waited) {
    return cannot(waited.error());
  }
  return ours;
}

/// The daemon that answers; for the present, if none does that can be trusted, one of our own.
util::Result<Source> source_for(const Where& where, const config::Config& config, bool present, double seconds) {
  auto api = Api::open(where, config.web);
  const bool may_measure = present && where.address.empty();
  if (!api) {
    const bool foreign = api.error().error_number == kNotTrusted;
    return may_measure && foreign && ::geteuid() == 0 ? measure(api.error().message, config, seconds)
                                                      : tl::make_unexpected(api.error());
  }
  if (may_measure && api->nobody_is_there()) {
    return measure("no daemon answers at " + api->address(), config, seconds);
  }
  return Source{std::move(*api)};
}

/// Shows the present, or the time `at`. For the present, if no address is given and no daemon is there, root runs an
/// OwnDaemon until top() ends. `usage`: `at` is not a time, or is combined with --json.
ExitCode top(const TopOptions& options) {
  const config::Config config = config_of(options.client);
  const bool json = options.client.json;
  std::setlocale(LC_ALL, "");
  terminal::View view;
  if (!options.at.empty()) {
    const auto time = parse_time(options.at, std::chrono::system_clock::now());
    if (!time) {
      std::cerr << "--at: " << time.error().message << '\n';
      return ExitCode::usage;
    }
    view.at = static_cast<double>(std::chrono::system_clock::to_time_t(*time));
  }
  if (json && view.at) {
    std::cerr << "--at: not with --json; ask `ssdpulse history --json` for figures of the past\n";
    return ExitCode::usage;
  }
  const bool once = options.once || json || dumb();
  // A daemon that has just begun to measure has no past.
  auto source = source_for(options.client.where, config, !view.at, once ? kWholeTick : 0);
  if (!source) {
    return fail(source.error());
  }
  if (json) {
    const auto devices = source->api.get("devices");
    if (!devices) {
      return fail(devices.error());
    }
    print_json(*devices, std::cout);
    return ExitCode::success;
  }
  terminal::State state;
  state.address =
      source->own ? "measured by top itself since " + source->own_since + ", no daemon answers" : source->api.address();
  if (options.once || dumb()) {
    return print_once(*source, view, state) ? ExitCode::success : ExitCode::failure;
  }
  if (view.at) {
    Asked asked;
    ask(*source, view, state, asked);
  }
  run(*source, view, state);
  return ExitCode::success;
}

}  // namespace

void add_top(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "top",
      "Show drives, volumes and tenants in the terminal, the one that needs attention first; without a "
      "daemon, root measures by itself");
  const auto options = std::make_shared<TopOptions>();
  add_client_options(*command, options->client);
  command->add_flag("--once", options->once, "Print one screen as text and exit");
  command->add_option("--at", options->at,
                      "Begin with a time in the past: 03:00, '2026-11-23 03:00', -10m, @1763866800");
  command->callback([options, &exit_code] { exit_code = top(*options); });
}

}  // namespace ssdpulse::cli
