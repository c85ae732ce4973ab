// SPDX-License-Identifier: Apache-2.0
// Do the models of a host's drives share the memory budget, and stay silent when they must?
#include <gtest/gtest.h>

#include "daemon/flash/model_runner.h"
#include "daemon/flash/offline_model.h"
#include "daemon/model/device_identity.h"
#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/flash_models_rig.h"

namespace ssdpulse::flash {
namespace {

using model::FlashSilence;
using test::flash_drive;
using test::flash_settings;
using test::FlashLoad;
using test::Host;
using test::kPages;
using test::likely;
using test::SamplingKernel;

TEST(FlashModels, EstimateWhatTheoryDoes) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(2.5);
  host.settle();
  const auto& drive = host.drive();
  EXPECT_FALSE(drive.silence);
  ASSERT_TRUE(drive.report && likely(drive));
  EXPECT_NEAR(drive.report->drive_writes, 2.5, 0.03);
  EXPECT_EQ(drive.overprovisioning.basis, model::OverprovisioningBasis::size);
  // A_lrw(1.085) = 6.55: with a uniform load all policies agree.
  EXPECT_NEAR(likely(drive)->ratio / 6.55, 1, 0.04);
  EXPECT_LT(likely(drive)->lower, 6.55);
  EXPECT_GT(likely(drive)->upper, 6.55);
  EXPECT_FALSE(drive.collection_begins);
}

TEST(FlashModels, AddUpNamespacesOfADrive) {
  FlashDrive two = flash_drive("nvme0n1", kPages / 4);
  two.controller = "nvme0";
  two.namespaces.push_back({"nvme0n2", 3 * kPages / 4 * test::kFlashPage});
  two.facts.size_bytes = kPages * test::kFlashPage;
  two.key = "serial of sda";
  const tests::TemporaryTree apart;
  const tests::TemporaryTree whole;
  Host both(flash_settings(apart.path()), {two});
  Host one(flash_settings(whole.path()));
  // The same writes in the same order, by their position on the drive.
  both.loads["nvme0n1"] = test::circle_load(kPages / 4);
  both.loads["nvme0n2"] = [n = std::uint64_t{0}]() mutable {
    return test::FlashOperation{false, n++ % (3 * kPages / 4), 1, 0};
  };
  one.loads["sda"] = test::circle_load(kPages);
  both.play(0.5, 4096);
  both.settle();
  ASSERT_EQ(both.models->figures()->drives.size(), 1U);
  EXPECT_EQ(both.drive().name(), "nvme0");
  EXPECT_EQ(both.drive().devices, (std::vector<std::string>{"nvme0n1", "nvme0n2"}));
  ASSERT_TRUE(both.drive().report);
  // Each tick writes equally to both: half a drive write is a full circle of the first, which is a quarter of it.
  EXPECT_NEAR(both.drive().report->drive_writes, 1.0, 0.05);
  EXPECT_NEAR(both.drive().report->unknown_pages, 0.25, 0.05);
}

TEST(FlashModels, CountWhatWasLostAndSaySo) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.kernel.loses = 0.1;
  host.play(1.2);
  host.settle();
  ASSERT_TRUE(host.drive().report);
  EXPECT_EQ(host.drive().report->silence[2], FlashSilence::events_lost);
  EXPECT_FALSE(likely(host.drive()));
  EXPECT_NEAR(static_cast<double>(host.drive().lost_writes), 0.1 * 1.2 * kPages / 8, 400);
}

/// Events that the kernel had no room for: one in a hundred is lost, but still counted in the volume.
TEST(FlashModels, EstimateWhatTheWholeDriveDoesWithoutOneEventOfAHundred) {
  const std::pair<const char*, FlashLoad> loads[] = {{"uniform", test::uniform_load(kPages, 4)},
                                                     {"log and random writes", test::wal_load(kPages, 4)}};
  for (const auto& [name, load] : loads) {
    Host host(flash_settings());
    const model::WhatIf base = default_what_ifs(0.085)[0];
    OfflineModel whole({kPages * test::kFlashPage, test::kFlashPage, std::nullopt, true, 0, {base}});
    host.kernel.loses = 0.01;
    host.loads["sda"] = [&whole, &load = load, fill = test::circle_load(kPages)] {
      const test::FlashOperation operation = whole.written_pages() < kPages ? fill() : load();
      whole.write(operation.first * test::kFlashPage, operation.count * test::kFlashPage, operation.hint);
      return operation;
    };
    host.play(2.5);
    host.settle();
    EXPECT_NEAR(host.drive().report->lost_writes, 0.01, 0.002) << name;
    const auto modelled = std::find_if(
        host.drive().report->amplification.begin(), host.drive().report->amplification.end(),
        [&](const auto& found) { return found.what_if == base && found.window == model::FlashWindow::drive_write; });
    ASSERT_NE(modelled, host.drive().report->amplification.end()) << name;
    const double expected = whole.estimates({0.6, 1})[0]->ratio;
    std::printf("%s: %.3f (%.3f to %.3f), all of it %.3f: %+.1f %%\n", name, modelled->estimate.ratio,
                modelled->estimate.lower, modelled->estimate.upper, expected,
                100 * (modelled->estimate.ratio / expected - 1));
    EXPECT_NEAR(modelled->estimate.ratio / expected, 1, 0.05) << name;
    EXPECT_LT(modelled->estimate.lower, expected) << name;
    EXPECT_GT(modelled->estimate.upper, expected) << name;
  }
}

