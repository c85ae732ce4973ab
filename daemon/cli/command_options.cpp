// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/command_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "daemon/base/child_process.h"
#include "daemon/config/value_text.h"
#include "daemon/history/history.h"

namespace ssdpulse::cli {
namespace {

constexpr const char* kStandardInput = "-";

bool is_there(const std::string& path) {
  std::error_code error;
  // A file whose status cannot be read may exist: reading the file will report what is wrong.
  return std::filesystem::status(path, error).type() != std::filesystem::file_type::not_found;
}

/// Empty if there is none.
std::string file_of(const ConfigurationOptions& options) {
  if (options.config_file) {
    return *options.config_file;
  }
  return is_there(options.default_file) ? options.default_file : "";
}

config::ParseOutcome read_standard_input() {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  // as for a file
  std::string text(kMaxBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > kMaxBytes) {
    return tl::unexpected(std::vector<config::Problem>{
        {"standard input", 0, 0, "is longer than " + std::to_string(kMaxBytes) + " bytes"}});
  }
  return config::parse(text, "standard input");
}

}  // namespace

std::string describe_origin(const ConfigurationOptions& options) {
  if (options.standard_input && options.config_file == kStandardInput) {
    return "standard input";
  }
  if (std::string file = file_of(options); !file.empty()) {
    return file;
  }
  return options.config_file ? "built-in defaults" : "built-in defaults (there is no " + options.default_file + ")";
}

void add_configuration_options(CLI::App& command, ConfigurationOptions& options) {
  command.add_option("--config,-c", options.config_file,
                     std::string("Configuration file (YAML); empty: built-in defaults (default ") + kDefaultConfigFile +
                         ", which need not exist)");
  command.add_option("--web.listen-address", options.listen_address,
                     "Where to serve metrics: HOST:PORT, [IPV6]:PORT or :PORT; repeatable (default 127.0.0.1:10936)");
  command.add_option("--web.config.file", options.web_config_file,
                     "File with TLS and basic authentication, in the format shared by Prometheus exporters");
  command.add_option("--web.socket", options.web_socket,
                     "Absolute path of a unix socket for the commands of this host; empty: none (the default)");
  command.add_option("--history.directory", options.history_directory,
                     "Absolute path of the directory for the history; empty: none (default /var/lib/ssdpulse)");
  command.add_option(
      "--nvme.reader-socket", options.reader_socket,
      "Absolute path of the socket of a log reader that runs as a service; empty: the daemon starts its own");
  command.add_option("--devices.include", options.include, "Shell pattern of block devices to measure; repeatable");
  command.add_option("--devices.exclude", options.exclude, "Shell pattern of block devices to leave out; repeatable");
}

tl::expected<config::Config, std::vector<std::string>> configure(const ConfigurationOptions& options) {
  config::Config result;
  std::vector<std::string> problems;
  const std::string file = file_of(options);
  if (!file.empty()) {
    auto loaded = options.standard_input && file == kStandardInput ? read_standard_input() : config::load(file);
    if (loaded) {
      result = std::move(*loaded);
    } else {
      for (const config::Problem& problem : loaded.error()) {
        problems.push_back(to_string(problem));
      }
    }
  }
  for (const std::string& address : options.listen_address) {
    if (auto parsed = config::parse_listen_address(address); !parsed) {
      problems.push_back("--web.listen-address: " + parsed.error().message);
    }
  }
  const auto want_patterns = [&](const char* option, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      if (const auto flaw = config::validate_device_pattern(pattern)) {
        problems.push_back(std::string(option) + ": '" + pattern + "' " + *flaw +
                           "; expected a pattern, as in 'nvme*'");
      }
    }
  };
  want_patterns("--devices.include", options.include);
  want_patterns("--devices.exclude", options.exclude);
  const auto want_absolute = [&](const char* option, const std::optional<std::string>& path) {
    if (path && !path->empty() && path->front() != '/') {
      problems.push_back(std::string(option) + ": '" + *path + "' is not absolute; expected an absolute path, or ''");
    }
  };
  const auto want_short = [&](const char* option, const std::optional<std::string>& path) {
    if (path && path->size() > config::kLongestSocketPath) {
      problems.push_back(
          fmt::format("{}: '{}' is too long; expected at most {} bytes", option, *path, config::kLongestSocketPath));
    }
  };
  want_absolute("--web.socket", options.web_socket);
  want_short("--web.socket", options.web_socket);
  want_short("--nvme.reader-socket", options.reader_socket);
  want_absolute("--history.directory", options.history_directory);
  want_absolute("--nvme.reader-socket", options.reader_socket);
  if (!problems.empty()) {
    return tl::make_unexpected(problems);
  }
  const auto override_with = [](const std::vector<std::string>& given, std::vector<std::string>& value) {
    if (!given.empty()) {
      value = given;
    }
  };
  result.web.socket = options.web_socket.value_or(result.web.socket);
  result.history.directory = options.history_directory.value_or(result.history.directory);
  result.nvme.reader_socket = options.reader_socket.value_or(result.nvme.reader_socket);
  override_with(options.listen_address, result.web.listen_address);
  if (!options.web_config_file.empty()) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(options.web_config_file, error);
    if (error) {  // the working directory is gone
      return tl::make_unexpected(
          std::vector<std::string>{"--web.config.file: cannot be made absolute: " + error.message()});
    }
    result.web.config_file = absolute.string();
  }
  result.web.systemd_socket = options.systemd_socket;
  result.web.allow_less_protection = options.allow_less_protection;
  override_with(options.include, result.devices.include);
  override_with(options.exclude, result.devices.exclude);
  return result;
}

