// SPDX-License-Identifier: Apache-2.0
// Which file is the configuration, and what does check-config report about a host that lacks something?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/advice/host_gaps.h"
#include "daemon/cli/command_options.h"

namespace ssdpulse::cli {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ConfigurationOptions, TheFileOfTheServiceIsTheDefault) {
  ConfigurationOptions options;
  options.default_file = written("default.yaml", "spikes:\n  floor: 7ms\n");
  ASSERT_TRUE(configure(options));
  EXPECT_EQ(configure(options)->spikes.floor, std::chrono::milliseconds(7));
  EXPECT_EQ(describe_origin(options), options.default_file);
  options.config_file = "";
  EXPECT_EQ(configure(options)->spikes, config::Config().spikes) << "an empty name means the built-in defaults";
  EXPECT_EQ(describe_origin(options), "built-in defaults");
}

TEST(ConfigurationOptions, TheDefaultFileNeedNotExistButAGivenOneMust) {
  ConfigurationOptions options;
  options.default_file = ::testing::TempDir() + "no/such.yaml";
  ASSERT_TRUE(configure(options));
  EXPECT_EQ(*configure(options), config::Config{});
  EXPECT_EQ(describe_origin(options), "built-in defaults (there is no " + options.default_file + ")");
  options.config_file = options.default_file;
  EXPECT_FALSE(configure(options));
}

TEST(ConfigurationOptions, ADefaultFileThatIsWrongIsAnError) {
  ConfigurationOptions options;
  options.default_file = written("wrong.yaml", "spikes:\n  flor: 7ms\n");
  EXPECT_FALSE(configure(options));
}

TEST(ConfigurationOptions, RepeatedOptionsAllCount) {
  ConfigurationOptions options;
  options.config_file = "";
  CLI::App app;
  add_configuration_options(app, options);
  app.parse(
      "--devices.include sda --devices.exclude loop1 --devices.include nvme* --devices.exclude loop2 "
      "--web.listen-address :1 --web.listen-address :2");
  const auto configured = configure(options);
  ASSERT_TRUE(configured);
  EXPECT_EQ(configured->devices.include, (std::vector<std::string>{"sda", "nvme*"}));
  EXPECT_EQ(configured->devices.exclude, (std::vector<std::string>{"loop1", "loop2"}));
  EXPECT_EQ(configured->web.listen_address, (std::vector<std::string>{":1", ":2"}));
}

model::Inventory host() {
  model::Inventory inventory;
  for (const char* name : {"nvme0n1", "sda"}) {
    model::Device device;
    device.name = name;
    inventory.devices.push_back(device);
  }
  return inventory;
}

TEST(HostGaps, NoneByDefault) {
  config::Config config;
  config.history.directory = ::testing::TempDir() + "history";
  EXPECT_EQ(advice::host_gaps(config, host()), std::vector<std::string>{}) << "this host has no zram, and needs none";
}

TEST(HostGaps, PatternsThatMatchNothing) {
  config::Config config;
  config.history.directory = "";
  config.devices = {{"nvme*", "vd*", "sdb"}, {"loop*", "md*"}};
  EXPECT_EQ(advice::host_gaps(config, host()),
            (std::vector<std::string>{"devices.include: \"vd*\" matches no block device of this host",
                                      "devices.include: \"sdb\" matches no block device of this host",
                                      "devices.exclude: \"md*\" matches no block device of this host"}));
}

TEST(HostGaps, ADeviceThatIsNamedAndNotMeasured) {
  config::Config config;
  config.history.directory = "";
  config.devices.include = {"sda", "nvme*"};
  auto inventory = host();
  inventory.devices[1].coverage = model::Coverage::stacked;
  EXPECT_EQ(advice::host_gaps(config, inventory),
            (std::vector<std::string>{"devices.include: \"sda\" is not measured: measured on the disks below it"}));
  inventory.devices[0].coverage = model::Coverage::empty;
  EXPECT_EQ(advice::host_gaps(config, inventory).back(), "devices: no block device of this host would be measured");
}

TEST(HostGaps, TheParentOfTheHistory) {
  config::Config config;
  config.history.directory = ::testing::TempDir() + "absent/history/";
  ASSERT_EQ(advice::host_gaps(config, host()).size(), 1U);
  EXPECT_EQ(advice::host_gaps(config, host())[0], "history.directory: its parent " + ::testing::TempDir() +
                                                      "absent does not exist; the daemon would not start");
  config.history.directory = written("a_file", "") + "/history";
  ASSERT_EQ(advice::host_gaps(config, host()).size(), 1U);
  EXPECT_NE(advice::host_gaps(config, host())[0].find("is not a directory"), std::string::npos);
}

}  // namespace
}  // namespace ssdpulse::cli
