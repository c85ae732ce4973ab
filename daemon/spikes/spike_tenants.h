// SPDX-License-Identifier: Apache-2.0
// SpikeTenants: the tenants that did more than usual in a spike, and those that it slowed. UsualTenants and
// UsualSenders learn what is usual outside spikes: averages over about the last two minutes. Memory is bounded by the
// number of tenants at a time. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "daemon/model/latency_spike.h"
#include "daemon/model/tenant_io.h"
#include "daemon/model/tenant_steps.h"

namespace ssdpulse::spikes {

/// What tenants did in a window, by name.
using TenantWork = std::map<std::string, model::TenantDone>;

/// What each tenant does when nothing is wrong.
class UsualTenants {
 public:
  static constexpr double kSeconds = 120;  // time constant
  static constexpr std::size_t kMaxTenants = 2048;

  /// Per second.
  struct Rates {
    double bytes = 0;  // read and written
    double commits = 0;
    double writes = 0;
  };

  /// Learns from a window outside spikes of this operation. `seconds`: its length.
  void learn(const TenantWork& work, model::Operation operation, double seconds);

  /// Seconds per I/O; absent until one has been seen.
  [[nodiscard]] std::optional<double> seconds(const std::string& tenant, model::Operation operation) const;
  /// 0 for a tenant that was not seen.
  [[nodiscard]] Rates rates(const std::string& tenant) const;

 private:
  struct Mean {
    double ios = 0;
    double bytes = 0;
    double commits = 0;
    double device_seconds = 0;
  };
  std::map<std::string, model::ByOperation<Mean, model::kAttributedOperations>> tenants_;
  model::ByOperation<double, model::kAttributedOperations> learned_seconds_{};
};

/// Heaviest: the tenants whose bytes exceed their own usual bytes the most: of reads and writes, or of discards if
/// discards are the cause. Committers: the same by flushes and FUA writes; where the root leads, whose commits are
/// those of a file system's journal, the tenant that exceeds its usual number of writes the most is listed before it.
/// Nobody is listed in either where the first tenant has no real part in the excess.
///
/// Slowed: in a spike of reads (or writes), the tenants whose reads (writes) took the most device time in total beyond
/// the usual mean of the same tenant; a tenant that was not seen before the spike has no usual mean, and is not listed.
/// In a spike of commits or flushes, the excess is shared out by the number of commits. The commits of a file system's
/// journal belong to the root: they are counted for the one tenant that does nearly all of the other writes, if any.
class SpikeTenants {
 public:
  /// `usual`: from before the spike.
  explicit SpikeTenants(UsualTenants usual) : usual_(std::move(usual)) {}

  void add(const TenantWork& work, double seconds);
  /// Fills in heaviest, committers, slowed and active_tenants, by the spike's operation, cause and excess.
  void describe(model::LatencySpike& spike) const;

 private:
  [[nodiscard]] std::map<std::string, double> waits(const model::LatencySpike& spike) const;
  [[nodiscard]] std::optional<std::string> only_writer() const;

  UsualTenants usual_;
  TenantWork done_;
  double seconds_ = 0;
};

/// The operation whose device times show which tenants a spike of this operation slows.
model::Operation attributed_operation(model::Operation operation);

/// Who sends a device its reads and writes when nothing is wrong, and how much of each. Distinguishes load that other
/// tenants bring from load of those that wait for the I/Os. Learns windows in which nothing was slow; the caller makes
/// sure of that.
class UsualSenders {
 public:
  static constexpr double kSeconds = 120;    // time constant
  static constexpr double kMinShare = 0.05;  // of the operation's I/Os: with less, a tenant is not one of its senders
  static constexpr std::size_t kMaxTenants = 2048;

  void learn(const TenantWork& work, double seconds);

  /// Reads or writes, whichever is higher, of those who usually send this operation, relative to what they usually
  /// send: in I/Os or in bytes. Absent if it is not known who sends most of its `usual_rate` I/Os per second. `work`:
  /// of some windows, `seconds` in all.
  [[nodiscard]] std::optional<double> load(model::Operation operation, double usual_rate,
                                           std::span<const TenantWork* const> work, double seconds) const;

 private:
  struct Rate {
    double ios = 0;  // per second, as bytes
    double bytes = 0;
  };
  using Rates = std::array<Rate, 2>;  // reads, writes

  double weight_ = 0;
  std::map<std::string, Rates> tenants_;
};

}  // namespace ssdpulse::spikes
