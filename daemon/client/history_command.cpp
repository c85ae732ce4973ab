// SPDX-License-Identifier: Apache-2.0
// Asks the daemon, and opens the file itself only if none answers; both return the same JSON, which is then shown.
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>

#include "daemon/client/commands.h"
#include "daemon/client/history_text.h"
#include "daemon/client/time_text.h"
#include "daemon/history/reader.h"
#include "daemon/util/in_time.h"
#include "exporters/page/history_json.h"

namespace ssdpulse::client {
namespace {

using Answer = util::Result<nlohmann::json>;

struct Asked {
  model::Window window;
  std::string device;
  std::size_t points = 0;
};

util::Result<WallTime> time_or(const std::string& option, const std::string& text, WallTime otherwise) {
  if (text.empty()) {
    return otherwise;
  }
  auto time = parse_time(text, std::chrono::system_clock::now());
  return time ? time : util::fail(option + ": " + time.error().message);
}

util::Result<Asked> asked_of(const HistoryOptions& options) {
  const auto to = time_or("--to", options.to, std::chrono::system_clock::now());
  const auto from = to ? time_or("--from", options.from, *to - std::chrono::hours(24)) : to;
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  Asked asked{{std::chrono::floor<std::chrono::minutes>(*from), std::chrono::ceil<std::chrono::minutes>(*to)},
              options.device,
              options.points};
  return asked.window.from < asked.window.to ? util::Result<Asked>(asked) : util::fail("--from: must be before --to");
}

Answer ask_daemon(Api& api, const Asked& asked) {
  const auto seconds = [](model::PastTime time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  std::string path = "history";
  if (!asked.device.empty()) {
    path += "/" + escaped(asked.device);
  }
  return api.get(path + "?from=" + seconds(asked.window.from) + "&to=" + seconds(asked.window.to) +
                 "&points=" + std::to_string(asked.points));
}

Answer read_file(const std::string& path, const Asked& asked) {
  if (const auto answers = util::file_answers(path); !answers) {
    return tl::make_unexpected(answers.error());
  }
  auto reader = history::Reader::open(path);
  if (!reader) {
    return tl::make_unexpected(reader.error());
  }
  const auto parsed = [](const std::string& text) { return nlohmann::json::parse(text, nullptr, false); };
  if (!asked.device.empty()) {
    return (*reader)->series(asked.device, asked.window, asked.points).map([&](const model::Series& series) {
      return parsed(page::history_json(series));
    });
  }
  std::uint64_t left_out = 0;
  const auto devices = (*reader)->devices(&left_out);
  const auto settings = (*reader)->settings(asked.window);
  const auto marks = (*reader)->marks(asked.window);
  if (!devices || !settings || !marks) {
    return tl::make_unexpected(!devices ? devices.error() : !settings ? settings.error() : marks.error());
  }
  return parsed(page::history_list_json(*devices, *settings, *marks, left_out));
}

Answer find(const Where& where, const config::Config& config, const Asked& asked) {
  auto api = Api::open(where, config.web);
  auto answer = api ? ask_daemon(*api, asked) : tl::make_unexpected(api.error());
  const bool nobody = !answer && (!api || answer.error().error_number == kNobodyAnswers);
  if (!nobody || !where.address.empty() || config.history.directory.empty()) {
    return answer;
  }
  auto from_file = read_file(config.history.directory + "/ssdpulse.db", asked);
  if (!from_file) {
    return util::fail(answer.error().message + "; and " + from_file.error().message);
  }
  std::cerr << (!api || answer.error().error_number != kNobodyAnswers ? answer.error().message : "no daemon answers")
            << ": read from " << config.history.directory << "/ssdpulse.db\n";
  return from_file;
}

}  // namespace

bool history(const Where& where, const config::Config& config, const HistoryOptions& options) {
  const auto asked = asked_of(options);
  const auto answer = asked ? find(where, config, *asked) : tl::make_unexpected(asked.error());
  if (!answer) {
    std::cerr << answer.error().message << '\n';
    return false;
  }
  if (options.json) {
    std::cout << answer->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (options.by_tenant) {
    std::cout << (options.csv ? history_by_tenant_csv(*answer) : history_by_tenant_text(*answer));
  } else if (options.csv) {
    std::cout << history_csv(*answer);
  } else {
    std::cout << (options.device.empty() ? history_list_text(*answer) : history_text(*answer));
  }
  return static_cast<bool>(std::cout.flush());
}

bool mark(const Where& where, const config::Web& web, const std::string& text, std::string id) {
  if (!page::is_printable(text)) {
    std::cerr << "TEXT: expected 1 to 128 characters of UTF-8, without control characters\n";
    return false;
  }
  std::array<std::uint64_t, 2> random{};
  if (id.empty() && ::getrandom(random.data(), sizeof random, 0) == sizeof random) {
    id = fmt::format("{:016x}{:016x}", random[0], random[1]);
  }
  auto api = Api::open(where, web);
  if (!api) {
    std::cerr << api.error().message << '\n';
    return false;
  }
  if (const auto answer = api->post("marks?text=" + escaped(text) + "&id=" + escaped(id)); !answer) {
    std::cerr << answer.error().message << "\nto try again without making a second mark: --id " << id << '\n';
    return false;
  }
  return true;
}

}  // namespace ssdpulse::client
