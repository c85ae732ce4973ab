// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/number_text.h"
#include "daemon/history/file_tools.h"
#include "daemon/history/load_codec.h"

namespace ssdpulse::history {
namespace {

using log::field;
using log::quoted;

bool fits(std::initializer_list<std::string_view> texts, std::size_t max_bytes = model::kMaxNameBytes) {
  return std::all_of(texts.begin(), texts.end(), [=](std::string_view text) { return text.size() <= max_bytes; });
}

bool within_bounds(const model::DriveKey& drive) {
  return fits({drive.serial, drive.model, drive.firmware, drive.nqn});
}

bool within_bounds(const model::DeviceMinute& row) {
  const model::DeviceKey& device = row.device;
  return fits({device.identity, device.without_wwid, device.attached}, model::kMaxIdentityBytes) &&
         fits({device.name, device.model, device.serial}) && row.tenants.size() <= kMaxTenantsOfARow &&
         std::all_of(row.tenants.begin(), row.tenants.end(),
                     [](const model::TenantLoad& tenant) { return fits({tenant.name}); });
}

bool within_bounds(const model::DriveMinute& row) { return within_bounds(row.drive) && fits({row.source}); }
bool within_bounds(const model::DriveState& state) {
  return within_bounds(state.drive) && state.bytes.size() <= model::kMaxStateBytes;
}
bool within_bounds(const model::LatencySpike&) { return true; }
bool within_bounds(const model::PastBurst& burst) { return fits({burst.device, burst.trigger.raw()}); }
bool within_bounds(const model::PastWait& wait) {
  return fits({wait.cause.raw(), wait.subject.raw(), wait.device, wait.tenant, wait.file.raw()}) &&
         fits({wait.evidence.raw()}, model::kMaxSettingBytes);
}
bool within_bounds(const model::SpikeSeconds& row) {
  return fits({row.device}) && row.seconds.size() <= model::kMaxStateBytes;
}
bool within_bounds(const model::Setting& row) {
  return fits({row.device}, model::kMaxIdentityBytes) && fits({row.name, row.value}, model::kMaxSettingBytes);
}
bool within_bounds(const model::Mark& mark) { return fits({mark.text.raw()}, model::kMaxMarkBytes); }

Outcome<void> make_directory(const std::string& directory) {
  constexpr mode_t kMode = 0750;
  if (::mkdir(directory.c_str(), kMode) != 0 && errno != EEXIST) {
    return tl::unexpected(
        Failure{.message = "cannot create " + directory + ": " + std::strerror(errno), .obstacle = obstacle_of(errno)});
  }
  return {};
}

/// Two daemons writing the same minutes would each undo what the other knows.
Outcome<util::UniqueFd> locked(const std::string& directory) {
  auto held = util::lock_directory(directory);
  if (held.valid()) {
    return held;
  }
  if (errno == EWOULDBLOCK) {
    return tl::unexpected(Failure{.message = "another ssdpulse keeps its history in " + directory +
                                             ": stop one of them, or give each a history.directory of its own",
                                  .obstacle = Obstacle::another_daemon});
  }
  return tl::unexpected(
      Failure{.message = "cannot lock " + directory + ": " + std::strerror(errno), .obstacle = obstacle_of(errno)});
}

std::map<std::string, std::uint64_t> unreadable_in(const RowLedger& rows) {
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [table, one] : rows.tables()) {
    if (const auto count = one.removed.at(static_cast<std::size_t>(Removal::unreadable)); count > 0) {
      lost[table] = count;
    }
  }
  return lost;
}

}  // namespace

std::chrono::nanoseconds boot_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

History::History(Options options) : options_(std::move(options)), counted_to_(options_.boottime()) {
  model::for_each_table([&](const char* table, auto) { status_.given[table]; });
}

