// SPDX-License-Identifier: Apache-2.0
// WebServer: serves the pages while the daemon runs: the HTTP server, its protection, and the figures of both.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/snapshot.h"
#include "daemon/util/exit_code.h"
#include "daemon/web/security.h"
#include "exporters/http/server.h"

namespace ssdpulse::web {

class WebServer {
 public:
  /// The config file and the files it names, or the exit code for a problem with them, which is logged.
  static tl::expected<LoadedWebSecurity, util::ExitCode> read(const std::string& config_file);

  /// Whether the pages would be protected by all that protected them in the last run; if not, which is logged, the exit
  /// code. `directory`: of the history; empty: nothing is known of the last run.
  static tl::expected<void, util::ExitCode> compare_with_last_run(const LoadedWebSecurity& security,
                                                                  const std::string& directory, bool allow_less);

  /// `config_file` empty: plain HTTP for everybody. `local`: null, or a unix socket, which has neither TLS nor users:
  /// its file mode decides who may connect. `directory`: of the history, where the kind of protection is kept; empty:
  /// it is not. Problems are logged.
  static tl::expected<std::unique_ptr<WebServer>, util::ExitCode> start(std::vector<http::Listener> listeners,
                                                                        std::optional<http::Listener> local,
                                                                        http::Routes routes,
                                                                        const std::string& config_file,
                                                                        const std::string& directory);

  /// The addresses that are not served, because somebody else listens there.
  [[nodiscard]] std::vector<std::string> taken() const { return server_->taken(); }

  void reload();  // rereads the config file, on another thread
  void describe(model::Snapshot& snapshot) const;
  void stop();

 private:
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Server> local_server_;  // null without a unix socket
  std::unique_ptr<WebSecurityWatch> watch_;     // null without a config file; last: it uses the server
};

}  // namespace ssdpulse::web
