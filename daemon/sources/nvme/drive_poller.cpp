// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/drive_poller.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/sources/nvme/identify.h"

namespace ssdpulse::nvme {
namespace {

constexpr unsigned kDoNotRetry = 0x4000;  // in a status as Linux passes it on (include/linux/nvme.h NVME_STATUS_DNR)
constexpr std::uint32_t kFdpAttribute = 1U << 19;

/// A page that is not what its number says, this often in a row and never otherwise, is another vendor's.
constexpr unsigned kTriesToUnderstand = 3;

/// Of more, a drive that lies could make a poll as long as it likes.
constexpr std::size_t kMaxEnduranceGroups = 8;
constexpr std::size_t kMaxNamespaces = 32;

bool is_smart(const LogPage& page) { return page.lid == kSmartLid; }

auto key_of(const model::NvmeIdentity& identity, const LogPage& page) {
  return std::tuple(identity.vendor_id, identity.model, identity.firmware, page.name);
}

/// What an errno of the reader means for the drive.
const char* failure_kind(int error_number) {
  switch (error_number) {
    case ENODEV:
    case ENXIO:
    case ENOENT:
      return "gone";
    case EAGAIN:
      return "not_live";
    case ETIME:
    case ETIMEDOUT:
    case EINTR:
      return "timeout";
    case EACCES:
    case EPERM:
      return "not_permitted";
    case ECONNRESET:
    case EPIPE:
    case EBUSY:
      return "reader";
    default:
      return "io";
  }
}

}  // namespace

void RefusedPages::add(const model::NvmeIdentity& identity, const LogPage& page) {
  refused_.insert(key_of(identity, page));
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page) const {
  return refused_.count(key_of(identity, page)) != 0;
}

void DrivePoller::begin(Extent extent) {
  busy_ = true;
  reading_ = {};
  steps_.clear();
  wants_media_ = extent != Extent::wear;
  if (!identified_ || extent == Extent::all) {
    wants_media_ = true;
    identified_ = false;
    steps_.push_back({RequestKind::identify_controller});
  } else {
    plan_pages();
  }
}

void DrivePoller::plan_page(const LogPage& page, bool again) {
  if (!page.offered(*identity_) || refused_->contains(*identity_, page)) {
    return;
  }
  if (!page.per_endurance_group) {
    steps_.push_back({RequestKind::log_page, &page, 0, 0, again});
    return;
  }
  const auto& groups = identity_->endurance_groups;
  for (std::size_t i = 0; i < std::min(groups.size(), kMaxEnduranceGroups); ++i) {
    steps_.push_back({RequestKind::log_page, &page, groups[i], 0, again});
  }
}

void DrivePoller::plan_pages() {
  const auto pages = log_pages();
  const auto smart = std::find_if(pages.begin(), pages.end(), is_smart);
  if (smart != pages.end()) {
    plan_page(*smart);
  }
  if (!wants_media_) {
    return;
  }
  reading_.media_asked = true;
  for (const LogPage& page : pages) {
    if (!page.source.empty()) {
      plan_page(page);
    }
  }
  if (smart != pages.end()) {
    plan_page(*smart, true);
  }
  for (const LogPage& page : pages) {
    if (page.source.empty() && !is_smart(page)) {
      plan_page(page);
    }
  }
}

std::uint8_t DrivePoller::uuid_index(const LogPage& page) const {
  if (page.uuid == nullptr) {
    return 0;
  }
  const auto& uuids = identity_->uuids;
  const auto found = std::find(uuids.begin(), uuids.end(), *page.uuid);
  // 7 bits in the command; the list has at most 127 entries.
  return found == uuids.end() ? std::uint8_t{0} : static_cast<std::uint8_t>(found - uuids.begin() + 1);
}

std::optional<Request> DrivePoller::next() {
  if (!busy_ || outstanding_ || steps_.empty()) {
    return std::nullopt;
  }
  outstanding_ = steps_.front();
  steps_.pop_front();
  Request request;
  request.controller = subsystem_.controller;
  request.kind = outstanding_->kind;
  request.nsid = outstanding_->nsid;
  if (outstanding_->page != nullptr) {
    request.page = static_cast<std::uint16_t>(outstanding_->page - log_pages().data());
    request.endurance_group = outstanding_->endurance_group;
    request.uuid_index = uuid_index(*outstanding_->page);
  }
  return request;
}

void DrivePoller::answer(const Response& response) {
  if (!outstanding_) {
    return;
  }
  const Step step = *std::exchange(outstanding_, std::nullopt);
  const std::chrono::nanoseconds began(response.began_ns);
  const std::chrono::nanoseconds ended(response.ended_ns);
  if (response.began_ns != 0) {  // else no command was sent
    if (reading_.began.count() == 0) {
      reading_.began = began;
    }
    reading_.ended = ended;
    reading_.spent += ended - began;
  }
  understand(step, response);
  if (steps_.empty()) {
    finish();
  }
}

void DrivePoller::finish() {
  busy_ = false;
  finished_ = true;
  if (identified_) {
    reading_.identity = identity_;
    for (const LogPage& page : log_pages()) {
      if (page.offered(*identity_) && refused_->contains(*identity_, page)) {
        reading_.refused_pages.push_back(page.name);
      }
    }
  }
}

void DrivePoller::fail(const std::string& kind, const std::string& reason) {
  ++reading_.failures[kind];
  if (reading_.reason.empty()) {
    reading_.reason = reason;
  }
}

void DrivePoller::understand(const Step& step, const Response& response) {
  if (response.result < 0) {
    // Whatever is left of this poll would fare no better.
    steps_.clear();
    fail(failure_kind(-response.result), std::strerror(-response.result));
    return;
  }
  if (response.result > 0) {
    refuse(step, static_cast<unsigned>(response.result));
    return;
  }
  const Bytes bytes = response.content();
  if (step.kind == RequestKind::log_page) {
    understand_page(step, bytes);
    return;
  }
  const auto fail_to_parse = [&](const util::Error& error) { fail("garbage", error.message); };
  switch (step.kind) {
    case RequestKind::identify_controller: {
      auto identity = parse_identify_controller(bytes);
      if (!identity) {
        fail_to_parse(identity.error());
        return;
      }
      identity_ = std::make_shared<model::NvmeIdentity>(std::move(*identity));
      identity_->controller = "nvme" + std::to_string(subsystem_.controller);
      identity_->subsystem_nqn = subsystem_.nqn;
      identity_->transport = subsystem_.transport;
      identity_->namespaces = subsystem_.namespaces;
      misunderstood_.clear();
      plan_identification();
      break;
    }
    case RequestKind::uuid_list:
      if (auto uuids = parse_uuid_list(bytes)) {
        identity_->uuids = std::move(*uuids);
      } else {
        fail_to_parse(uuids.error());
      }
      break;
    case RequestKind::endurance_group_list:
      if (auto groups = parse_endurance_group_list(bytes)) {
        identity_->endurance_groups = std::move(*groups);
      } else {
        fail_to_parse(groups.error());
      }
      break;
    case RequestKind::identify_namespace:
      for (model::NvmeNamespace& entry : identity_->namespaces) {
        if (entry.nsid != step.nsid) {
          continue;
        }
        if (const auto parsed = parse_identify_namespace(bytes, entry); !parsed) {
          fail_to_parse(parsed.error());
        }
      }
      break;
    case RequestKind::log_page:
      break;
  }
  finish_identification();
}

void DrivePoller::plan_identification() {
  if (has_uuid_list(*identity_)) {
    steps_.push_back({RequestKind::uuid_list});
  }
  if (has_endurance_group_list(*identity_) || (identity_->controller_attributes & kFdpAttribute) != 0) {
    steps_.push_back({RequestKind::endurance_group_list});
  }
  for (std::size_t i = 0; i < std::min(identity_->namespaces.size(), kMaxNamespaces); ++i) {
    steps_.push_back({RequestKind::identify_namespace, nullptr, 0, identity_->namespaces[i].nsid});
  }
}

void DrivePoller::finish_identification() {
  if (identified_ || identity_ == nullptr || !steps_.empty()) {
    return;
  }
  // A drive that does not list its groups may still say which one a namespace lies in.
  for (const model::NvmeNamespace& entry : identity_->namespaces) {
    auto& groups = identity_->endurance_groups;
    if (entry.endurance_group != 0 && std::find(groups.begin(), groups.end(), entry.endurance_group) == groups.end()) {
      groups.push_back(entry.endurance_group);
    }
  }
  identified_ = true;
  plan_pages();
}

void DrivePoller::understand_page(const Step& step, Bytes bytes) {
  auto content = step.page->decode(bytes, *identity_);
  if (!content) {
    const std::string kind = bytes.size() < step.page->bytes ? "short" : "garbage";
    if (is_smart(*step.page)) {
      fail(kind, content.error().message);  // and asked for again: without it there is no poll
      return;
    }
    ++reading_.failures[kind];  // a page that every drive may lack: the poll is as good as without it
    if (understood_.count(step.page) == 0 && ++misunderstood_[step.page] >= kTriesToUnderstand) {
      refused_->add(*identity_, *step.page);
    }
    return;
  }
  understood_.insert(step.page);
  PageReading reading{step.page, step.endurance_group, std::move(*content)};
  if (step.again) {
    reading_.smart_again = std::move(reading);
  } else {
    reading_.pages.push_back(std::move(reading));
  }
}

void DrivePoller::refuse(const Step& step, unsigned status) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 12; shift >= 0; shift -= 4) {
    text += kDigits[(status >> shift) & 0xf];
  }
  const std::string what = step.page != nullptr ? std::string(step.page->name) : std::string("identify");
  // Only SMART and Identify are a drive's duty; that it has no more than those is no failure of the poll.
  const bool for_good = (status & kDoNotRetry) != 0;
  ++reading_.failures[for_good ? "refused" : "error"];
  if (step.page == nullptr || is_smart(*step.page)) {
    if (reading_.reason.empty()) {
      reading_.reason = "the drive refuses " + what + " with status " + text;
    }
  } else if (for_good) {
    refused_->add(*identity_, *step.page);
  }
  if (step.kind == RequestKind::identify_controller) {
    steps_.clear();
  } else if (step.kind != RequestKind::log_page) {
    finish_identification();
  }
}

std::optional<DriveReading> DrivePoller::take() {
  if (busy_ || !finished_) {
    return std::nullopt;
  }
  finished_ = false;
  return std::move(reading_);
}

}  // namespace ssdpulse::nvme