TEST(FlashModels, NeverCountFewerLossesOfADriveThanBefore) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.kernel.loses = 0.1;
  host.play(0.3);
  host.settle();
  const std::uint64_t before = host.drive().lost_writes;
  EXPECT_GT(before, 1000U);
  host.drives[0].facts.partly_measured = true;
  host.settle();
  EXPECT_EQ(host.drive().lost_writes, before);
  host.drives = {flash_drive("sda", kPages, "another serial")};
  host.settle();
  EXPECT_EQ(host.drive().lost_writes, 0U) << "of another drive";
  host.drives = {flash_drive("sda", kPages)};
  host.settle();
  EXPECT_EQ(host.drive().lost_writes, before);
  host.play(0.1);
  host.settle();
  EXPECT_GT(host.drive().lost_writes, before);
}

TEST(FlashModels, IgnoreWhatWasSampledInAnotherWay) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.tick(1000);
  host.tick(1000);
  FlashInput input = host.kernel.tick(host.drives, *host.models->sampling(), host.loads, 50000);
  Sampling other = *input.sampling;
  ++other["sda"].seed;
  input.sampling = std::make_shared<Sampling>(other);
  host.models->observe(input);
  host.settle();
  ASSERT_TRUE(host.drive().report);
  EXPECT_LT(host.drive().report->sampled_writes, 300U);
}

struct SilenceCase {
  const char* what;
  std::optional<FlashSilence> silence;
  void (*change)(FlashDrive&);
};

