// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme/reader_client.h"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "daemon/base/child_process.h"

namespace ssdpulse::nvme {
namespace {

constexpr int kReaderSocket = 3;          // where the subcommand looks for it
constexpr int kMaxMessages = 64;          // in one receive(): it returns, however fast the reader is
constexpr int kExitTimeoutMillis = 1000;  // its supervisor never waits for a drive, so this is ample

}  // namespace

util::Result<std::unique_ptr<ReaderClient>> ReaderClient::spawn(const std::string& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return util::fail_errno("no socket for the NVMe reader");
  }
  util::UniqueFd ours(ends[0]);
  const util::UniqueFd theirs(ends[1]);
  util::SpawnSettings settings;
  ::posix_spawn_file_actions_adddup2(&settings.actions, theirs.get(), kReaderSocket);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, kReaderSocket + 1);
  // The reader must not inherit which signals we block or ignore.
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = "ssdpulse";
  std::string subcommand = "nvme-reader";
  std::array<char*, 3> arguments{name.data(), subcommand.data(), nullptr};
  pid_t reader = 0;
  const int error =
      ::posix_spawn(&reader, program.c_str(), &settings.actions, &settings.attributes, arguments.data(), environ);
  if (error != 0) {
    return util::fail_errno("cannot start the NVMe reader", error);
  }
  return std::make_unique<ReaderClient>(std::move(ours), reader);
}

std::unique_ptr<ReaderClient> ReaderClient::at(std::string path) {
  auto client = std::make_unique<ReaderClient>(util::UniqueFd());
  client->path_ = std::move(path);
  client->ended_ = true;
  return client;
}

util::Result<void> ReaderClient::reconnect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof address.sun_path) {
    return util::fail_errno("no NVMe reader at '" + path_ + "'", path_.empty() ? EPIPE : ENAMETOOLONG);
  }
  std::copy(path_.begin(), path_.end(), address.sun_path);
  // Non-blocking: where many wait to be accepted, connecting would wait, too.
  util::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return util::fail_errno("no NVMe reader at " + path_);
  }
  socket_ = std::move(socket);
  misunderstood_ = false;
  ended_ = false;
  return {};
}

ReaderClient::ReaderClient(util::UniqueFd socket, pid_t reader) : socket_(std::move(socket)), reader_(reader) {}

ReaderClient::~ReaderClient() {
  socket_.reset();
  if (reader_ == 0) {
    return;
  }
  const util::UniqueFd process = util::process_descriptor(reader_);
  pollfd end{process.get(), POLLIN, 0};
  const bool ends = process.valid() && (::poll(&end, 1, kExitTimeoutMillis) > 0 || ::kill(reader_, SIGKILL) == 0);
  // A reader that stays, and that a confined daemon may not kill, dies with us: it asked the kernel for that.
  ::waitpid(reader_, nullptr, ends ? 0 : WNOHANG);
}

util::Result<std::uint64_t> ReaderClient::send(Request request) {
  if (ended()) {
    return util::fail("the NVMe reader has ended", EPIPE);
  }
  if (misunderstood_) {
    return util::fail("the NVMe reader is a different version", EPROTO);
  }
  if (outstanding_.size() >= kMaxOutstanding) {
    return util::fail("the NVMe reader is busy", EAGAIN);
  }
  request.id = ++last_id_;
  const int error = nvme_reader::send_message(socket_.get(), request, MSG_DONTWAIT);
  if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS) {
    return util::fail("the NVMe reader is busy", EAGAIN);
  }
  if (error != 0) {
    ended_ = true;
    return util::fail_errno("the NVMe reader has ended", EPIPE);
  }
  outstanding_.insert(request.id);
  return request.id;
}

std::vector<Response> ReaderClient::receive() {
  std::vector<Response> answers;
  for (int message = 0; message < kMaxMessages; ++message) {
    Response response;
    const nvme_reader::Reception reception = nvme_reader::receive_message(socket_.get(), response, MSG_DONTWAIT);
    if (reception == nvme_reader::Reception::message && response.mark == Response::kMark &&
        response.version != nvme_reader::protocol_version()) {
      misunderstood_ = true;
      fail_outstanding(EPROTO, answers);
    } else if (reception == nvme_reader::Reception::message && nvme_reader::well_formed(response)) {
      accept(response, answers);
    } else if (reception == nvme_reader::Reception::nothing) {
      break;
    } else if (reception == nvme_reader::Reception::ended) {
      ended_ = true;
      break;
    } else {
      ++garbage_;
    }
  }
  if (ended_) {
    fail_outstanding(EPIPE, answers);
  }
  return answers;
}

void ReaderClient::accept(Response response, std::vector<Response>& answers) {
  if (response.id == 0) {
    fail_outstanding(ECONNRESET, answers);
  } else if (outstanding_.erase(response.id) != 0) {
    answers.push_back(response);
  }
  // Otherwise the request has failed already: sent before the reader died, and taken by its successor.
}

void ReaderClient::fail_outstanding(int error, std::vector<Response>& answers) {
  for (const std::uint64_t id : std::exchange(outstanding_, {})) {
    Response response;
    response.id = id;
    response.result = -error;
    answers.push_back(response);
  }
}

bool ReaderClient::ended() {
  if (reader_ != 0 && ::waitpid(reader_, nullptr, WNOHANG) == reader_) {
    reader_ = 0;
    ended_ = true;
  }
  return ended_;
}

}  // namespace ssdpulse::nvme