util::Result<std::unique_ptr<History>> History::open(Options options) {
  if (options.directory.empty() || options.directory.front() != '/') {
    return util::fail("\"" + options.directory + "\" is not an absolute path");
  }
  std::unique_ptr<History> history(new History(std::move(options)));
  try {
    history->thread_ = std::thread([raw = history.get()] { raw->work(); });
  } catch (const std::system_error& error) {
    return util::fail(std::string("cannot start a thread: ") + error.what(), error.code().value());
  }
  return history;
}

History::~History() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    refuse_marks();
  }
  log_unwritten();
}

void History::log_unwritten() const {
  const Status status = this->status();
  std::string tables;
  std::uint64_t rows = 0;
  for (const auto& [table, given] : status.given) {
    rows += given.waiting;
    tables += given.waiting == 0 ? "" : (tables.empty() ? "" : " ") + table + "=" + std::to_string(given.waiting);
  }
  if (rows > 0) {
    log::warning("history closed with rows not written", field("rows", rows), quoted("tables", tables),
                 quoted("reason", status.up ? "its disk does not answer" : status.reason));
  }
}

std::uint64_t Status::sum(std::uint64_t GivenRows::*fate) const {
  return std::accumulate(given.begin(), given.end(), std::uint64_t{0},
                         [&](std::uint64_t sum, const auto& table) { return sum + table.second.*fate; });
}

/// Rows that no file would accept are dropped at once.
void History::receive(model::Batch& batch) {
  model::for_each_table([&](const char* table, auto member) {
    GivenRows& given = status_.given[table];
    given.received += (batch.*member).size();
    given.refused += std::erase_if(batch.*member, [](const auto& row) { return !within_bounds(row); });
    given.waiting += (batch.*member).size();
  });
}

void History::settle(const model::Batch& batch, std::uint64_t GivenRows::*fate) {
  model::for_each_table([&](const char* table, auto member) {
    GivenRows& given = status_.given[table];
    given.waiting -= (batch.*member).size();
    given.*fate += (batch.*member).size();
  });
}

void History::add(model::Batch batch) {
  {
    const std::lock_guard lock(mutex_);
    receive(batch);
    if (batch.rows() > 0) {
      pending_rows_ += batch.rows();
      states_came_ = states_came_ || !batch.states.empty();
      batches_.push_back({std::move(batch), this_minute(), options_.boottime()});
      drop_surplus();
    }
  }
  wake_.notify_one();
}

std::future<util::Result<model::WallTime>> History::keep(model::Mark mark) {
  MarkAnswer answer;
  auto kept = answer.get_future();
  model::Batch batch;
  batch.marks.push_back(std::move(mark));
  {
    const std::lock_guard lock(mutex_);
    receive(batch);
    if (batch.empty()) {
      answer.set_value(util::fail("it is too long"));
      return kept;
    }
    if (!status_.up && status_.obstacle != Obstacle::opening) {
      settle(batch, &GivenRows::surplus);
      answer.set_value(util::fail(status_.reason));
      return kept;
    }
    ++pending_rows_;
    batches_.push_back({std::move(batch), this_minute(), options_.boottime(), std::move(answer)});
    drop_surplus();
  }
  wake_.notify_one();
  return kept;
}

std::future<util::Result<model::Recalled>> History::recall(model::DriveKey drive, model::Minute since) {
  Question question{std::move(drive), since, {}};
  auto answer = question.answer.get_future();
  {
    const std::lock_guard lock(mutex_);
    questions_.push_back(std::move(question));
  }
  wake_.notify_one();
  return answer;
}

void History::suspect() {
  {
    const std::lock_guard lock(mutex_);
    suspected_ = true;
  }
  wake_.notify_one();
}

Status History::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

/// Whoever set one may try again: if it were kept later, it would be there twice.
void History::refuse_marks() {
  pending_rows_ -= std::erase_if(batches_, [&](Waiting& batch) {
    if (batch.answer) {
      settle(batch, &GivenRows::surplus);
      batch.answer->set_value(util::fail(status_.up ? "the daemon is stopping" : status_.reason));
    }
    return batch.answer.has_value();
  });
}

