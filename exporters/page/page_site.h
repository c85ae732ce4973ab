// SPDX-License-Identifier: Apache-2.0
// Site: what a browser or `ssdpulse top` gets: the page's files, the runbooks, and /api/v1 as JSON. Knows nothing about
// sockets. An answer of the API is made once per snapshot and coding, on first demand, and shared by all clients; all
// are dropped with the next snapshot. That for the day is made once a minute. Files never change: they are compressed
// once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/advice/doctor.h"
#include "daemon/base/result.h"
#include "daemon/history/recent_past.h"
#include "daemon/model/history_answers.h"

namespace ssdpulse::page {

/// A file of the page, in the binary as it is in assets/ or in deploy/runbooks; or catalogue.js, its texts.
struct EmbeddedFile {
  std::string_view path;  // of the URL: "/" (index.html), /app.js, /runbooks/NAME.md
  std::string_view content_type;
  const char* begin;
  const char* end;

  [[nodiscard]] std::string_view bytes() const { return {begin, static_cast<std::size_t>(end - begin)}; }
};

std::span<const EmbeddedFile> embedded_files();

/// Null if there is none with this path.
const EmbeddedFile* embedded_file(std::string_view path);

struct Question {
  std::string path;
  std::function<std::string(std::string_view)> parameter;  // of the query; empty if absent
  std::string accept_encoding;
  std::string if_none_match;
};

struct Answer {
  unsigned status = 200;
  std::string content_type;
  std::string content_encoding;  // gzip, or empty
  std::string etag;              // empty: none
  std::string bytes;
};

/// Returns what the history knows about the minute that begins then; may take seconds. Called on any thread.
using AskMoment = std::function<util::Result<model::PastMoment>(model::PastTime)>;

/// Returns what the history knows about the day until then; likewise.
using AskDay = std::function<util::Result<model::PastDay>(model::PastTime)>;

/// Thread-safe. Keeps references to the past and the findings' ages, which must outlive it. `ask_moment` and `ask_day`
/// empty: no history is kept. `host`: its name; empty: not known.
class Site {
 public:
  Site(const history::RecentPast& past, const advice::FindingAges& finding_ages, AskMoment ask_moment = {},
       AskDay ask_day = {}, std::string host = "")
      : past_(past),
        finding_ages_(finding_ages),
        ask_moment_(std::move(ask_moment)),
        ask_day_(std::move(ask_day)),
        host_(std::move(host)) {}

  /// Paths of the page's files and runbooks, including "/".
  [[nodiscard]] std::shared_ptr<const Answer> file(const Question& question);

  /// Paths that begin with /api/v1/. `snapshot` null: no sample was taken yet.
  [[nodiscard]] std::shared_ptr<const Answer> api(const std::shared_ptr<const model::Snapshot>& snapshot,
                                                  const Question& question);

  /// How many answers have been made.
  [[nodiscard]] std::uint64_t renderings() const;

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Answer> answer;
  };
  using Make = std::function<Answer()>;
  std::shared_ptr<Slot> slot(std::map<std::string, std::shared_ptr<Slot>>& slots, const std::string& key);
  std::shared_ptr<const Answer> once(Slot& slot, const Make& make);
  std::shared_ptr<const Answer> day(const model::Snapshot& snapshot, bool gzip);

  const history::RecentPast& past_;
  const advice::FindingAges& finding_ages_;
  const AskMoment ask_moment_;
  const AskDay ask_day_;
  const std::string host_;
  mutable std::mutex mutex_;  // never held while an answer is made
  std::string version_;       // run and snapshot that slots_ belong to
  std::map<std::string, std::shared_ptr<Slot>> slots_;
  std::map<std::string, std::shared_ptr<Slot>> files_;
  std::uint64_t made_ = 0;

  /// The answer of /api/v1/day: valid for a minute, or for some seconds if the history did not answer.
  struct Day {
    model::WallTime begin;  // of the time for which it is valid; `end` likewise
    model::WallTime end;
    std::string etag;
    std::string text;
    std::array<std::shared_ptr<const Answer>, 2> answers;  // plain, gzip
  };
  std::mutex day_mutex_;  // held while the history is asked: all requests meanwhile get the same answer
  Day day_;
  std::uint64_t days_ = 0;
};

}  // namespace ssdpulse::page
