// SPDX-License-Identifier: Apache-2.0
// WebServer: serves the pages while the daemon runs: its sockets, the HTTP server, its protection, and their figures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/config/config.h"
#include "daemon/model/snapshot.h"
#include "daemon/serve/web_security.h"
#include "exporters/http/http_listener.h"
#include "exporters/http/http_server.h"

namespace ssdpulse::serve {

/// The sockets of the configuration; or from systemd, those named "web" (FileDescriptorName=web), of which there must
/// be at least one. An address that somebody else has is left for later (Listener::taken), which is logged: whoever
/// binds it first must not keep us from measuring. It is an error if that is another daemon of ours: one that serves
/// there, or keeps the history in `history_directory` ("": none).
util::Result<std::vector<http::Listener>> open_web_listeners(const config::Web& web,
                                                             const std::string& history_directory);

/// The unix socket of the configuration; nothing if it has none.
util::Result<std::optional<http::Listener>> open_web_socket(const config::Web& web);

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

}  // namespace ssdpulse::serve