void History::drop_replaced_states() {
  std::vector<model::DriveKey> newer;
  for (auto batch = batches_.rbegin(); batch != batches_.rend(); ++batch) {
    model::Batch replaced;
    std::erase_if(batch->states, [&](const model::DriveState& state) {
      const bool is_replaced = std::find(newer.begin(), newer.end(), state.drive) != newer.end();
      if (is_replaced) {
        replaced.states.push_back({});
      }
      return is_replaced;
    });
    pending_rows_ -= replaced.rows();
    settle(replaced, &GivenRows::replaced);
    for (const model::DriveState& state : batch->states) {
      newer.push_back(state.drive);
    }
  }
  std::erase_if(batches_, [](const model::Batch& batch) { return batch.rows() == 0; });
}

void History::drop_surplus() {
  // This goes through everything that is waiting, so it is repeated only if new states have come.
  if (pending_rows_ > options_.max_pending_rows && states_came_) {
    drop_replaced_states();
    states_came_ = false;
  }
  while (pending_rows_ > options_.max_pending_rows) {
    pending_rows_ -= batches_.front().rows();
    settle(batches_.front(), &GivenRows::surplus);
    if (auto& answer = batches_.front().answer) {
      answer->set_value(util::fail("too much is waiting for the disk"));
    }
    batches_.pop_front();
  }
}

void History::work() {
  ::pthread_setname_np(::pthread_self(), "history");
  do {
    if (suspected_.exchange(false) && std::chrono::steady_clock::now() >= next_suspicion_) {
      store_.reset();
      checked_.reset();
      next_try_ = {};
      next_suspicion_ = std::chrono::steady_clock::now() + options_.retry_interval;
    }
    if (!store_ && std::chrono::steady_clock::now() >= next_try_) {
      open_store();
    }
    answer_questions();
    write_batches();
  } while (wait_for_work());
  // Somebody who made room on a full disk may restart the daemon before its next try.
  if (!store_ && rows_wait()) {
    open_store();
  }
  answer_questions();
  write_batches();
}

bool History::rows_wait() {
  const std::lock_guard lock(mutex_);
  return !batches_.empty();
}

bool History::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return stop_ || suspected_ || !questions_.empty() || (store_ && !batches_.empty()); };
  if (store_) {
    wake_.wait(lock, has_work);
  } else {
    wake_.wait_until(lock, next_try_, has_work);
  }
  return !stop_;
}

void History::open_store() {
  const auto open = [&] {
    lock_.reset();  // our own lock would keep us out
    return make_directory(options_.directory)
        .and_then([&] { return locked(options_.directory); })
        .and_then([&](util::UniqueFd lock) {
          lock_ = std::move(lock);
          take_salvage();
          return Store::open(path(), options_.limits, checked_, stop_);
        });
  };
  auto store = open();
  if (!store && store.error().damaged) {
    if (!set_file_aside(store.error().message)) {
      return;
    }
    store = open();
  }
  if (!store) {
    fail(store.error());
    return;
  }
  store_.emplace(std::move(*store));
  const std::lock_guard lock(mutex_);
  status_.bytes_on_disk = store_->bytes_on_disk();
  if (batches_.empty()) {
    declare_up();  // otherwise once the first is written: opening works even on a full disk
  }
}

void History::declare_up() {
  if (!std::exchange(status_.up, true)) {
    status_.reason.clear();
    log::info("history up", field("file", path()), field("bytes", status_.bytes_on_disk));
  }
}

/// Anything that went wrong: the connection is closed, which undoes what was begun, and reopened a minute later.
void History::fail(const Failure& failure) {
  if (store_ && store_->is_uncorrected()) {
    checked_.reset();  // the next one has to find it again
  }
  store_.reset();
  lock_.reset();  // so that a file system in need of repair can be unmounted
  next_try_ = std::chrono::steady_clock::now() + options_.retry_interval;
  const std::lock_guard lock(mutex_);
  ++status_.failures;
  status_.up = false;
  status_.obstacle = failure.obstacle;
  const std::string before = std::exchange(status_.reason, failure.message);
  refuse_marks();
  if (before != failure.message && !stop_) {
    log::warning("history stopped, measuring continues", field("file", path()), quoted("reason", failure.message));
  }
}

