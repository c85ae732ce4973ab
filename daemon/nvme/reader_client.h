// SPDX-License-Identifier: Apache-2.0
// ReaderClient: the daemon's end of the connection to the NVMe reader. Never waits: answers come later, when the
// descriptor is readable. Every request is answered exactly once, by the drive or by an error; if a drive hangs, when
// the kernel aborts its command. The reader is our child, or a service that listens. Used by one thread; has none
// itself.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/nvme_reader/reader_protocol.h"

namespace ssdpulse::nvme {

using nvme_reader::Request;
using nvme_reader::Response;

class ReaderClient {
 public:
  static constexpr std::size_t kMaxOutstanding = 256;

  /// Starts the reader, `program` nvme-reader, with the privileges of this process: before it gives them up, from the
  /// thread that lives longest (the reader dies with it).
  static util::Result<std::unique_ptr<ReaderClient>> spawn(const std::string& program = "/proc/self/exe");

  /// For a reader that is a service, listening on the unix socket `path`. It need not be there now: the client counts
  /// as ended until reconnect() succeeds.
  static std::unique_ptr<ReaderClient> at(std::string path);

  /// `reader`: our child at the other end, or 0.
  explicit ReaderClient(util::UniqueFd socket, pid_t reader = 0);
  ReaderClient(const ReaderClient&) = delete;
  ReaderClient& operator=(const ReaderClient&) = delete;
  /// Ends the reader, and waits a moment for it.
  ~ReaderClient();

  /// For poll(): readable when there is something to receive, or the reader has ended.
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// Returns the id that the answer will carry. EAGAIN: too much is under way; EPIPE: the reader has ended.
  util::Result<std::uint64_t> send(Request request);

  /// The answers that are there now; more may be left, and the descriptor readable. Our own errors: -ECONNRESET, the
  /// reader died with the request and was started again; -EPIPE, it has ended.
  std::vector<Response> receive();

  /// Stops waiting for this answer: if it comes, it is dropped.
  void abandon(std::uint64_t id) { outstanding_.erase(id); }

  /// Whether the reader is gone: for good, unless can_reconnect().
  bool ended();

  /// Whether the reader is of a different version: all requests fail (EPROTO) while it is there.
  [[nodiscard]] bool misunderstood() const { return misunderstood_; }

  /// Reconnects to a reader that has ended; requests that were under way have been answered by then. Never waits.
  util::Result<void> reconnect();
  [[nodiscard]] bool can_reconnect() const { return !path_.empty(); }

  [[nodiscard]] std::size_t outstanding() const { return outstanding_.size(); }

  /// Messages that no reader of ours can have sent; they are dropped.
  [[nodiscard]] std::uint64_t garbage() const { return garbage_; }

 private:
  void accept(Response response, std::vector<Response>& answers);
  void fail_outstanding(int error, std::vector<Response>& answers);

  util::UniqueFd socket_;
  pid_t reader_;  // 0: none, or it was reaped
  std::string path_;
  std::uint64_t last_id_ = 0;
  std::set<std::uint64_t> outstanding_;
  std::uint64_t garbage_ = 0;
  bool misunderstood_ = false;
  bool ended_ = false;
};

}  // namespace ssdpulse::nvme
