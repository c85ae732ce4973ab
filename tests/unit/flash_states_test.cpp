// SPDX-License-Identifier: Apache-2.0
// Do the models of a host's drives continue across restarts, and reject states that were damaged or forged?
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/flash_models_rig.h"

namespace ssdpulse::flash {
namespace {

using test::flash_drive;
using test::flash_settings;
using test::Host;
using test::kPages;
using test::likely;

std::string bytes_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

std::string state_in(const std::string& directory, const std::string& key) {
  auto state = read_state(bytes_in(StateFiles(directory).path_of(key)), key);
  EXPECT_TRUE(state) << (state ? "" : state.error().message);
  return state ? state->model : "";
}

TEST(FlashModels, GoOnOverARestartAsIfThereHadBeenNone) {
  const tests::TemporaryTree with;
  const tests::TemporaryTree without;
  Host restarted(flash_settings(with.path()));
  Host steady(flash_settings(without.path()));
  for (Host* host : {&restarted, &steady}) {
    host->loads["sda"] = test::wal_load(kPages, 3);
    host->play(1.5);
  }
  restarted.models->keep_all(restarted.last.wall);
  restarted.kernel.restart();
  // The saved seed is used.
  restarted.models = std::make_unique<ModelSet>(flash_settings(with.path(), 99));
  restarted.begin();
  steady.begin();
  for (Host* host : {&restarted, &steady}) {
    host->play(0.5);
    host->settle();
    host->models->keep_all(host->last.wall);
  }
  EXPECT_TRUE(restarted.drive().resumed);
  EXPECT_FALSE(steady.drive().resumed);
  EXPECT_TRUE(state_in(with.path(), "serial of sda") == state_in(without.path(), "serial of sda"));
  EXPECT_EQ(likely(restarted.drive()), likely(steady.drive()));
  EXPECT_EQ(restarted.drive().report->silence, steady.drive().report->silence);
}

TEST(FlashModels, RejectStatesThatWereDamaged) {
  const tests::TemporaryTree tree;
  {
    Host host(flash_settings(tree.path()));
    host.models->keep_all(host.last.wall);
  }
  const std::string path = StateFiles(tree.path()).path_of("serial of sda");
  const std::string good = bytes_in(path);
  ASSERT_GT(good.size(), 1U << 20);
  test::FlashDice dice(11);
  std::vector<std::string> bad{"", "x", good.substr(0, good.size() / 2), good + "x", std::string(good.size(), '\0')};
  for (int i = 0; i < 12; ++i) {
    bad.push_back(good);
    bad.back()[dice.below(i < 6 ? 300 : good.size())] ^= static_cast<char>(1 + dice.below(255));
  }
  for (const std::string& bytes : bad) {
    std::ofstream(path, std::ios::binary) << bytes;
    Host host(flash_settings(tree.path()));
    EXPECT_EQ(host.models->figures()->states_rejected, 1U);
    EXPECT_FALSE(host.drive().resumed);
  }
}

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(FlashModels, KeepNoStateOfAnUnidentifiableDisk) {
  const tests::TemporaryTree tree;
  const std::size_t before = files_in(tree.path());
  FlashDrive drive = flash_drive("sda", kPages);
  drive.has_lasting_key = false;
  for (int i = 0; i < 2; ++i) {
    Host host(flash_settings(tree.path()), {drive});
    EXPECT_FALSE(host.drive().resumed);
    host.models->keep_all(host.last.wall);
    EXPECT_EQ(files_in(tree.path()), before);
  }
}

TEST(FlashModels, KeepTheFitOverARestart) {
  const tests::TemporaryTree directory;
  Host host(flash_settings(directory.path()));
  host.loads["sda"] = test::uniform_load(kPages, 4);
  host.play(3);
  host.drives[0].measured_day = model::Estimate{1.04 * 4.846, 1.04 * 4.82, 1.04 * 4.87};
  host.settle();
  const auto before = host.drive().overprovisioning;
  ASSERT_EQ(before.basis, model::OverprovisioningBasis::media_counter);
  EXPECT_FALSE(before.policy) << "one load tells nothing of policies";
  host.models->keep_all(host.last.wall);
  host.kernel.restart();
  host.drives[0].measured_day.reset();  // not known again for 20 hours
  host.models = std::make_unique<ModelSet>(flash_settings(directory.path()));
  host.begin();
  host.settle();
  EXPECT_TRUE(host.drive().resumed);
  EXPECT_EQ(host.drive().overprovisioning, before);
}

TEST(StateFiles, RemoveTheOldestOfTooMany) {
  const tests::TemporaryTree tree;
  const StateFiles files(tree.path(), 1000);
  const auto age = [&](const std::string& key, int hours) {
    const std::filesystem::path path = files.path_of(key);
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(hours));
  };
  for (const char* const key : {"oldest", "older"}) {
    ASSERT_TRUE(files.write(key, std::string(400, 'x')));
    age(key, key == std::string("oldest") ? 2 : 1);
  }
  EXPECT_TRUE(*files.read("oldest"));
  ASSERT_TRUE(files.write("new", std::string(400, 'x')));
  EXPECT_FALSE(*files.read("oldest"));
  EXPECT_TRUE(*files.read("older"));
  EXPECT_TRUE(*files.read("new"));
  const auto mode = std::filesystem::status(files.path_of("new")).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  for (std::size_t i = 0; i < StateFiles::kMaxFiles + 8; ++i) {
    ASSERT_TRUE(files.write("disk " + std::to_string(i), "x"));
  }
  EXPECT_LE(files_in(tree.path()), StateFiles::kMaxFiles);
}

/// Anyone who can write there can also make the checksum right.
TEST(FlashModels, SurviveStatesThatWereForged) {
  Host host(flash_settings());
  DriveModel model(host.drives[0], {"serial of sda", kPages * 4096, 4096, 3, 77, default_what_ifs(0.085)});
  const DriveState good = model.state({});
  test::FlashDice dice(12);
  for (int i = 0; i < 40; ++i) {
    DriveState forged = good;
    // Random changes to the model's own bytes, with a checksum that fits them.
    std::string body = forged.model.substr(0, forged.model.size() - 8);
    for (std::uint64_t damage = 0; damage <= dice.below(6); ++damage) {
      body[dice.below(i % 2 == 0 ? 4000 : body.size())] = static_cast<char>(dice.next());
    }
    BinaryWriter sum;
    sum(checksum(body));
    forged.model = body + sum.bytes();
    const auto read = read_state(bytes_of(forged), forged.key);
    ASSERT_TRUE(read);
    if (auto resumed = DriveModel::resume(host.drives[0], *read, std::chrono::seconds(1), {})) {
      for (std::uint32_t page = 0; page < 2000; ++page) {
        (*resumed)->collect({page * 31 % 65536, 3, 0, model::FlashEventKind::write, 0});
      }
      (*resumed)->end_tick(std::chrono::seconds(2));
      (*resumed)->evaluate({});
    }
  }
}

TEST(FlashModels, RefuseStatesOfNoTime) {
  Host host(flash_settings());
  const DriveModel model(host.drives[0], {"serial of sda", kPages * 4096, 4096, 3, 77, default_what_ifs(0.085)});
  const DriveState good = model.state({});
  EXPECT_TRUE(read_state(bytes_of(good), good.key));
  for (double DriveState::*const time : {&DriveState::fitted_at, &DriveState::kept_at, &DriveState::absence}) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0, 1e300}) {
      DriveState forged = good;
      forged.*time = bad;
      EXPECT_FALSE(read_state(bytes_of(forged), good.key)) << bad;
    }
  }
}

}  // namespace
}  // namespace ssdpulse::flash
