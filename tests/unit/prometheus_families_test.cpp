// SPDX-License-Identifier: Apache-2.0
// Which series exist, and when? Names and labels are a contract: the golden page changes only together with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "daemon/model/version.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::exposition {
namespace {

const std::string kGolden = SSDPULSE_SOURCE_DIR "/tests/fixtures/prometheus/small_snapshot";

std::string page_of(const model::Snapshot& snapshot, model::MetricGroups groups = model::all_metric_groups()) {
  return render_text(collect(snapshot, groups));
}

bool has(const std::string& page, const std::string& part) { return page.find(part) != std::string::npos; }

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void is_golden(std::string page, const std::string& file) {
  page = replace(page, std::string("version=\"") + model::kVersion + "\"", "version=\"VERSION\"");
  page = replace(page, std::string("revision=\"") + model::kRevision + "\"", "revision=\"REVISION\"");
  if (const char* wanted = std::getenv("SSDPULSE_TEST_GOLDEN"); wanted != nullptr && std::string(wanted) == "write") {
    std::ofstream(file) << page;
  }
  std::ostringstream golden;
  golden << std::ifstream(file).rdbuf();
  EXPECT_EQ(page, golden.str());
}

TEST(Golden, SmallSnapshot) { is_golden(page_of(test::small_snapshot()), kGolden + ".txt"); }

/// system.test_fleet_profile compares it with the whole page.
TEST(Golden, FleetProfile) {
  is_golden(page_of(test::small_snapshot(), model::fleet_metric_groups()), kGolden + "_fleet.txt");
}

/// promtool of every version reads it: system.test_promtool.
TEST(Golden, HoldsEveryFamily) {
  const auto page = page_of(test::small_snapshot());
  for (const Topic& topic : topics()) {
    for (const FamilyDescription& family : topic.families()) {
      EXPECT_TRUE(has(page, "# TYPE " + std::string(family.name) + " ")) << family.name;
    }
  }
}

TEST(Present, AStaleDriveHasASourceAndNoCounters) {
  auto snapshot = test::small_snapshot();
  auto& waf = snapshot.nvme_drives[0].write_amplification;
  waf = {};
  waf.source = "ocp";
  waf.reason = "fdp: refused";
  const auto stale = page_of(snapshot);
  EXPECT_TRUE(has(stale, "ssdpulse_write_amplification_source_info{controller=\"nvme0\",source=\"ocp\""));
  EXPECT_FALSE(has(stale, "ssdpulse_nvme_write_epochs_total{")) << "0 would be a reset";
  waf = {};
  EXPECT_FALSE(has(page_of(snapshot), "ssdpulse_write_amplification_source_info{")) << "it has not said what it has";
}

TEST(Present, NothingThatDetachedProgramsMeasured) {
  auto snapshot = test::small_snapshot();
  snapshot.own_cost.effort = model::Effort::nothing;
  snapshot.devices[0].io = nullptr;
  const auto page = page_of(snapshot);
  for (const char* gone : {"ssdpulse_io_", "ssdpulse_write_hint_", "ssdpulse_tenant_bytes", "ssdpulse_latency_spike",
                           "ssdpulse_lost_events_total{cause=\"stray\""}) {
    EXPECT_FALSE(has(page, gone)) << gone << ": 0 would be a fall, and a lie";
  }
  EXPECT_TRUE(has(page, "ssdpulse_cpu_limit_level 3\n"));
  EXPECT_TRUE(has(page, "ssdpulse_device_info{device=\"nvme0n1\"")) << "it is not gone";
}

TEST(Present, AModelThatHasNotReportedYetWarmsUp) {
  auto snapshot = test::small_snapshot();
  auto figures = *snapshot.flash;
  figures.drives[0].report = nullptr;
  snapshot.flash = std::make_shared<const model::FlashFigures>(figures);
  const auto page = page_of(snapshot);
  for (const std::string_view window : model::kFlashWindowNames) {
    EXPECT_TRUE(has(page, fmt::format("ssdpulse_modelled_write_amplification_silence_info{{controller=\"nvme0\","
                                      "window=\"{}\",reason=\"warming_up\"}} 1",
                                      window)));
  }
  EXPECT_FALSE(has(page, "ssdpulse_modelled_write_amplification_ratio{"));
}

TEST(Present, CountersOfANewDeviceStartAtZero) {
  auto snapshot = test::small_snapshot();
  snapshot.devices[0].io = nullptr;
  snapshot.bios.clear();
  const auto page = page_of(snapshot);
  for (const char* operation : {"read", "write"}) {
    const auto labels = std::string("{device=\"nvme0n1\",operation=\"") + operation + "\"";
    EXPECT_TRUE(has(page, "ssdpulse_io_bytes_total" + labels + "} 0\n"));
    EXPECT_TRUE(has(page, "ssdpulse_io_errors_total" + labels + ",error=\"medium\"} 0\n"));
    EXPECT_TRUE(has(page, "ssdpulse_io_requeues_total" + labels + ",reason=\"driver\"} 0\n"));
  }
  EXPECT_TRUE(has(page, "ssdpulse_lost_events_total{cause=\"stray\",device=\"nvme0n1\"} 0\n"));
  EXPECT_TRUE(has(page, "ssdpulse_write_hint_bytes_total{device=\"nvme0n1\",hint=\"unknown\"} 0\n"));
  EXPECT_TRUE(has(page, "ssdpulse_write_class_bytes_total{device=\"nvme0n1\",class=\"swap\"} 0\n"));
  EXPECT_FALSE(has(page, "ssdpulse_write_stream_bytes_total"));
  EXPECT_FALSE(has(page, "ssdpulse_io_bytes_total{device=\"nvme0n1\",operation=\"flush\""));
  EXPECT_FALSE(has(page, "_bucket{"));
  // Nothing has been read yet, so nothing is known.
  EXPECT_FALSE(has(page, "ssdpulse_io_in_flight"));
}

TEST(Absent, CountsOfADeviceOfWhichNothingIsSeen) {
  auto snapshot = test::small_snapshot();
  snapshot.devices.resize(1);
  const std::string device = "device=\"" + snapshot.devices[0].device->name + "\"";
  snapshot.devices[0].io = nullptr;
  snapshot.devices[0].drift = {};
  snapshot.devices[0].unseen = model::Unseen{};
  const std::string page = page_of(snapshot);
  EXPECT_TRUE(has(page, "ssdpulse_device_unseen{" + device + "} 1"));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    for (const char* counts : {"ssdpulse_io_", "ssdpulse_write_class", "ssdpulse_write_hint_bytes", "ssdpulse_lost_",
                               "ssdpulse_latency_spikes", "ssdpulse_discard_bursts", "ssdpulse_accounting"}) {
      EXPECT_FALSE(line.starts_with(counts) && has(line, device)) << line;
    }
  }
}