TEST(FlashModels, AreSilentOfDrivesThatTheyDoNotKnow) {
  const SilenceCase cases[] = {
      {"flash", std::nullopt, [](FlashDrive&) {}},
      {"rotational", FlashSilence::rotational, [](FlashDrive& drive) { drive.facts.rotational = true; }},
      {"zoned", FlashSilence::zoned, [](FlashDrive& drive) { drive.facts.zoned = true; }},
      {"virtual", FlashSilence::virtual_device, [](FlashDrive& drive) { drive.facts.virtual_device = true; }},
      {"compressing", FlashSilence::compression, [](FlashDrive& drive) { drive.facts.compresses = true; }},
      {"a namespace elsewhere", FlashSilence::partly_measured,
       [](FlashDrive& drive) { drive.facts.partly_measured = true; }},
      {"0 bytes", FlashSilence::no_size,
       [](FlashDrive& drive) { drive.facts.size_bytes = drive.namespaces[0].size_bytes = 0; }},
      {"512 bytes", FlashSilence::too_small,
       [](FlashDrive& drive) { drive.facts.size_bytes = drive.namespaces[0].size_bytes = 512; }},
      {"8 GB", FlashSilence::too_small,
       [](FlashDrive& drive) { drive.facts.size_bytes = drive.namespaces[0].size_bytes = 8'000'000'000; }},
      {"256 TB", std::nullopt,
       [](FlashDrive& drive) { drive.facts.size_bytes = drive.namespaces[0].size_bytes = 256'000'000'000'000; }},
      {"256 TB of 64 KiB", std::nullopt,
       [](FlashDrive& drive) {
         drive.facts.size_bytes = drive.namespaces[0].size_bytes = 256'000'000'000'000;
         drive.page_bytes = 65536;
       }},
  };
  for (const SilenceCase& one : cases) {
    FlashDrive drive = flash_drive("sda", 960'000'000'000 / test::kFlashPage);
    one.change(drive);
    ModelSettings settings = flash_settings();
    settings.rate_bits.reset();
    Host host(settings, {drive});
    ASSERT_EQ(host.models->figures()->drives.size(), 1U) << one.what;
    EXPECT_EQ(host.drive().silence, one.silence) << one.what;
    EXPECT_EQ(host.models->sampling()->count("sda"), one.silence ? 0U : 1U) << one.what;
    EXPECT_EQ(host.drive().report != nullptr, !one.silence.has_value()) << one.what;
  }
  FlashDrive drive = flash_drive("vda", 960'000'000'000 / test::kFlashPage);
  drive.facts.virtual_device = true;
  ModelSettings settings = flash_settings();
  settings.rate_bits.reset();
  settings.virtual_too = true;
  Host host(settings, {drive});
  EXPECT_FALSE(host.drive().silence);
}

TEST(FlashModels, TrustOnlyADriveThatThisHostAloneWrites) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.drives[0].host_written_bytes = 5e12;
  host.drives[0].written_elsewhere_bytes = 0;
  host.play(2.5);
  host.drives[0].host_written_bytes = 5e12 + 3e9;
  host.drives[0].written_elsewhere_bytes = 0.1 * 3e9;
  host.settle();
  EXPECT_EQ(host.drive().silence, FlashSilence::written_elsewhere);
  EXPECT_FALSE(likely(host.drive()));
  host.drives[0].written_elsewhere_bytes = 0.01 * 3e9;
  host.settle();
  EXPECT_FALSE(host.drive().silence);
  EXPECT_TRUE(likely(host.drive()));
}

TEST(FlashModels, RestartWithADifferentDriveOrSize) {
  const tests::TemporaryTree tree;
  Host host(flash_settings(tree.path()));
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(0.3);
  host.settle();
  EXPECT_GT(host.drive().report->drive_writes, 0.29);
  host.drives = {flash_drive("sda", kPages, "another serial")};
  host.settle();
  EXPECT_EQ(host.drive().report->drive_writes, 0);
  host.drives = {flash_drive("sda", kPages)};  // it comes back
  host.settle();
  EXPECT_TRUE(host.drive().resumed);
  EXPECT_GT(host.drive().report->drive_writes, 0.29);
  host.drives = {flash_drive("sda", 2 * kPages)};
  host.settle();
  EXPECT_EQ(host.drive().report->drive_writes, 0);
  EXPECT_EQ(host.drive().size_bytes, 2 * kPages * test::kFlashPage);
}

TEST(FlashModels, AccountForWritesBetweenEvaluations) {
  for (const double unseen_drive_writes : {0.0, 0.01, 0.1}) {
    const tests::TemporaryTree tree;
    constexpr double kBytes = static_cast<double>(kPages * test::kFlashPage);
    Host host(flash_settings(tree.path()));
    host.loads["sda"] = test::uniform_load(kPages, 4);
    host.drives[0].host_written_bytes = 1e12;
    host.play(2.5);
    host.drives[0].host_written_bytes = 1e12 + 2.5 * kBytes;
    host.settle();
    EXPECT_TRUE(likely(host.drive()));
    host.models->keep_all(host.last.wall);
    host.kernel.restart();
    host.models = std::make_unique<ModelSet>(flash_settings(tree.path()));
    host.drives[0].host_written_bytes.reset();  // it has not been queried yet
    host.tick();
    host.drives[0].host_written_bytes = 1e12 + kBytes * (2.5 + unseen_drive_writes);
    host.settle();
    EXPECT_EQ(likely(host.drive()).has_value(), unseen_drive_writes < 0.02) << unseen_drive_writes;
  }
}

/// A host whose drive has a counter, restarted after `absence`; the counter is unknown until `know` sets it.
struct RestartedHost {
  RestartedHost() : host(flash_settings(tree.path())) {
    host.loads["sda"] = test::uniform_load(kPages, 4);
    host.drives[0].host_written_bytes = 1e12;
    host.play(2.5);
    know(2.5);
    host.settle();
    EXPECT_TRUE(likely(host.drive()));
  }
  void restart(std::chrono::seconds absence) {
    host.models->keep_all(host.last.wall);
    host.kernel.restart();
    host.kernel.at += absence;
    host.models = std::make_unique<ModelSet>(flash_settings(tree.path()));
    host.drives[0].host_written_bytes.reset();
    host.begin();
  }
  void know(double drive_writes) {
    host.drives[0].host_written_bytes = 1e12 + drive_writes * static_cast<double>(kPages * test::kFlashPage);
  }

  tests::TemporaryTree tree;
  Host host;
};

TEST(FlashModels, RememberAGapOverQuickRestarts) {
  for (const double unseen_drive_writes : {0.0, 0.1}) {
    RestartedHost restarted;
    Host& host = restarted.host;
    restarted.restart(std::chrono::hours(1));
    host.play(0.125);  // which is seen: not part of the gap
    restarted.restart(std::chrono::seconds(5));
    restarted.restart(std::chrono::seconds(5));
    restarted.know(2.62 + unseen_drive_writes);  // the counter is coarse, too
    host.settle();
    EXPECT_EQ(likely(host.drive()).has_value(), unseen_drive_writes == 0) << unseen_drive_writes;
  }
}

TEST(FlashModels, DoNotWaitForACounterForEver) {
  RestartedHost restarted;
  Host& host = restarted.host;
  restarted.restart(std::chrono::seconds(5));
  for (int i = 0; i < 100; ++i) {
    host.tick();
  }
  EXPECT_TRUE(likely(host.drive())) << "a short absence";
  restarted.know(2.5);
  host.tick();
  restarted.restart(std::chrono::hours(1));
  restarted.restart(std::chrono::seconds(5));  // does not make the hour shorter
  host.settle();
  EXPECT_EQ(host.drive().report->silence[2], FlashSilence::warming_up) << "the counter may still say more";
  EXPECT_TRUE(host.drive().report->amplification.empty());
  host.settle();
  host.settle();
  restarted.know(2.5);  // too late
  host.settle();
  EXPECT_EQ(host.drive().report->silence[2], FlashSilence::warming_up);
  EXPECT_FALSE(likely(host.drive()));
  host.play(0.7);
  host.settle();
  EXPECT_TRUE(likely(host.drive()));
}

/// Like a path of a multipath head for which there is no place in the kernel's tables.
TEST(FlashModels, RememberHowLongADriveWasMeasuredInPart) {
  const tests::TemporaryTree tree;
  Host host(flash_settings(tree.path()));
  host.loads["sda"] = test::circle_load(kPages);
  host.play(1.05);
  for (const int seconds : {5, 90}) {
    host.drives[0].facts.partly_measured = true;
    for (int i = 0; i < seconds; ++i) {
      host.tick(64);
    }
    EXPECT_EQ(host.drive().silence, FlashSilence::partly_measured);
    host.drives[0].facts.partly_measured = false;
    host.settle();
    EXPECT_TRUE(host.drive().resumed);
    EXPECT_EQ(likely(host.drive()).has_value(), seconds < 60) << seconds;
  }
  host.play(0.26);
  host.settle();
  EXPECT_TRUE(likely(host.drive())) << "the gap is over";
}

TEST(FlashModels, StartOverWithARecreatedNamespace) {
  const tests::TemporaryTree tree;
  Host host(flash_settings(tree.path()));
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(0.6);
  host.settle();
  EXPECT_GT(host.drive().report->drive_writes, 0.5);
  for (const char* const made_as : {"eui.2 512", "eui.2 4096"}) {
    host.drives[0].namespaces[0].made_as = made_as;
    host.settle();
    EXPECT_FALSE(host.drive().resumed) << made_as;
    EXPECT_EQ(host.drive().report->drive_writes, 0) << made_as;
  }
}

struct UseCase {
  const char* what;
  double discarded;  // share of the drive, between its first and second reports; negative: before the first
  double said_first;
  double said_then;
  enum { goes_on, empty, unknown } expected;
};

TEST(FlashModels, StartOverWhenTheDriveWasFormatted) {
  const UseCase cases[] = {{"it counts nothing", 0, 1, 1, UseCase::goes_on},
                           {"formatted", 0, 0.8, 0.01, UseCase::empty},
                           {"formatted and written again", 0, 0.8, 0.3, UseCase::unknown},
                           {"discarded", 0.5, 0.9, 0.45, UseCase::goes_on},
                           {"freed late", -0.5, 0.9, 0.45, UseCase::goes_on},
                           {"discarded and formatted", 0.3, 0.9, 0, UseCase::empty}};
  for (const UseCase& one : cases) {
    Host host(flash_settings());
    host.loads["sda"] = test::uniform_load(kPages, 4);
    host.play(0.2);
    const auto discard = [&](double share) {
      if (share > 0) {
        auto before = std::exchange(host.loads["sda"], [share, done = 0]() mutable {
          return done++ == 0 ? test::FlashOperation{true, 0, static_cast<std::uint64_t>(share * kPages)}
                             : test::FlashOperation{false, kPages - 1, 1};
        });
        host.tick(1);
        host.loads["sda"] = before;
      }
    };
    discard(-one.discarded);
    host.drives[0].used_share = one.said_first;
    host.settle();
    const double before = host.drive().report->drive_writes;
    EXPECT_GT(before, 0.19);
    discard(one.discarded);
    host.drives[0].used_share = one.said_then;
    host.settle();
    const model::FlashReport& report = *host.drive().report;
    EXPECT_EQ(report.drive_writes < 0.01, one.expected == UseCase::unknown) << one.what;
    EXPECT_EQ(report.unknown_pages == 1, one.expected == UseCase::unknown) << one.what;
    EXPECT_EQ(report.unknown_pages == 0, one.expected == UseCase::empty) << one.what;
    EXPECT_EQ(report.written_since_full_discard_bytes.has_value(), one.expected == UseCase::empty) << one.what;
    host.drives[0].used_share = std::min(1.0, one.said_then + 0.01);
    host.play(0.02);
    host.settle();
    EXPECT_EQ(host.drive().report->drive_writes < 0.1, one.expected == UseCase::unknown) << one.what << ", once";
    EXPECT_LT(host.drive().report->unknown_pages, 1) << one.what << ", once";
  }
}

TEST(FlashModels, TakeNoWritesBehindADrivesWordForAFormat) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(0.2);
  host.drives[0].used_share = 1;
  host.settle();
  host.loads["sda"] = [uniform = test::uniform_load(kPages, 5), done = 0]() mutable {
    return done++ == 0 ? test::FlashOperation{true, 0, kPages} : uniform();
  };
  host.tick(1);
  host.drives[0].used_share = 0.06;
  host.tick(kPages / 2);
  host.tick(kPages / 2);
  host.settle();
  EXPECT_GT(host.drive().report->drive_writes, 1.19);
}

TEST(FlashModels, ShareOneBudget) {
  struct Case {
    std::size_t drives;
    const char* scale;
  };
  for (const Case& one : {Case{4, "all"}, Case{8, "all"}, Case{24, "fewer_what_ifs"}, Case{64, "smaller_samples"},
                          Case{200, "fewer_drives"}}) {
    ModelSettings settings = flash_settings();
    settings.rate_bits.reset();
    std::vector<FlashDrive> drives;
    for (std::size_t i = 0; i < one.drives; ++i) {
      drives.push_back(flash_drive("sd" + std::to_string(1000 + i), 3'840'000'000'000 / test::kFlashPage));
    }
    Host host(settings, drives);
    const auto figures = host.models->figures();
    EXPECT_EQ(figures->scale, one.scale) << one.drives;
    EXPECT_LE(figures->memory_bytes, figures->memory_limit_bytes) << one.drives;
    EXPECT_EQ(figures->memory_limit_bytes, 128U << 20);
    ASSERT_EQ(figures->drives.size(), one.drives);
    std::size_t silent = 0;
    for (const model::FlashEstimate& drive : figures->drives) {
      silent += drive.silence == FlashSilence::no_memory ? 1U : 0U;
    }
    EXPECT_EQ(silent > 0, one.drives == 200) << one.drives;
    printf("%zu drives: %s, %.1f MB, %zu silent\n", one.drives, figures->scale.c_str(),
           static_cast<double>(figures->memory_bytes) / 1e6, silent);
  }
}

TEST(FlashModels, GoOnWhenAnotherDriveComesOrGoes) {
  ModelSettings settings = flash_settings();
  settings.memory_bytes = std::uint64_t{20} << 20;
  Host host(settings);
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(0.3);
  host.settle();
  const auto what_ifs = [&] { return host.models->figures()->memory_bytes; };
  const auto alone = what_ifs();
  host.drives.push_back(flash_drive("sdb", kPages));
  host.settle();
  EXPECT_LE(what_ifs(), settings.memory_bytes);
  EXPECT_EQ(host.models->figures()->scale, "fewer_what_ifs");
  EXPECT_GT(host.drive(0).report->drive_writes, 0.29);
  host.drives.pop_back();
  host.settle();
  EXPECT_GT(host.drive(0).report->drive_writes, 0.29);
  EXPECT_LT(what_ifs(), alone);
  EXPECT_EQ(host.models->figures()->scale, "fewer_what_ifs") << "what was given up does not come back";
}

TEST(FlashModels, GoOnWhenMemoryIsShortForAnotherDrive) {
  constexpr std::uint64_t kLarger = std::uint64_t{1} << 24;  // one page of 256 is followed, or of 512
  ModelSettings settings = flash_settings();
  settings.rate_bits.reset();
  settings.memory_bytes = 4'000'000;  // one base and half of another
  Host host(settings, {flash_drive("sda", kLarger)});
  host.loads["sda"] = test::uniform_load(kLarger, 4);
  host.play(0.5);
  host.settle();
  const std::uint64_t before = host.drive(0).report->sampled_writes;
  EXPECT_GT(before, 750U);
  const Sampling alone = *host.models->sampling();
  host.drives.push_back(flash_drive("sdb", kLarger));
  host.drives.push_back(flash_drive("sdc", kLarger));
  host.settle();
  EXPECT_GE(host.drive(0).report->sampled_writes, before);
  EXPECT_EQ(host.models->sampling()->at("sda"), alone.at("sda"));
  EXPECT_EQ(host.models->sampling()->at("sdb").rate_bits, alone.at("sda").rate_bits + 1);
  EXPECT_EQ(host.drive(2).silence, FlashSilence::no_memory);
  EXPECT_EQ(host.models->figures()->scale, "fewer_drives");
  EXPECT_LE(host.models->figures()->memory_bytes, settings.memory_bytes);
  host.drives.erase(host.drives.begin());
  host.loads.clear();
  host.settle();
  EXPECT_FALSE(host.drive(1).silence) << "sdc has the memory that sda left";
  EXPECT_EQ(host.models->figures()->scale, "smaller_samples") << "of sdb";
}

TEST(FlashModels, FitADriveThatCountsItsMediaWrites) {
  Host host(flash_settings());
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(4);  // the window still includes the first half drive write, which cost less
  // A_lrw(1.12) = 4.846, plus 4 % for maps and parity.
  host.drives[0].measured_day = model::Estimate{1.04 * 4.846, 1.04 * 4.82, 1.04 * 4.87};
  host.settle();
  const auto& fitted = host.drive().overprovisioning;
  EXPECT_EQ(fitted.basis, model::OverprovisioningBasis::media_counter);
  EXPECT_NEAR(fitted.likely, 0.12, 0.006);
  EXPECT_LT(fitted.lower, 0.12);
  EXPECT_GT(fitted.upper, 0.12);
  ASSERT_TRUE(likely(host.drive()));
  EXPECT_NEAR(likely(host.drive())->ratio, 4.846, 0.2);
  EXPECT_FALSE(host.drive().drift) << "a fit agrees with what it was made of";
  host.kernel.at += std::chrono::hours(20);  // still within the window of a day
  host.play(0.5);
  host.kernel.at += std::chrono::hours(5);
  host.play(0.1);
  host.settle();
  ASSERT_TRUE(host.drive().drift);
  EXPECT_NEAR(host.drive().drift->ratio, 0, 0.06);
  EXPECT_LT(host.drive().drift->lower, 0);
  EXPECT_GT(host.drive().drift->upper, 0);
  EXPECT_LT(host.drive().drift->upper, 1) << "its bounds are no wider than a factor of two";
}

TEST(FlashModels, ForecastWhereCollectionBegins) {
  Host host(flash_settings());
  host.loads["sda"] = [sent = false, n = std::uint64_t{0}]() mutable {
    return std::exchange(sent, true) ? test::FlashOperation{false, n++ % kPages, 1, 0}
                                     : test::FlashOperation{true, 0, kPages, 0};
  };
  host.play(0.1);
  host.settle();
  const double size = static_cast<double>(kPages * test::kFlashPage);
  ASSERT_TRUE(host.drive().collection_begins);
  EXPECT_NEAR(host.drive().collection_begins->lower / size, 1.0737, 0.001);
  EXPECT_NEAR(host.drive().collection_begins->upper / size, 1.5, 0.001);
  EXPECT_NEAR(static_cast<double>(*host.drive().report->written_since_full_discard_bytes) / size, 0.1, 0.02);
}

model::DeviceTick disk(const std::string& name, const std::string& transport, std::uint64_t size = 960'000'000'000) {
  model::Device device;
  device.name = name;
  device.transport = transport;
  device.size_bytes = size;
  device.serial = "S" + name;
  device.write_granularity_bytes = 4096;
  model::DeviceTick entry;
  entry.block.device = std::make_shared<const model::Device>(device);
  entry.block.io = std::make_shared<const model::DeviceIo>();
  return entry;
}

TEST(FlashInput, KnowsDrivesByTheirNamespaces) {
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->controller = "nvme0";
  identity->transport = "pcie";
  identity->namespaces = {{"nvme0n1", 1}, {"nvme0n2", 2}};
  identity->namespaces[0].used_share = 0.5;
  auto drive = std::make_shared<model::NvmeDrive>();
  drive->identity = identity;
  model::Tick tick;
  tick.devices = {disk("nvme0n1", "nvme"), disk("nvme0n2", "nvme"), disk("sda", "sata"), disk("vda", "virtio")};
  tick.devices[0].drive = tick.devices[1].drive = drive;
  tick.drives = {{drive, "nqn and serial", true}};
  auto before = std::make_shared<model::Snapshot>();
  before->nvme_drives = {*drive};
  auto& waf = before->nvme_drives[0].write_amplification;
  waf.host_written_bytes = 7e12;
  waf.host_written_drift_lower_bytes = 5e9;
  waf.ratios = {{"5m", 300, 0, 1, 1, 1}, {"24h", 86400, 0, 2, 1.9, 2.1}};
  tick.before = before;
  auto found = drives_of(tick);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name(), "nvme0");
  EXPECT_EQ(found[0].key, "nqn and serial");
  EXPECT_EQ(found[0].namespaces.size(), 2U);
  EXPECT_EQ(found[0].facts.size_bytes, 1'920'000'000'000);
  EXPECT_FALSE(found[0].facts.virtual_device || found[0].facts.partly_measured || found[0].facts.compresses);
  EXPECT_NE(found[0].namespaces[0].made_as, "");
  EXPECT_EQ(found[0].used_share, std::nullopt) << "one of two does not say";
  EXPECT_EQ(found[0].host_written_bytes, 7e12);
  EXPECT_EQ(found[0].written_elsewhere_bytes, 5e9);
  EXPECT_EQ(found[0].measured_day, (model::Estimate{2, 1.9, 2.1}));
  EXPECT_EQ(found[1].name(), "sda");
  EXPECT_FALSE(found[1].facts.virtual_device);
  EXPECT_FALSE(found[1].measured_day);
  EXPECT_TRUE(found[2].facts.virtual_device);
  identity->namespaces[1].used_share = 1;
  EXPECT_EQ(drives_of(tick)[0].used_share, 0.75);
  // One namespace is excluded, and the day is not complete.
  waf.ratios[1].covered_seconds = 3600;
  tick.devices.erase(tick.devices.begin() + 1);
  found = drives_of(tick);
  EXPECT_TRUE(found[0].facts.partly_measured);
  EXPECT_FALSE(found[0].measured_day);
}

struct MediumCase {
  const char* transport;
  const char* model;
  std::uint16_t vendor_id;
  bool of_virtual_machine;
  double used;  // of the drive's life, as it reports it
  const char* medium;
};

const MediumCase kMedia[] = {
    {"nvme", "bhyve-NVMe", 0xFB5D, false, 0, "software"},
    {"nvme", "bhyve-NVMe", 0xFB5D, true, 0.3, "software"},
    {"sata", "BHYVE SATA DISK", 0, true, 0, "software"},
    {"nvme", "QEMU NVMe Ctrl", 0x1B36, true, 0, "software"},
    {"nvme", "VMware Virtual NVMe Disk", 0x15AD, true, 0, "software"},
    {"nvme", "ORCL-VBOX-NVME-VER12", 0x80EE, true, 0, "software"},
    {"nvme", "Amazon Elastic Block Store", 0x1D0F, true, 0, "software"},
    {"nvme", "nvme_card-pd", 0x1AE0, true, 0, "software"},
    {"nvme", "MSFT NVMe Accelerator v1.0", 0x1414, true, 0, "software"},
    {"nvme", "Linux", 0, false, 0, "software"},
    {"nvme", "Renamed by its user", 0x1B36, false, 0, "software"},
    {"scsi", "INTEL SSDSC2BB48", 0, false, 0, "software"},
    {"virtio", "", 0, true, 0, "software"},
    {"nvme", "A hypervisor that no list knows", 0xABCD, true, 0, "unknown"},
    {"nvme", "SAMSUNG MZQL21T9HCJR", 0x144D, true, 0.03, "drive"},
    {"nvme", "SAMSUNG MZQL21T9HCJR", 0x144D, true, 0, "unknown"},
    {"nvme", "SAMSUNG MZQL21T9HCJR", 0x144D, false, 0, "drive"},
    {"sata", "INTEL SSDSC2BB48", 0, false, 0, "drive"},
    {"sata", "INTEL SSDSC2BB48", 0, true, 0, "unknown"},
};

TEST(FlashInput, ADiskIsTakenForADriveOnlyIfNothingSpeaksAgainstIt) {
  for (const MediumCase& one : kMedia) {
    model::DeviceTick entry = disk("nvme0n1", one.transport);
    model::Device device = *entry.block.device;
    device.model = one.model;
    device.of_virtual_machine = one.of_virtual_machine;
    entry.block.device = std::make_shared<const model::Device>(device);
    auto identity = std::make_shared<model::NvmeIdentity>();
    identity->controller = "nvme0";
    identity->transport = "pcie";
    identity->vendor_id = one.vendor_id;
    auto drive = std::make_shared<model::NvmeDrive>();
    drive->identity = identity;
    drive->values = {{model::NvmeField::percentage_used_ratio, "", one.used},
                     {model::NvmeField::power_on_seconds, "", 1e6}};
    entry.drive = one.vendor_id != 0 ? drive : nullptr;
    EXPECT_EQ(model::name(model::medium_of(device, entry.drive.get()), model::kMediumNames), one.medium) << one.model;
    model::Tick tick;
    tick.devices = {entry};
    ASSERT_EQ(drives_of(tick).size(), 1U);
    EXPECT_EQ(drives_of(tick)[0].facts.virtual_device, std::string_view(one.medium) != "drive") << one.model;
  }
}

TEST(FlashInput, ADriveIsMeasuredInPartWhereADiskOrAPathOfItIsNot) {
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->controller = "nvme0";
  identity->namespaces = {{"nvme0n1", 1}, {"nvme0n2", 2}};
  auto drive = std::make_shared<model::NvmeDrive>();
  drive->identity = identity;
  model::Tick tick;
  tick.devices = {disk("nvme0n1", "nvme"), disk("nvme0n2", "nvme"), disk("sda", "sata")};
  tick.devices[0].drive = tick.devices[1].drive = drive;
  tick.drives = {{drive, "nqn and serial", true}};
  EXPECT_FALSE(drives_of(tick)[0].facts.partly_measured);
  tick.devices[1].block.io = nullptr;
  tick.devices[2].block.whole = false;
  EXPECT_TRUE(drives_of(tick)[0].facts.partly_measured);
  EXPECT_TRUE(drives_of(tick)[1].facts.partly_measured);
}

TEST(FlashInput, KnowsWhichDisksItWouldKnowAgain) {
  model::Tick tick;
  for (const char* const serial : {"S1", ""}) {
    for (const char* const wwid : {"eui.1", ""}) {
      auto device = *disk("sda", "sata").block.device;
      device.serial = serial;
      device.wwid = wwid;
      model::DeviceTick entry;
      entry.block.device = std::make_shared<const model::Device>(device);
      tick.devices = {entry};
      EXPECT_EQ(drives_of(tick)[0].has_lasting_key, !device.serial.empty() || !device.wwid.empty());
    }
  }
}

TEST(FlashInput, TakesNoCountersOfADriveThatWasReplaced) {
  for (const char* const serial : {"S1", "S2"}) {
    auto identity = std::make_shared<model::NvmeIdentity>();
    identity->controller = "nvme0";
    identity->serial = "S1";
    identity->namespaces = {{"nvme0n1", 1}};
    auto drive = std::make_shared<model::NvmeDrive>();
    drive->identity = identity;
    auto before = std::make_shared<model::Snapshot>();
    before->nvme_drives = {*drive};
    before->nvme_drives[0].write_amplification.host_written_bytes = 7e12;
    auto now = std::make_shared<model::NvmeIdentity>(*identity);
    now->serial = serial;
    auto drive_now = std::make_shared<model::NvmeDrive>();
    drive_now->identity = now;
    model::Tick tick;
    tick.devices = {disk("nvme0n1", "nvme")};
    tick.devices[0].drive = drive_now;
    tick.drives = {{drive_now, "nqn and serial", true}};
    tick.before = before;
    EXPECT_EQ(drives_of(tick)[0].host_written_bytes.has_value(), std::string(serial) == "S1");
  }
}

TEST(FlashInput, TakesThePreferredGranularityForAPage) {
  const std::pair<std::uint32_t, std::uint64_t> cases[] = {{512, 4096},    {4096, 4096},   {16384, 16384},
                                                           {65536, 65536}, {131072, 4096}, {12288, 4096}};
  for (const auto& [granularity, page] : cases) {
    model::Tick tick;
    auto entry = disk("sda", "sata");
    auto device = *entry.block.device;
    device.write_granularity_bytes = granularity;
    entry.block.device = std::make_shared<const model::Device>(device);
    tick.devices = {entry};
    EXPECT_EQ(drives_of(tick)[0].page_bytes, page) << granularity;
  }
}

TEST(ModelRunner, NeverWaitsAndCountsWhatItHadNoRoomFor) {
  Host host(flash_settings());
  ModelRunner runner(flash_settings());
  auto input = host.kernel.tick(host.drives, {}, host.loads, 0);
  runner.observe(input);
  for (int i = 0; runner.sampling()->empty() && i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(runner.sampling()->size(), 1U);
  // More in one tick than any kernel buffer holds.
  auto samples = std::make_shared<model::FlashSamples>();
  samples->devices.push_back({"sda", 1, {}, {}});
  samples->devices[0].written[0] = 8 * 30'000;
  samples->events.resize(ModelRunner::kMaxEvents + 1, {0, 1, 0, model::FlashEventKind::write, 0});
  input.sampling = runner.sampling();
  input.samples = samples;
  input.at += std::chrono::seconds(1);
  const auto began = std::chrono::steady_clock::now();
  runner.observe(input);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(200));
  auto after = std::make_shared<model::FlashSamples>(*samples);
  after->events.clear();
  input.samples = after;
  for (int i = 0; i < 40; ++i) {
    input.at += std::chrono::seconds(1);
    runner.observe(input);
  }
  for (int i = 0; runner.figures()->overflowed_events == 0 && i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(runner.figures()->overflowed_events, ModelRunner::kMaxEvents + 1);
  for (int i = 0; runner.figures()->drives[0].lost_writes == 0 && i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(runner.figures()->drives[0].lost_writes, ModelRunner::kMaxEvents + 1);
  EXPECT_GT(runner.figures()->drives[0].report->lost_writes, 0.03);
}

}  // namespace
}  // namespace ssdpulse::flash