/// A new file is started only a minute later: if every file goes bad, that is one a minute at most.
void History::fail_in_use(const Failure& failure) {
  if (!failure.damaged || set_file_aside(failure.message)) {
    fail(failure);
  }
}

bool History::set_file_aside(const std::string& why) {
  store_.reset();
  checked_.reset();
  const auto now = std::chrono::floor<std::chrono::seconds>(options_.now());
  if (const auto may = may_set_aside(options_.directory, kFileName, now); !may) {
    fail({path() + " " + why + ", and stays where it is: " + may.error().message, true, false, Obstacle::damaged});
    next_try_ += 60 * options_.retry_interval;  // a check takes long, and finds the same
    return false;
  }
  const auto salvaged = salvage(path(), complete_salvage(), stop_);
  if (!salvaged && (stop_ || salvaged.error().obstacle == Obstacle::no_space)) {  // the next try finds the same damage
    fail({.message = path() + " " + why + "; what is readable waits there: " + salvaged.error().message,
          .obstacle = salvaged.error().obstacle});
    return false;
  }
  const auto kept = set_aside(options_.directory, kFileName, now);
  if (!kept) {
    ::unlink(complete_salvage().c_str());
    fail({path() + " " + why + ", and stays where it is: " + kept.error().message, true, false, Obstacle::damaged});
    return false;
  }
  log::warning("history {} {}: set aside as {}, starting a new one", field("file", path()), why, kept->path);
  for (const std::string& removed : kept->removed) {
    log::warning("history removed {}: only the newest {} files set aside are kept", removed, kMaxSetAside);
  }
  const bool goes_on = salvaged && take_salvage();
  if (goes_on) {
    log::warning("history goes on with what was readable", field("file", kept->path),
                 quoted("lost", salvaged->lost_text()));
  } else {
    log::warning("history starts empty, nothing was readable", field("file", kept->path),
                 quoted("reason", salvaged ? "it could not be renamed" : salvaged.error().message));
  }
  const std::lock_guard lock(mutex_);
  ++status_.files_set_aside;
  if (goes_on) {
    for (const auto& [table, rows] : salvaged->lost) {
      status_.rows.remove(table, Removal::unreadable, rows);
    }
    note_lost(salvaged->lost);
  }
  knows_losses_ = true;
  return true;
}

/// The file says how many; the name of the file that it was salvaged from says when.
void History::note_lost_before(Lost since_begun, const Lost& just_now) {
  for (const auto& [table, rows] : just_now) {
    since_begun[table] -= rows;
  }
  std::erase_if(since_begun, [](const auto& table) { return table.second == 0; });
  if (const auto last = last_set_aside(options_.directory, kFileName)) {
    note_lost(since_begun, std::max<std::chrono::nanoseconds>(options_.now() - *last, {}));
  }
}

void History::note_lost(const Lost& rows, std::chrono::nanoseconds ago) {
  const auto now = options_.boottime();
  if (!rows.empty()) {
    lost_.emplace_back(now - ago, rows);
  }
  std::erase_if(lost_, [&](const auto& one) { return now - one.first >= std::chrono::hours(24); });
  status_.unreadable.clear();
  for (const auto& [when, tables] : lost_) {
    for (const auto& [table, lost] : tables) {
      status_.unreadable[table] += lost;
    }
  }
}

/// What was salvaged becomes the file, unless there is one: also after a crash between the two names.
bool History::take_salvage() {
  for (const char* suffix : {".unfinished", ".unfinished-journal"}) {
    ::unlink((complete_salvage() + suffix).c_str());
  }
  std::error_code error;
  if (std::filesystem::exists(path(), error)) {
    ::unlink(complete_salvage().c_str());
    return false;
  }
  return ::rename(complete_salvage().c_str(), path().c_str()) == 0;
}