std::optional<config::Config> configure_or_complain(const ConfigurationOptions& options, SlowFile slow) {
  if (slow == SlowFile::refused) {
    if (const auto answers = util::file_answers(options.config_file.value_or(options.default_file)); !answers) {
      std::cerr << answers.error().message << '\n';
      return std::nullopt;
    }
  }
  auto configured = configure(options);
  if (configured) {
    return *configured;
  }
  for (const std::string& problem : configured.error()) {
    std::cerr << problem << '\n';
  }
  return std::nullopt;
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  command.add_option("--address", options.where.address,
                     "Where the daemon answers: HOST:PORT, http(s)://HOST:PORT or unix:PATH (default: the service's "
                     "unix socket, else as configured)");
  command.add_option("--cacert", options.where.ca_file, "File of certificates to trust, for https");
  command.add_option("--config,-c", options.config_file, "The daemon's configuration file, for its address");
  command.add_flag("--json", options.json, "Print the answer as JSON");
}

void ask_the_service(config::Web& web) {
  constexpr const char* kServiceSocket =
      "/run/ssdpulse/web.socket";  // on the unit's command line, which overrides a file
  if (web.socket.empty() || somebody_listens_on(kServiceSocket)) {
    web.socket = kServiceSocket;
  }
}

config::Config config_in(const std::string& file) {
  if (const auto answers = util::file_answers(file.empty() ? kDefaultConfigFile : file); !answers) {
    throw CLI::ParseError(answers.error().message, CLI::ExitCodes::ValidationError);
  }
  const auto loaded = config::load(file.empty() ? kDefaultConfigFile : file);
  if (!loaded && !file.empty()) {
    throw CLI::ParseError(to_string(loaded.error()), CLI::ExitCodes::ValidationError);
  }
  auto config = loaded.value_or(config::Config{});
  if (file.empty()) {
    ask_the_service(config.web);
  }
  return config;
}

void add_time_scale(CLI::App& command, double& time_scale) {
  command.add_option("--time-scale", time_scale)
      ->check(CLI::Range(1.0, 1e6))
      ->envname("SSDPULSE_TIME_SCALE")
      ->group("");
}

config::Config config_of(const ClientOptions& options) { return config_in(options.config_file); }

std::string history_file_in(const std::string& directory) { return directory + "/" + history::kFileName; }

}  // namespace ssdpulse::cli
