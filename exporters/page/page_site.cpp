// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/page_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "exporters/coding/content_coding.h"
#include "exporters/page/asset_table.h"
#include "exporters/page/page_json.h"
#include "exporters/words/page.h"

namespace ssdpulse::page {

namespace {

constexpr std::size_t kMaxSlots = 512;     // answers kept per snapshot: 64 devices with a few viewers each
constexpr std::uint64_t kMaxCatchUp = 30;  // snapshots; a client farther behind gets all, so that answers are few
constexpr const char* kJsonType = "application/json";

std::shared_ptr<const Answer> plain(unsigned status, std::string_view text) {
  return std::make_shared<const Answer>(Answer{status, "text/plain; charset=utf-8", "", "", std::string(text) + "\n"});
}

Answer coded(Answer answer, bool gzip, coding::Effort effort) {
  constexpr std::size_t kMinGzipBytes = 200;
  if (gzip && answer.bytes.size() >= kMinGzipBytes) {
    if (auto bytes = coding::gzip(answer.bytes, effort)) {
      answer.bytes = std::move(*bytes);
      answer.content_encoding = "gzip";
    }
  }
  return answer;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                   : std::nullopt;
}

/// A list of ETags, or *; compared weakly (RFC 9110, 13.1.2).
bool matches(std::string_view if_none_match, std::string_view etag) {
  return !etag.empty() && (if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos);
}

std::shared_ptr<const Answer> unless_known(std::shared_ptr<const Answer> answer, const Question& question) {
  if (answer->status != 200 || !matches(question.if_none_match, answer->etag)) {
    return answer;
  }
  return std::make_shared<const Answer>(Answer{304, answer->content_type, "", answer->etag, ""});
}

/// A request to the API in canonical form: the key under which the answer is kept, and how it is made.
struct Wanted {
  std::string key;
  std::function<Json()> make;
  coding::Effort effort = coding::Effort::usual;
};

using Refusal = std::shared_ptr<const Answer>;

std::optional<flash::WhatIfQuestion> what_if_in(const Question& question) {
  flash::WhatIfQuestion asked;
  if (const std::string text = question.parameter("op"); !text.empty()) {
    const auto shares = flash::percents_in(text);
    if (!shares) {
      return std::nullopt;
    }
    asked.overprovisioning = *shares;
  }
  if (const std::string name = question.parameter("window"); !name.empty()) {
    const auto* found = std::find(model::kFlashWindowNames.begin(), model::kFlashWindowNames.end(), name);
    if (found == model::kFlashWindowNames.end()) {
      return std::nullopt;
    }
    asked.window = static_cast<model::FlashWindow>(found - model::kFlashWindowNames.begin());
  }
  return asked;
}

std::variant<Wanted, Refusal> of_device(const model::Snapshot& snapshot, const history::RecentPast& past,
                                        const std::string& device, std::string_view what, const Question& question) {
  const auto found = std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                                  [&](const model::DeviceSnapshot& entry) { return entry.device->name == device; });
  if (found == snapshot.devices.end()) {
    return plain(404, words::page::kNoSuchDevice);
  }
  if (what == "live") {
    const std::string asked = question.parameter("since");
    const auto since = asked.empty() ? std::optional<std::uint64_t>(0) : number_in(asked);
    const auto heat = operation_in(question.parameter("heat"));
    if (!since || !heat) {
      return plain(400, words::page::kWrongLiveQuery);
    }
    const bool near = *since <= snapshot.number && *since + kMaxCatchUp >= snapshot.number;
    const std::uint64_t from = near ? *since : 0;
    return Wanted{fmt::format("live {} {} {}", device, from, static_cast<int>(*heat)),
                  [&snapshot, &past, device, from, heat] { return live_json(snapshot, past, device, from, *heat); },
                  from == 0 ? coding::Effort::small : coding::Effort::usual};
  }
  if (what == "column") {
    const auto number = number_in(question.parameter("snapshot"));
    if (!number) {
      return plain(400, words::page::kWrongColumnQuery);
    }
    Json column = column_json(snapshot, past, device, *number);
    if (column.is_null()) {
      return plain(404, words::page::kBeyondMemory);
    }
    return Wanted{"", [column] { return column; }};
  }
  if (what == "tenants") {
    return Wanted{"tenants " + device, [&snapshot, &entry = *found] { return tenants_json(entry, snapshot); }};
  }
  if (what == "what-if") {
    const auto asked = what_if_in(question);
    if (!asked) {
      return plain(400, words::page::kWrongWhatIfQuery);
    }
    return Wanted{"", [&snapshot, device, asked = *asked] { return what_if_json(snapshot, device, asked); }};
  }
  return plain(404, words::page::kNoSuchPage);
}

Json why_at(const model::Snapshot& snapshot, const history::RecentPast& past, const AskMoment& ask,
            std::optional<model::WallTime> when) {
  auto situation = spikes::situation_of(snapshot, past);
  if (when && ask && *when <= snapshot.taken_at) {
    auto moment = ask(std::chrono::floor<std::chrono::minutes>(*when));
    if (moment) {
      situation.past = std::move(*moment);
    } else {
      situation.no_past = fmt::format(words::page::kHistorySilent, moment.error().message);
    }
  }
  return why_answer_json(snapshot, spikes::why(situation, when), situation.bursts);
}

std::variant<Wanted, Refusal> wanted(const model::Snapshot& snapshot, const history::RecentPast& past,
                                     const advice::FindingAges& finding_ages, const AskMoment& ask_moment,
                                     const std::string& host, const Question& question) {
  constexpr std::string_view kPrefix = "/api/v1/";
  std::string_view path = question.path;
  path.remove_prefix(std::min(path.size(), kPrefix.size()));
  if (path == "devices") {
    return Wanted{"devices", [&] { return devices_json(snapshot, past); }};
  }
  if (path == "stacks") {
    return Wanted{"stacks", [&] { return stacks_json(snapshot); }};
  }
  if (path == "status") {
    return Wanted{"status", [&] { return status_json(snapshot, past, host); }};
  }
  if (path == "doctor") {
    return Wanted{"doctor", [&] { return doctor_json(snapshot, finding_ages); }};
  }
  if (path == "cost") {
    return Wanted{"cost", [&] { return cost_json(snapshot); }};
  }
  if (path == "why") {
    const std::string at = question.parameter("at");
    const auto time = number_in(at);
    if (!at.empty() && (!time || *time > 4'000'000'000)) {
      return plain(400, words::page::kWrongWhyQuery);
    }
    const auto when = at.empty() ? std::nullopt : std::optional(model::WallTime(std::chrono::seconds(*time)));
    return Wanted{at.empty() ? "why" : "", [&, when] { return why_at(snapshot, past, ask_moment, when); }};
  }
  constexpr std::string_view kDevices = "devices/";
  const auto slash = path.rfind('/');
  if (path.substr(0, kDevices.size()) == kDevices && slash > kDevices.size()) {
    return of_device(snapshot, past, std::string(path.substr(kDevices.size(), slash - kDevices.size())),
                     path.substr(slash + 1), question);
  }
  return plain(404, words::page::kNoSuchPage);
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

const EmbeddedFile* embedded_file(std::string_view path) {
  const auto* found = std::find_if(std::begin(kFiles), std::end(kFiles),
                                   [path](const EmbeddedFile& file) { return file.path == path; });
  return found == std::end(kFiles) ? nullptr : found;
}

std::shared_ptr<Site::Slot> Site::slot(std::map<std::string, std::shared_ptr<Slot>>& slots, const std::string& key) {
  const auto found = slots.find(key);
  if (found != slots.end()) {
    return found->second;
  }
  auto made = std::make_shared<Slot>();
  if (!key.empty() && slots.size() < kMaxSlots) {
    slots.emplace(key, made);
  }
  return made;
}

std::shared_ptr<const Answer> Site::once(Slot& slot, const Make& make) {
  const std::lock_guard lock(slot.mutex);
  if (!slot.answer) {
    slot.answer = std::make_shared<const Answer>(make());
    const std::lock_guard counting(mutex_);
    ++made_;
  }
  return slot.answer;
}

std::shared_ptr<const Answer> Site::file(const Question& question) {
  const EmbeddedFile* found = embedded_file(question.path);
  if (found == nullptr) {
    return plain(404, words::page::kNoSuchPage);
  }
  const bool gzip = coding::prefers_gzip(question.accept_encoding);
  std::shared_ptr<Slot> found_slot;
  {
    const std::lock_guard lock(mutex_);
    found_slot = slot(files_, std::string(found->path) + (gzip ? " gzip" : ""));
  }
  return unless_known(once(*found_slot,
                           [&] {
                             const auto hash = std::hash<std::string_view>{}(found->bytes());
                             Answer answer{200, std::string(found->content_type), "", fmt::format("W/\"{:x}\"", hash),
                                           std::string(found->bytes())};
                             return coded(std::move(answer), gzip, coding::Effort::small);
                           }),
                      question);
}

std::shared_ptr<const Answer> Site::api(const std::shared_ptr<const model::Snapshot>& snapshot,
                                        const Question& question) {
  if (!snapshot) {
    return plain(503, words::page::kNoSampleYet);
  }
  if (question.path == "/api/v1/day") {
    return unless_known(day(*snapshot, coding::prefers_gzip(question.accept_encoding)), question);
  }
  const auto what = wanted(*snapshot, past_, finding_ages_, ask_moment_, host_, question);
  if (const auto* refusal = std::get_if<Refusal>(&what)) {
    return *refusal;
  }
  const auto& [key, make, effort] = std::get<Wanted>(what);
  const bool gzip = coding::prefers_gzip(question.accept_encoding);
  const std::string version = fmt::format("{}-{}", run_of(*snapshot), snapshot->number);
  std::shared_ptr<Slot> found_slot;
  {
    const std::lock_guard lock(mutex_);
    if (version_ != version) {
      slots_.clear();
      version_ = version;
    }
    found_slot = slot(slots_, key.empty() ? "" : key + (gzip ? " gzip" : ""));
  }
  return unless_known(once(*found_slot,
                           [&, &make = make, &effort = effort] {
                             auto bytes = make().dump(-1, ' ', false, Json::error_handler_t::replace);
                             Answer answer{200, kJsonType, "", fmt::format("W/\"{}\"", version), std::move(bytes)};
                             return coded(std::move(answer), gzip, effort);
                           }),
                      question);
}

std::shared_ptr<const Answer> Site::day(const model::Snapshot& snapshot, bool gzip) {
  constexpr std::chrono::seconds kRetryDelay{10};
  const std::lock_guard lock(day_mutex_);
  if (days_ == 0 || snapshot.taken_at < day_.begin || snapshot.taken_at >= day_.end) {
    const auto minute = std::chrono::floor<std::chrono::minutes>(snapshot.taken_at);
    const auto past = ask_day_ ? ask_day_(minute) : util::fail("");
    const std::string reason = past       ? ""
                               : ask_day_ ? fmt::format(words::page::kHistorySilent, past.error().message)
                                          : words::page::kNoHistoryDirectory;
    const bool again = !past && ask_day_;
    Json json = day_json(past ? &*past : nullptr, reason);
    day_ = {again ? snapshot.taken_at : minute,
            again ? snapshot.taken_at + kRetryDelay : minute + std::chrono::minutes(1),
            fmt::format("W/\"{}-day-{}\"", run_of(snapshot), ++days_),
            json.dump(-1, ' ', false, Json::error_handler_t::replace),
            {}};
    const std::lock_guard counting(mutex_);
    ++made_;
  }
  auto& answer = day_.answers[gzip ? 1 : 0];
  if (!answer) {
    answer = std::make_shared<const Answer>(
        coded(Answer{200, kJsonType, "", day_.etag, day_.text}, gzip, coding::Effort::usual));
  }
  return answer;
}

std::uint64_t Site::renderings() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace ssdpulse::page