void History::answer_questions() {
  while (true) {
    std::unique_lock lock(mutex_);
    if (questions_.empty()) {
      return;
    }
    Question question = std::move(questions_.front());
    questions_.pop_front();
    if (!store_) {
      const std::string reason = status_.reason;
      lock.unlock();
      question.answer.set_value(util::fail("no history: " + reason));
      continue;
    }
    lock.unlock();
    auto recalled = store_->recall(question.drive, question.since, this_minute());
    if (recalled) {
      lock.lock();
      status_.rows_unreadable += recalled->unreadable;
      lock.unlock();
      question.answer.set_value(std::move(*recalled));
      continue;
    }
    question.answer.set_value(util::fail("no history: " + recalled.error().message));
    fail_in_use(recalled.error());
  }
}

/// In the log: a clock that went back, and about once a day how much was deleted.
void History::report(const Store::Written& written, std::chrono::nanoseconds boottime) {
  if (written.step_back) {
    log::warning(
        "the clock went back {} {}: what the history was given in between is marked as stamped by a clock ahead",
        field("from", util::utc_text(minute_of(written.step_back->from))),
        field("to", util::utc_text(minute_of(written.step_back->to))));
  }
  if (!written.corrected.empty()) {
    log::warning("history {} contradicted itself, and is corrected: {}", field("file", path()), written.corrected);
  }
  for (const auto& [table, rows] : written.rows.tables()) {
    deleted_unlogged_ += rows.all_removed();
  }
  if (deleted_unlogged_ > 0 && (!deletions_logged_at_ || boottime >= *deletions_logged_at_ + std::chrono::hours(24))) {
    log::info("history deleted {}: see ssdpulse_history_rows_deleted_total", field("rows", deleted_unlogged_));
    deletions_logged_at_ = boottime;
    deleted_unlogged_ = 0;
  }
}

void History::write_batches() {
  while (store_) {
    std::unique_lock lock(mutex_);
    if (batches_.empty()) {
      return;
    }
    Waiting batch = std::move(batches_.front());
    batches_.pop_front();
    pending_rows_ -= batch.rows();
    lock.unlock();

    const auto begin = std::chrono::steady_clock::now();
    using std::chrono::duration_cast, std::chrono::milliseconds;
    const auto written = store_->write(batch, {batch.wall, duration_cast<milliseconds>(batch.boottime - counted_to_)});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const std::uint64_t bytes = store_->bytes_on_disk();
    lock.lock();
    status_.bytes_on_disk = bytes;
    if (written) {
      settle(batch, &GivenRows::written);
      status_.rows += written->rows;
      const Lost lost = unreadable_in(written->rows);
      if (!std::exchange(knows_losses_, true)) {
        note_lost_before(written->unreadable, lost);
      }
      note_lost(lost);
      status_.corrections += written->corrected.empty() ? 0 : 1;
      status_.reach = written->reach;
      status_.last_write_seconds = took.count();
      status_.last_written = this_minute();
      declare_up();
      lock.unlock();
      if (batch.answer) {
        batch.answer->set_value(written->marks.front());
      }
      // What is less than a millisecond is counted the next time.
      counted_to_ += std::max(duration_cast<milliseconds>(batch.boottime - counted_to_), milliseconds(0));
      report(*written, batch.boottime);
      continue;
    }
    if (written.error().refused) {  // now and on every retry
      settle(batch, &GivenRows::refused);
      ++status_.failures;
      log::warning("history dropped", field("rows", batch.rows()), quoted("reason", written.error().message));
      if (batch.answer) {
        batch.answer->set_value(util::fail(written.error().message));
      }
      continue;
    }
    pending_rows_ += batch.rows();
    states_came_ = states_came_ || !batch.states.empty();
    batches_.push_front(std::move(batch));
    drop_surplus();
    lock.unlock();
    fail_in_use(written.error());
  }
}

}  // namespace ssdpulse::history
