// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/drive_poller.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/sources/nvme/identify.h"
#include "daemon/sources/nvme/pages/impossible.h"

namespace ssdpulse::nvme {
namespace {

constexpr unsigned kDoNotRetry = 0x4000;   // in a status as Linux passes it on (include/linux/nvme.h NVME_STATUS_DNR)
constexpr unsigned kStatusCode = 0x07ff;   // including its type
constexpr unsigned kFdpDisabled = 0x0029;  // in this endurance group (TP4146)
constexpr std::uint32_t kFdpAttribute = 1U << 19;

/// The only answers that apply to all drives of the same kind: invalid opcode, invalid field, invalid log page.
constexpr std::array kNoSuchPage{0x0001U, 0x0002U, 0x0109U};

/// A page that was never what its number suggests, this often in a row, is another vendor's.
constexpr unsigned kTriesToUnderstand = 3;

/// Without these limits, a drive that lies could make a poll arbitrarily long.
constexpr std::size_t kMaxPolledGroups = 8;
constexpr std::size_t kMaxNamespaces = 32;

bool is_smart(const LogPage& page) { return page.lid == kSmartLid; }

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
    case EDQUOT:
      return "reader_limit";
    case ECONNRESET:
    case EPIPE:
    case EPROTO:
    case EBUSY:
      return "reader";
    default:
      return "io";
  }
}

}  // namespace

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
  if (steps_.empty()) {
    finish();
  }
}

void DrivePoller::plan_page(const LogPage& page, bool again) {
  if (!page.offered(*identity_) || refused_->contains(*identity_, page)) {
    return;
  }
  const std::size_t before = steps_.size();
  if (!page.per_endurance_group) {
    steps_.push_back({RequestKind::log_page, &page, 0, 0, again});
  } else {
    const auto& groups = identity_->endurance_groups;
    for (std::size_t i = 0; i < std::min(groups.size(), kMaxPolledGroups); ++i) {
      if (!refused_->contains(*identity_, page, groups[i])) {
        steps_.push_back({RequestKind::log_page, &page, groups[i], 0, again});
      }
    }
  }
  if (!again) {
    reading_.asked[&page] = steps_.size() - before;
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
  if (response.began_ns != 0) {  // else no command was sent
    reading_.spent += std::chrono::nanoseconds(response.ended_ns) - std::chrono::nanoseconds(response.began_ns);
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
      if (page.offered(*identity_) && is_refused(page)) {
        reading_.refused_pages.emplace(page.name, refused_->reason(*identity_, page));
      }
    }
  }
}

bool DrivePoller::is_refused(const LogPage& page) const {
  const auto& groups = identity_->endurance_groups;
  return refused_->contains(*identity_, page) ||
         (page.per_endurance_group && !groups.empty() && std::all_of(groups.begin(), groups.end(), [&](auto group) {
            return refused_->contains(*identity_, page, group);
          }));
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
    understand_page(step, response);
    return;
  }
  // Only Identify Controller is needed: the others report more about some drives, whose pages are as good without them.
  const auto garbage = [&] { ++reading_.failures["garbage"]; };
  switch (step.kind) {
    case RequestKind::identify_controller: {
      auto identity = parse_identify_controller(bytes);
      if (!identity) {
        fail("garbage", identity.error().message);
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
        garbage();
      }
      break;
    case RequestKind::endurance_group_list:
      if (auto groups = parse_endurance_group_list(bytes)) {
        identity_->endurance_groups = std::move(*groups);
      } else {
        garbage();
      }
      break;
    case RequestKind::identify_namespace:
      for (model::NvmeNamespace& entry : identity_->namespaces) {
        if (entry.nsid != step.nsid) {
          continue;
        }
        if (!parse_identify_namespace(bytes, entry)) {
          garbage();
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
  // A drive that does not list its groups may still report which one a namespace is in.
  for (const model::NvmeNamespace& entry : identity_->namespaces) {
    auto& groups = identity_->endurance_groups;
    if (entry.endurance_group != 0 && std::find(groups.begin(), groups.end(), entry.endurance_group) == groups.end()) {
      groups.push_back(entry.endurance_group);
    }
  }
  identified_ = true;
  plan_pages();
}

void DrivePoller::understand_page(const Step& step, const Response& response) {
  const Bytes bytes = response.content();
  auto content = step.page->decode(bytes, *identity_);
  std::string kind = bytes.size() < step.page->bytes ? "short" : "garbage";
  if (content) {
    drop_missing_sensors(*content);
    if (const auto impossible = find_impossible(*content)) {
      kind = "impossible";
      content = util::fail("its page " + std::string(step.page->name) + " cannot be true: " + *impossible);
      reading_.impossible = content.error().message;
    }
  }
  if (!content) {
    if (is_smart(*step.page)) {
      fail(kind, content.error().message);
      return;  // every drive has this page: one that is not ready yet is asked until it is
    }
    ++reading_.failures[kind];  // any drive may lack this page: the poll is as good as without it
    if (understood_.count(step.page) == 0 && ++misunderstood_[step.page] >= kTriesToUnderstand) {
      refused_->add_other(*identity_, *step.page, content.error().message);
    }
    reading_.not_understood[step.page] = content.error().message;
    return;
  }
  understood_.insert(step.page);
  refused_->understood(*identity_, *step.page);
  PageReading reading{step.page, step.endurance_group, std::chrono::nanoseconds(response.ended_ns),
                      std::move(*content)};
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
  // Only SMART and Identify Controller are mandatory; that a drive has nothing else is not a failure of the poll.
  const bool for_good = (status & kDoNotRetry) != 0;
  ++reading_.failures[for_good ? "refused" : "error"];
  const bool duty = step.page != nullptr ? is_smart(*step.page) : step.kind == RequestKind::identify_controller;
  if (duty && reading_.reason.empty()) {
    reading_.reason = "the drive refuses " + what + " with status " + text;
  } else if (step.page == nullptr || duty) {
    // Nothing is remembered about these.
  } else if ((status & kStatusCode) == kFdpDisabled && step.page->per_endurance_group) {
    refused_->add(*identity_, *step.page, step.endurance_group);
  } else if (for_good && std::count(kNoSuchPage.begin(), kNoSuchPage.end(), status & kStatusCode) != 0) {
    refused_->add_missing(*identity_, *step.page);
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