TEST(Present, HistogramsComeWithTheirFirstSample) {
  const auto page = page_of(test::small_snapshot());
  EXPECT_TRUE(
      has(page, "ssdpulse_io_device_latency_seconds_count{device=\"nvme0n1\",operation=\"read\",during=\"none\"} 2\n"));
  EXPECT_FALSE(has(page, "during=\"both\""));
  EXPECT_FALSE(has(page, "ssdpulse_io_size_bytes_count{device=\"nvme0n1\",operation=\"write\"}"));
}

TEST(Present, SequentialBytesAreOfReadAndWriteOnly) {
  const auto page = page_of(test::small_snapshot());
  EXPECT_TRUE(has(page, "ssdpulse_io_sequential_bytes_total{device=\"nvme0n1\",operation=\"write\"} 0\n"));
  EXPECT_FALSE(has(page, "ssdpulse_io_sequential_bytes_total{device=\"nvme0n1\",operation=\"flush\"}"));
}

TEST(Present, EveryCauseOfSpikesFromTheStart) {
  const auto page = page_of(test::small_snapshot());
  for (const std::string_view cause : model::kSpikeCauseNames) {
    const auto labels = "{device=\"nvme0n1\",operation=\"write\",cause=\"" + std::string(cause) + "\"} ";
    EXPECT_TRUE(has(page, "ssdpulse_latency_spikes_total" + labels + "0\n"));
    EXPECT_TRUE(has(page, "ssdpulse_latency_spike_seconds_total" + labels + "0\n"));
    EXPECT_TRUE(has(page, "ssdpulse_latency_excess_seconds_total" + labels + "0\n"));
    EXPECT_TRUE(has(page, "ssdpulse_latency_spike_active" + labels + (cause == "gc" ? "1\n" : "0\n")));
  }
  EXPECT_TRUE(has(page, "spike_seconds_total{device=\"nvme0n1\",operation=\"read\",cause=\"discard\"} 7.5\n"));
  EXPECT_TRUE(has(page, "excess_seconds_total{device=\"nvme0n1\",operation=\"read\",cause=\"discard\"} 3.25\n"));
  EXPECT_TRUE(has(page, "ssdpulse_latency_spikes_total{device=\"nvme0n1\",operation=\"commit\",cause=\"flush\"} 0\n"));
}

TEST(Present, NoExcessWhereTheKernelStampsNothing) {
  auto snapshot = test::small_snapshot();
  auto unstamped = *snapshot.devices[0].device;
  unstamped.iostats = false;
  snapshot.devices[0].device = std::make_shared<const model::Device>(unstamped);
  EXPECT_FALSE(has(page_of(snapshot), "ssdpulse_latency_excess_seconds_total{"));
  EXPECT_FALSE(has(page_of(snapshot), "ssdpulse_latency_spike_pending_excess_seconds{"));
}

TEST(CompletionOnly, WhatItCannotSeeIsAbsent) {
  auto snapshot = test::small_snapshot();
  snapshot.latency_mode = "completion-only";
  const auto page = page_of(snapshot);
  for (const char* unseen : {"ssdpulse_io_device_latency_seconds", "ssdpulse_io_queue_latency_seconds",
                             "ssdpulse_io_requeues_total", "ssdpulse_io_in_flight", "ssdpulse_io_queue_full_seconds",
                             "ssdpulse_write_hint_bytes_total", "ssdpulse_write_class_bytes_total", "cause=\"stray\"",
                             "cause=\"completion_missed\"", "cause=\"slot_collision\""}) {
    EXPECT_FALSE(has(page, unseen)) << unseen;
  }
  for (const char* seen : {"ssdpulse_io_latency_seconds_count", "ssdpulse_io_bytes_total", "ssdpulse_io_errors_total",
                           "cause=\"clock\"", "ssdpulse_latency_mode_info{mode=\"completion-only\"} 1\n"}) {
    EXPECT_TRUE(has(page, seen)) << seen;
  }
}

