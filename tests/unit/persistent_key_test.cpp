// SPDX-License-Identifier: Apache-2.0
// Is the key that hides names the same after a restart, readable only by its owner, never taken from an invalid file?
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/tenants/tenant_key.h"

namespace {
int synced_directories = 0;
}  // namespace

/// Instead of the C library's.
extern "C" int fsync(int file) {
  struct stat status {};
  synced_directories += ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? 1 : 0;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace ssdpulse::tenants {
namespace {

class PersistentKey : public testing::Test {
 protected:
  PersistentKey() {
    std::string name = testing::TempDir() + "key-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/" + kKeyFileName;
  }
  ~PersistentKey() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(PersistentKey, is_made_once_and_is_its_owners_alone) {
  synced_directories = 0;
  const auto first = persistent_key(directory_);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(synced_directories, 1) << "or a crash of the host could take the key away";
  EXPECT_NE(*first, util::HashKey{});
  EXPECT_EQ(persistent_key(directory_).value(), *first);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(status.st_size, 32);
  std::filesystem::remove(path_);
  EXPECT_NE(persistent_key(directory_).value(), *first);
}

TEST_F(PersistentKey, InvalidKeyFileIsKept) {
  std::ofstream(path_) << "short";
  const auto key = persistent_key(directory_);
  ASSERT_FALSE(key.has_value());
  EXPECT_NE(key.error().message.find("remove it"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path_), 5U);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(persistent_key(directory_).has_value());
}

TEST_F(PersistentKey, a_link_is_not_followed) {
  std::ofstream(directory_ + "/elsewhere") << std::string(32, 'x');
  std::filesystem::create_symlink(directory_ + "/elsewhere", path_);
  EXPECT_FALSE(persistent_key(directory_).has_value());
}

TEST_F(PersistentKey, survives_leftovers_of_an_interrupted_start) {
  std::ofstream(path_ + ".new") << "half";
  EXPECT_TRUE(persistent_key(directory_).has_value());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(PersistentKey, without_a_directory_there_is_an_error) {
  EXPECT_FALSE(persistent_key(directory_ + "/none").has_value());
}

}  // namespace
}  // namespace ssdpulse::tenants
