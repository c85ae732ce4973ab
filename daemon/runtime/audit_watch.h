// SPDX-License-Identifier: Apache-2.0
// AuditWatch: judges by the rules of the audit every few minutes, on a thread of its own, because asking a file system
// how full it is may wait for that file system. It keeps what is in danger or advised, and nobody has accepted.
// The thread ends with the AuditWatch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/model/finding.h"
#include "daemon/web/current_snapshot.h"

namespace ssdpulse::runtime {

/// Thread-safe.
class AuditWatch {
 public:
  /// Between two looks: some fifty small files for each device, and one rendering of the metrics.
  static constexpr std::chrono::minutes kInterval{5};

  using Findings = std::vector<model::Finding>;

  /// `current` must live longer.
  explicit AuditWatch(const web::CurrentSnapshot& current);
  ~AuditWatch();
  AuditWatch(const AuditWatch&) = delete;
  AuditWatch& operator=(const AuditWatch&) = delete;

  /// What is on the host from now on. Never waits for a look.
  void observe(std::shared_ptr<const model::Inventory> inventory);

  /// Of the newest look, sorted as the audit sorts them; null before the first one.
  [[nodiscard]] std::shared_ptr<const Findings> findings() const;

 private:
  void work();
  [[nodiscard]] std::shared_ptr<const Findings> look(const model::Inventory& inventory) const;

  const web::CurrentSnapshot& current_;
  mutable std::mutex mutex_;  // never held during a look
  std::condition_variable wake_;
  std::shared_ptr<const model::Inventory> inventory_;
  std::shared_ptr<const Findings> findings_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ssdpulse::runtime
