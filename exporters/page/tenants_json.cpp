// SPDX-License-Identifier: Apache-2.0
// Whose I/O it is on one device, how it enters the kernel, and what was declared about writes: totals since the daemon
// started.
#include <array>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/tenant_io.h"
#include "exporters/page/page_json.h"

namespace ssdpulse::page {
namespace {

using model::Operation;

struct NamedTotals {
  std::string name;
  const model::TotalsByOperation& totals;
  Json title = absent();
};

template <Operation kOperation>
Json totals_of(const NamedTotals& one) {
  return attributed_json(one.totals[kOperation]);
}

constexpr Field<NamedTotals> kNamedTotalsFields[] = {
    {"name", kText, text_of<&NamedTotals::name>},
    {"read", defined_as("attributed"), [](const NamedTotals& one) { return totals_of<Operation::read>(one); }},
    {"write", defined_as("attributed"), [](const NamedTotals& one) { return totals_of<Operation::write>(one); }},
    {"discard", defined_as("attributed"), [](const NamedTotals& one) { return totals_of<Operation::discard>(one); }},
    {"title", may_be_absent(kText), member_of<&NamedTotals::title>, "For people: the root's is not its name."},
};
constexpr Object<NamedTotals> kNamedTotals{"tenant", "", kNamedTotalsFields};

struct Hint {
  const model::WriteDetails& writes;
  std::size_t hint;
};

constexpr Field<Hint> kHintFields[] = {
    {"name", one_of(model::kWriteHintNames), [](const Hint& one) { return model::kWriteHintNames.at(one.hint); }},
    {"ios", kCount, [](const Hint& one) { return one.writes.hint_ios.at(one.hint); }},
    {"bytes", kCount, [](const Hint& one) { return one.writes.hint_bytes.at(one.hint); }},
    {"device_seconds", kSeconds,
     [](const Hint& one) { return static_cast<double>(one.writes.hint_latency.at(one.hint).sum_ns) / 1e9; }},
};
constexpr Object<Hint> kHint{"hint", "", kHintFields};

struct NamedBytes {
  std::string name;
  std::uint64_t bytes;
};

constexpr Field<NamedBytes> kNamedBytesFields[] = {
    {"name", kText, member_of<&NamedBytes::name>},
    {"bytes", kCount, member_of<&NamedBytes::bytes>},
};
constexpr Object<NamedBytes> kNamedBytes{"named_bytes", "", kNamedBytesFields};

Json hints_of(const model::WriteDetails& writes) {
  Json hints = Json::array();
  for (std::size_t i = 0; i < model::kWriteHints; ++i) {
    hints.push_back(kHint({writes, i}));
  }
  return hints;
}

Json classes_of(const model::WriteDetails& writes) {
  Json classes = Json::array();
  for (std::size_t i = 0; i < model::kWriteClasses; ++i) {
    classes.push_back(kNamedBytes({std::string(model::kWriteClassNames.at(i)), writes.class_bytes.at(i)}));
  }
  return classes;
}

Json streams_of(const model::WriteDetails& writes) {
  Json streams = Json::array();
  for (const auto& [stream, bytes] : writes.stream_bytes) {
    streams.push_back(kNamedBytes({std::to_string(stream), bytes}));
  }
  return streams;
}

constexpr Field<model::WriteDetails> kWritesFields[] = {
    {"hints", list_of(defined_as("hint")), [](const model::WriteDetails& writes) { return hints_of(writes); },
     "By the lifetime that the writer declared."},
    {"classes", list_of(defined_as("named_bytes")),
     [](const model::WriteDetails& writes) { return classes_of(writes); }, "By who made them."},
    {"streams", list_of(defined_as("named_bytes")),
     [](const model::WriteDetails& writes) { return streams_of(writes); },
     "By the stream that they named; those that did."},
};
constexpr Object<model::WriteDetails> kWrites{"writes", "", kWritesFields};

/// Counted only in full mode; null in completion-only mode, as nothing is known then.
Json writes_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot) {
  if (snapshot.latency_mode == "completion-only" || !device.io) {
    return {};
  }
  return kWrites(device.io->writes);
}

constexpr Field<model::WriteHintPath> kHintPathFields[] = {
    {"kernel", kText, [](const model::WriteHintPath& path) { return name(path.kernel, model::kHintReachWords); }},
    {"drive", kText, [](const model::WriteHintPath& path) { return name(path.drive, model::kDriveSeparationWords); }},
};
constexpr Object<model::WriteHintPath> kHintPath{"hint_path", "", kHintPathFields};

/// Reclaim unit handles of flexible data placement, by their use.
using Handles = std::array<std::uint64_t, 3>;

constexpr Field<Handles> kHandlesFields[] = {
    {"unused", kCount, [](const Handles& handles) { return handles[0]; }},
    {"host", kCount, [](const Handles& handles) { return handles[1]; }},
    {"controller", kCount, [](const Handles& handles) { return handles[2]; }},
};
constexpr Object<Handles> kHandles{"placement_handles", "", kHandlesFields};
static_assert(std::size(kHandlesFields) == std::tuple_size_v<Handles>);

/// Null if the drive does not report them.
Json handles_json(const model::NvmeDrive* drive) {
  Handles handles{};
  bool any = false;
  for (const model::NvmeValue& value : drive != nullptr ? drive->values : std::vector<model::NvmeValue>{}) {
    for (std::size_t use = 0; use < handles.size(); ++use) {
      if (value.field == model::NvmeField::fdp_handle_use && value.value == static_cast<double>(use)) {
        ++handles.at(use);
        any = true;
      }
    }
  }
  return any ? kHandles(handles) : Json();
}

struct TenantsView {
  const model::DeviceSnapshot& device;
  const model::Snapshot& snapshot;
};

Json tenants_of(const TenantsView& view) {
  if (!view.device.tenants || !view.device.tenants->named) {
    return {};
  }
  Json all = Json::array();
  for (const model::TenantIo& tenant : view.device.tenants->tenants) {
    all.push_back(
        kNamedTotals({tenant.tenant.name, tenant.totals, util::for_json(model::tenant_title(tenant.tenant.name))}));
  }
  all.push_back(kNamedTotals({std::string(model::kOtherTenants), view.device.tenants->other}));
  return all;
}

Json paths_of(const TenantsView& view) {
  if (!view.device.tenants) {
    return {};
  }
  Json all = Json::array();
  for (std::size_t path = 0; path < model::kIoPaths; ++path) {
    for (std::size_t access = 0; access < model::kIoAccesses; ++access) {
      const model::TotalsByOperation& totals = view.device.tenants->paths.at(path).at(access);
      if (totals != model::TotalsByOperation{}) {
        const std::string raw = access == model::index(model::IoAccess::raw) ? " (raw)" : "";
        all.push_back(kNamedTotals({std::string(model::kIoPathNames.at(path)) + raw, totals}));
      }
    }
  }
  return all;
}

constexpr Field<TenantsView> kTenantsFields[] = {
    {"device", kText, [](const TenantsView& view) { return util::for_json(view.device.device->name); }},
    {"tenants", or_null(list_of(defined_as("tenant"))), [](const TenantsView& view) { return tenants_of(view); }},
    {"paths", or_null(list_of(defined_as("tenant"))), [](const TenantsView& view) { return paths_of(view); }},
    {"writes", or_null(defined_as("writes")),
     [](const TenantsView& view) { return writes_json(view.device, view.snapshot); },
     "null: latency.mode is completion-only."},
    {"hint_path", or_null(defined_as("hint_path")),
     [](const TenantsView& view) { return view.device.hint_path ? kHintPath(*view.device.hint_path) : Json(); },
     "In words: how far the kernel carries a hint, and what the drive could do with it. null: not known yet."},
    {"placement_handles", or_null(defined_as("placement_handles")),
     [](const TenantsView& view) { return handles_json(model::drive_of(view.snapshot, view.device.device->name)); },
     "How many reclaim unit handles (FDP) are in use, and by whom. null: the drive does not say."},
};
constexpr Object<TenantsView> kTenants{
    "tenants",
    "/api/v1/devices/NAME/tenants: whose I/O it was, how it entered the kernel, and what was said of writes, since the "
    "daemon began; rates are differences of two answers. null: this kernel does not tell, or names are switched off.",
    kTenantsFields, Head::snapshot};

constexpr Field<model::AttributedTotals> kAttributedFields[] = {
    {"ios", kCount, member_of<&model::AttributedTotals::ios>},
    {"bytes", kCount, member_of<&model::AttributedTotals::bytes>},
    {"device_seconds", kSeconds,
     [](const model::AttributedTotals& one) { return static_cast<double>(one.device_ns) / 1e9; }},
};
constexpr Object<model::AttributedTotals> kAttributed{"attributed", "", kAttributedFields};

}  // namespace

Json attributed_json(const model::AttributedTotals& totals) { return kAttributed(totals); }

Definitions tenant_definitions() {
  return {kAttributed, kNamedTotals, kHint, kNamedBytes, kWrites, kHintPath, kHandles, kTenants};
}

Json tenants_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot) {
  return kTenants.answer(snapshot, {device, snapshot});
}

}  // namespace ssdpulse::page