TEST(Absent, WhatTheKernelDoesNotTell) {
  const auto page = page_of(test::small_snapshot());
  EXPECT_TRUE(has(page, "ssdpulse_lost_events_total{cause=\"recursion\",program=\"on_issue\"} 3\n"));
  EXPECT_FALSE(has(page, "program=\"on_complete\""));
  EXPECT_TRUE(has(page, "ssdpulse_accounting_drift_ios{device=\"nvme0n1\",operation=\"read\"} -1\n"));
  EXPECT_FALSE(has(page, "ssdpulse_accounting_drift_ios{device=\"nvme0n1\",operation=\"write\"}"));
  EXPECT_EQ(page_of(model::Snapshot{}).find("ssdpulse_io_errors_total"), std::string::npos);
}

TEST(Labels, AnyBytesBecomeValidText) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain", "plain"},
      {"\"quoted\"", "\\\"quoted\\\""},
      {"back\\slash", "back\\\\slash"},
      {"two\nlines",
       "two\xEF\xBF\xBD"
       "0alines"},
      {"tab\tis",
       "tab\xEF\xBF\xBD"
       "09is"},
      {std::string("nul\0byte", 8),
       "nul\xEF\xBF\xBD"
       "00byte"},
      {"bell\a",
       "bell\xEF\xBF\xBD"
       "07"},
      {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
      {"\xF0\x9F\x92\xBE", "\xF0\x9F\x92\xBE"},
      {"bad\xff",
       "bad\xEF\xBF\xBD"
       "ff"},
      {"cut\xC3",
       "cut\xEF\xBF\xBD"
       "c3"},
      {"over\xC0\xAFlong", ""},
      {"sur\xED\xA0\x80gate", ""},  // an empty expectation: only checks that the bytes are gone
  };
  for (const auto& [value, expected] : cases) {
    auto snapshot = test::small_snapshot();
    auto device = *snapshot.devices[0].device;
    device.serial = value;
    snapshot.devices[0].device = std::make_shared<const model::Device>(device);
    const auto page = page_of(snapshot);
    if (!expected.empty()) {
      EXPECT_TRUE(has(page, "serial=\"" + expected + "\"")) << expected;
    } else {
      EXPECT_FALSE(has(page, value));
    }
  }
}

TEST(Labels, EmptyOnesAreLeftOut) { EXPECT_FALSE(has(page_of(test::small_snapshot()), "=\"\"")); }

TEST(Info, ASecondMountOnTheSamePointIsOneSeries) {
  auto snapshot = test::small_snapshot();
  snapshot.filesystems = {{"sda", "/mnt", "xfs", false}, {"sda", "/mnt", "xfs", false}, {"sdb", "/mnt", "xfs", false}};
  const auto page = page_of(snapshot);
  const auto first = page.find("ssdpulse_filesystem_info{device=\"sda\"");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find("ssdpulse_filesystem_info{device=\"sda\"", first + 1), std::string::npos);
  EXPECT_TRUE(has(page, "ssdpulse_filesystem_info{device=\"sdb\""));
}

TEST(Labels, NamesThatDifferOnlyInInvalidBytesAreTwoSeries) {
  auto snapshot = test::small_snapshot();
  auto signals = *snapshot.host.signals;
  signals.rooms = {{"/a\xff", 1 << 30, 1 << 20, 0, 0}, {"/a\xfe", 2 << 20, 1 << 10, 0, 0}};
  snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
  snapshot.filesystem_discards = {{"sda1", "/a\xff", true, {}, {}}, {"sda1", "/a\xfe", true, {}, {}}};
  snapshot.filesystem_discards[0].bytes[0] = 1000;
  snapshot.filesystem_discards[1].bytes[0] = 24;
  const auto page = page_of(snapshot);
  std::set<std::string> series;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#') {
      EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_GT(series.size(), 100U);
  for (const char* name : {"/a\xEF\xBF\xBD"
                           "fe",
                           "/a\xEF\xBF\xBD"
                           "ff"}) {
    EXPECT_NE(page.find(std::string("ssdpulse_filesystem_size_bytes{mountpoint=\"") + name + "\"}"), std::string::npos);
  }
}

TEST(Absent, FindingsBeforeTheFirstCheckOfTheAudit) {
  auto snapshot = test::small_snapshot();
  EXPECT_TRUE(has(page_of(snapshot), "ssdpulse_audit_finding_info{id=\"F7\""));
  snapshot.audit = nullptr;
  EXPECT_FALSE(has(page_of(snapshot), "ssdpulse_audit_finding_info{"));
}

}  // namespace
}  // namespace ssdpulse::exposition
