// SPDX-License-Identifier: Apache-2.0
// History: past minutes, events and the states of the drives' ledgers, kept in ssdpulse.db by a thread of its own.
//
// Nothing here makes the caller wait for a disk. A file that cannot be used (full disk, no permission, no directory)
// stops the history with a reason, and is retried every minute; a damaged one is set aside and a new one started.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/history/file_account.h"
#include "daemon/history/store.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

inline constexpr const char* kFileName = "ssdpulse.db";

/// CLOCK_BOOTTIME: nobody sets it, and it goes on while the host sleeps.
std::chrono::nanoseconds boot_clock();

struct Options {
  std::string directory;  // absolute; created if its parent exists
  StoreLimits limits = {};
  std::size_t max_pending_rows = 4096;                                 // waiting for the disk
  std::chrono::milliseconds retry_interval = std::chrono::minutes(1);  // while the history is down
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;  // called by any thread
  std::function<std::chrono::nanoseconds()> boottime = boot_clock;                              // likewise
};

/// What became of the rows of a table that this process gave to the history: each received row is in exactly one of the
/// other counts.
struct GivenRows {
  std::uint64_t received = 0;
  std::uint64_t waiting = 0;   // for the disk
  std::uint64_t written = 0;   // and on the disk
  std::uint64_t replaced = 0;  // by a later one, before it was written
  std::uint64_t refused = 0;   // one exceeded its bound, or the file refused its batch
  std::uint64_t surplus = 0;   // too many were waiting, or the mark could not be kept at once
  bool operator==(const GivenRows&) const = default;
};

struct Status {
  bool up = false;
  std::string reason = "it is being opened: a large file is checked first, and rows wait";  // why not up
  Obstacle obstacle = Obstacle::opening;            // undefined when up, like the reason
  std::map<std::string, GivenRows> given;           // by table; all counts are for this process
  RowLedger rows;                                   // what became of those in the file
  std::uint64_t rows_unreadable = 0;                // found by recall: someone edited the file
  std::uint64_t failures = 0;                       // of opening, reading or writing
  std::uint64_t files_set_aside = 0;                // damaged, or of another version
  std::map<std::string, std::uint64_t> unreadable;  // by table: rows of the file found lost in the last 24 hours
  std::uint64_t corrections = 0;                    // of a file's account, where its rows contradicted it
  std::uint64_t bytes_on_disk = 0;                  // database and journal
  model::PastReach reach;                           // after the last write
  double last_write_seconds = 0;                    // how long the last batch took
  std::optional<model::Minute> last_written;        // when, by the wall clock

  [[nodiscard]] std::uint64_t sum(std::uint64_t GivenRows::*fate) const;
  [[nodiscard]] std::uint64_t rows_written() const { return sum(&GivenRows::written); }
  [[nodiscard]] std::uint64_t rows_dropped() const { return sum(&GivenRows::refused) + sum(&GivenRows::surplus); }
};

class History {
 public:
  /// Starts the thread (which inherits the rights and the signal mask of the caller); the file is opened there. An
  /// error means that the options are wrong; anything wrong with the disk shows in status().
  static util::Result<std::unique_ptr<History>> open(Options options);

  /// Makes one last attempt to flush, reopening the file only if it was open before (a first check would delay exit).
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  /// One transaction. While the history is down, batches wait. Beyond the bound, states that later ones replace are
  /// dropped first, which is no loss; then the oldest batches.
  void add(model::Batch batch);

  /// Answered once it is on the disk, with the time under which it is kept there: that of the first mark with its id.
  /// An error if it is not kept, now or later: a mark does not wait for a history that is down. Whoever sets it is
  /// waiting, and may try again.
  std::future<util::Result<model::WallTime>> keep(model::Mark mark);

  /// Answered by the thread, before anything added later; an error while the history is down. Rows from `since` to now,
  /// of any firmware of that drive.
  std::future<util::Result<model::Recalled>> recall(model::DriveKey drive, model::Minute since);

  /// Somebody found the file damaged: it is checked, and everything readable goes to a new one.
  void suspect();

  [[nodiscard]] Status status() const;

  /// One line in the log if rows wait for the disk: how many, of which tables. Any thread; never waits.
  void log_unwritten() const;

 private:
  struct Question {
    model::DriveKey drive;
    model::Minute since;
    std::promise<util::Result<model::Recalled>> answer;
  };
  using MarkAnswer = std::promise<util::Result<model::WallTime>>;
  using Lost = std::map<std::string, std::uint64_t>;  // rows, by table

  /// A batch, and what the clocks showed when it came.
  struct Waiting : model::Batch {
    model::Minute wall;
    std::chrono::nanoseconds boottime{};
    std::optional<MarkAnswer> answer = {};  // of keep(): the batch is one mark
  };

  explicit History(Options options);

  void work();
  bool wait_for_work();  // false: at the end
  bool rows_wait();
  void open_store();
  void answer_questions();
  void write_batches();
  void fail(const Failure& failure);
  void fail_in_use(const Failure& failure);
  bool set_file_aside(const std::string& why);
  bool take_salvage();
  void report(const Store::Written& written, std::chrono::nanoseconds boottime);
  void note_lost(const Lost& rows, std::chrono::nanoseconds ago = {});  // with the mutex held, like the next five
  void note_lost_before(Lost since_begun, const Lost& just_now);
  void declare_up();
  void refuse_marks();
  void drop_replaced_states();
  void drop_surplus();
  void receive(model::Batch& batch);
  void settle(const model::Batch& batch, std::uint64_t GivenRows::*fate);
  [[nodiscard]] model::Minute this_minute() const { return std::chrono::floor<std::chrono::minutes>(options_.now()); }
  [[nodiscard]] std::string path() const { return options_.directory + "/" + kFileName; }
  [[nodiscard]] std::string complete_salvage() const { return path() + ".salvage"; }

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows, up to the thread's own
  std::condition_variable wake_;
  std::deque<Waiting> batches_;
  std::size_t pending_rows_ = 0;
  bool states_came_ = false;  // since replaced ones were last dropped
  std::deque<Question> questions_;
  Status status_;

  std::atomic<bool> stop_ = false;
  std::atomic<bool> suspected_ = false;
  // The thread's own.
  util::UniqueFd lock_;  // of the directory, held longer than the file in it
  std::optional<Store> store_;
  std::optional<FileIdentity> checked_;
  std::chrono::steady_clock::time_point next_try_;
  std::chrono::steady_clock::time_point next_suspicion_;  // a check reads the whole file: at most one a retry interval
  std::chrono::nanoseconds counted_to_;  // CLOCK_BOOTTIME: the file counts what was measured until then
  std::optional<std::chrono::nanoseconds> deletions_logged_at_;
  std::uint64_t deleted_unlogged_ = 0;
  std::deque<std::pair<std::chrono::nanoseconds, Lost>> lost_;  // of the last 24 hours, by CLOCK_BOOTTIME
  bool knows_losses_ = false;                                   // from before this process, too
  std::thread thread_;
};

}  // namespace ssdpulse::history
