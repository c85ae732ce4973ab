// SPDX-License-Identifier: Apache-2.0
// Request, Response: the messages between the daemon and its NVMe reader, of fixed size, over a SOCK_SEQPACKET pair, in
// the machine's byte order because both ends are the same program. They are not necessarily of the same version: a
// service that was not restarted keeps serving, and a page is a number in a list, so every message carries the version
// that its sender was built with. Neither end trusts the other: a message of the wrong size or without its mark is
// garbage, and command_of (drive_commands.h) decides what a request may ask for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "daemon/nvme_pages/log_page.h"

namespace ssdpulse::nvme_reader {

enum class RequestKind : std::uint8_t {
  identify_controller,
  identify_namespace,
  uuid_list,
  endurance_group_list,
  log_page,
};

/// Version of this protocol with a list of pages; the ends understand each other if theirs are equal. Not 0.
std::uint32_t version_with(std::span<const nvme::LogPage> pages);

/// The version with nvme::log_pages().
std::uint32_t protocol_version();

/// Fields that a request's kind does not use are 0.
struct Request {
  static constexpr std::uint32_t kMark = 0x3152504e;

  std::uint32_t mark = kMark;
  std::uint32_t controller = 0;       // 3 is nvme3
  std::uint64_t id = 0;               // assigned by ReaderClient::send, never 0
  std::uint32_t nsid = 0;             // identify_namespace: which
  std::uint16_t page = 0;             // log_page: index into nvme::log_pages()
  std::uint16_t endurance_group = 0;  // log_page: which, if the page is one of an endurance group
  RequestKind kind = RequestKind::identify_controller;
  std::uint8_t uuid_index = 0;  // log_page: of the page's UUID, if it has one and the drive lists it
  std::array<std::uint8_t, 2> reserved{};
  std::uint32_t version = protocol_version();
};

struct Response {
  static constexpr std::uint32_t kMark = 0x3153504e;

  std::uint32_t mark = kMark;
  std::int32_t result = 0;     // 0; the drive's status, including "do not retry" (4000h); or -errno
  std::uint64_t id = 0;        // the request's; 0: the reader was restarted, earlier requests are lost
  std::uint64_t began_ns = 0;  // CLOCK_MONOTONIC, around the command only; 0: none was sent
  std::uint64_t ended_ns = 0;
  std::uint32_t bytes = 0;  // of `data`; 0 unless the result is 0
  std::uint32_t version = protocol_version();
  std::array<std::uint8_t, nvme::kMaxPageBytes> data{};

  [[nodiscard]] nvme::Bytes content() const { return nvme::Bytes(data).first(bytes); }
};

static_assert(sizeof(Request) == 32 && std::has_unique_object_representations_v<Request>);
static_assert(sizeof(Response) == 40 + nvme::kMaxPageBytes && std::has_unique_object_representations_v<Response>);
static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Response>);

/// Whether a response's parts are consistent with each other.
bool well_formed(const Response& response);

enum class Reception : std::uint8_t {
  message,
  garbage,  // of the wrong size, or without its mark
  nothing,  // there is none now
  ended,    // the other end is gone
};

/// `Message`: Request or Response. `flags`: MSG_DONTWAIT, or 0 to wait.
template <typename Message>
Reception receive_message(int socket, Message& message, int flags);

/// 0 or errno; never raises SIGPIPE.
template <typename Message>
int send_message(int socket, const Message& message, int flags);

/// Whether the other end has been closed by every process that had it.
bool hung_up(int socket);

}  // namespace ssdpulse::nvme_reader
