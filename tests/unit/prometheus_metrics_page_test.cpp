// SPDX-License-Identifier: Apache-2.0
// Is every page rendered once, shared by all who request it, and replaced by the next Snapshot's?
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <set>
#include <thread>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metrics_page.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::exposition {
namespace {

constexpr const char* kProtobuf =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

std::shared_ptr<const model::Snapshot> numbered(std::uint64_t number) {
  auto snapshot = test::small_snapshot();
  snapshot.number = number;
  snapshot.missed_ticks = number;
  return std::make_shared<const model::Snapshot>(std::move(snapshot));
}

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string result(1 << 20, '\0');
  auto input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  inflateEnd(&stream);
  return result;
}

TEST(MetricsPage, HeadersSayWhatTheBytesAre) {
  MetricsPage page;
  const auto snapshot = numbered(1);
  const auto text = page.get(snapshot, "", "");
  EXPECT_EQ(text->content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(text->content_encoding, "");
  EXPECT_EQ(text->bytes.rfind("# HELP ", 0), 0U);
  const auto protobuf = page.get(snapshot, kProtobuf, "identity");
  EXPECT_EQ(protobuf->content_type,
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited");
  const auto text_gzip = page.get(snapshot, "text/plain", "gzip");
  EXPECT_EQ(text_gzip->content_type, text->content_type);
  EXPECT_EQ(text_gzip->content_encoding, "gzip");
  EXPECT_EQ(gunzip(text_gzip->bytes), text->bytes);
  EXPECT_LT(text_gzip->bytes.size() * 4, text->bytes.size());
  const auto protobuf_gzip = page.get(snapshot, kProtobuf, "gzip");
  EXPECT_EQ(protobuf_gzip->content_encoding, "gzip");
  EXPECT_EQ(gunzip(protobuf_gzip->bytes), protobuf->bytes);
  EXPECT_EQ(page.renderings(), 4U);
}

TEST(MetricsPage, NativeHistogramsAloneForWhoAsks) {
  MetricsPage page;
  const auto snapshot = numbered(1);
  const auto both = page.get(snapshot, kProtobuf, "");
  const auto native = page.get(snapshot, kProtobuf, "", true);
  EXPECT_EQ(native->content_type, both->content_type);
  EXPECT_LT(native->bytes.size(), both->bytes.size());
  EXPECT_EQ(gunzip(page.get(snapshot, kProtobuf, "gzip", true)->bytes), native->bytes);
  // Text has only classic ones.
  EXPECT_EQ(page.get(snapshot, "", "", true).get(), page.get(snapshot, "", "").get());
  EXPECT_EQ(page.renderings(), 4U);
}

TEST(MetricsPage, ShowsTheGroupsThatAreAskedFor) {
  MetricsPage page;
  const auto snapshot = numbered(1);
  std::set<std::string> seen;
  for (std::size_t group = 0; group < model::kMetricGroups.size(); ++group) {
    EXPECT_EQ(topics()[group].group, model::kMetricGroups[group]);
    EXPECT_EQ(model::metric_group(model::kMetricGroups[group]), group);
    const auto families = collect(*snapshot, model::MetricGroups{}.set(group));
    for (const Family& family : families) {
      EXPECT_TRUE(seen.insert(std::string(family.description->name)).second) << family.description->name;
    }
  }
  EXPECT_EQ(seen.size(), collect(*snapshot).size());
  const auto self = page.get(snapshot, "", "", false, model::MetricGroups{}.set(*model::metric_group("self")));
  EXPECT_NE(self->bytes.find("\nssdpulse_build_info{"), std::string::npos);
  EXPECT_EQ(self->bytes.find("ssdpulse_io_bytes_total"), std::string::npos);
}

TEST(MetricsPage, KeepsFewSelectionsOfGroups) {
  MetricsPage page;
  const auto snapshot = numbered(1);
  for (std::size_t count = 0; count < MetricsPage::kMaxSelections; ++count) {
    EXPECT_NE(page.get(snapshot, "", "", false, model::MetricGroups(count + 1)), nullptr);
  }
  EXPECT_EQ(page.get(snapshot, "", "", false, model::MetricGroups(100)), nullptr);
  EXPECT_NE(page.get(snapshot, "", "", false, model::MetricGroups(1)), nullptr) << "known ones are answered";
  EXPECT_NE(page.get(snapshot, "", ""), nullptr) << "and the usual one always";
  EXPECT_NE(page.get(numbered(2), "", "", false, model::MetricGroups(100)), nullptr) << "a second later, too";
}

TEST(MetricsPage, SelectionsThatAreReadSlowlyHoldABoundedAmount) {
  MetricsPage page;
  std::vector<std::shared_ptr<const Body>> slow;
  std::size_t held = 0;
  std::uint64_t number = 1;
  const auto some = model::all_metric_groups().flip(0);
  for (;; ++number) {
    auto body = page.get(numbered(number), "", "", false, some);
    if (body == nullptr) {
      break;
    }
    held += body->bytes.size();
    ASSERT_LE(held, 2 * MetricsPage::kMaxBytes);
    slow.push_back(std::move(body));
  }
  EXPECT_GT(held, MetricsPage::kMaxBytes);
  EXPECT_NE(page.get(numbered(number), "", ""), nullptr) << "the usual page";
  EXPECT_NE(page.get(numbered(number), "", "", false, model::all_metric_groups()), nullptr) << "the whole page";
  slow.clear();
  EXPECT_NE(page.get(numbered(number + 1), "", "", false, some), nullptr);
}

TEST(MetricsPage, RendersOnceAndShares) {
  MetricsPage page;
  const auto first = page.get(numbered(1), "", "");
  // Another Snapshot object with the same number is the same Snapshot.
  EXPECT_EQ(page.get(numbered(1), "", "").get(), first.get());
  EXPECT_EQ(page.renderings(), 1U);
  const auto second = page.get(numbered(2), "", "");
  EXPECT_NE(second.get(), first.get());
  EXPECT_NE(second->bytes, first->bytes);
  EXPECT_EQ(page.renderings(), 2U);
}

TEST(MetricsPage, AnOvertakenRequestGetsTheNewerPage) {
  MetricsPage page;
  const auto newer = page.get(numbered(2), "", "");
  EXPECT_EQ(page.get(numbered(1), "", "").get(), newer.get());
  EXPECT_EQ(page.renderings(), 1U);
}

TEST(MetricsPage, AnOldBodyIsFreedWithItsLastReader) {
  MetricsPage page;
  std::weak_ptr<const Body> old = page.get(numbered(1), "", "");
  auto reader = old.lock();
  static_cast<void>(page.get(numbered(2), "", ""));
  EXPECT_FALSE(old.expired());
  reader.reset();
  EXPECT_TRUE(old.expired());
}

TEST(MetricsPage, ConcurrentCallersShareOneRendering) {
  MetricsPage page;
  constexpr std::uint64_t kSnapshots = 20;
  std::atomic<std::uint64_t> newest{1};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        const auto number = newest.load();
        if (i == 0 && number < kSnapshots) {
          newest = number + 1;
        }
        const auto body = page.get(numbered(number), i % 2 == 0 ? "" : kProtobuf, i % 4 < 2 ? "" : "gzip");
        ASSERT_FALSE(body->bytes.empty());
        ASSERT_EQ(body->content_encoding, i % 4 < 2 ? "" : "gzip");
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  // At most four of each, however many requests there are; and each number is a separate Snapshot.
  EXPECT_LE(page.renderings(), 4 * kSnapshots);
  EXPECT_GE(page.renderings(), 4U);
}

TEST(MetricsPage, AThousandCallersOfOneSnapshotRenderFourTimes) {
  MetricsPage page;
  const auto snapshot = numbered(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 64; ++round) {
        static_cast<void>(page.get(snapshot, (i + round) % 2 == 0 ? "" : kProtobuf, (i + round) % 4 < 2 ? "" : "gzip"));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(page.renderings(), 4U);
}

}  // namespace
}  // namespace ssdpulse::exposition
