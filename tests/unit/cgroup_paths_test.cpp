// SPDX-License-Identifier: Apache-2.0
// Is each cgroup found, and only reported gone when it is, without walking the tree all the time? Uses a tree of
// directories: the kernel's cgroups have inode numbers, too.
#include "daemon/tenants/cgroup_paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace ssdpulse::tenants {
namespace {

using namespace std::chrono_literals;

class Tree : public testing::Test {
 protected:
  Tree() {
    std::string name = testing::TempDir() + "cgroups-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~Tree() override { std::filesystem::remove_all(root_); }

  model::CgroupId make(const std::string& path) {
    std::filesystem::create_directories(root_ + path);
    std::ofstream(root_ + path + "/cgroup.procs") << "1\n";
    return id_of(path);
  }
  [[nodiscard]] model::CgroupId id_of(const std::string& path) const {
    struct stat status {};
    EXPECT_EQ(::stat((root_ + path).c_str(), &status), 0) << path;
    return status.st_ino;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ + path); }

  /// It sends its first I/O.
  void see(model::CgroupId id, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    seen_[id] = {path == "/" ? model::kNoCgroup : id_of(path.substr(0, slash)), path.substr(slash + 1)};
  }
  CgroupPaths::Update update(CgroupPaths& paths) {
    now_ += 1s;
    return paths.update(seen_, now_);
  }
  CgroupPaths::Update updates(CgroupPaths& paths, int times) {
    for (int i = 1; i < times; ++i) {
      update(paths);
    }
    return update(paths);
  }

  std::string root_;
  model::SeenCgroups seen_;
  model::SteadyTime now_{1h};
};

TEST_F(Tree, what_is_there_is_found_and_what_goes_is_gone) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  const auto nginx = make("/system.slice/nginx.service");
  const auto deep = make("/a/b/c/d");
  see(id_of(""), "/");
  see(nginx, "/system.slice/nginx.service");
  see(deep, "/a/b/c/d");
  CgroupPaths::Update seen = updates(paths, 8);
  EXPECT_EQ(seen.paths.at(id_of("")), "/");
  EXPECT_EQ(seen.paths.at(nginx), "/system.slice/nginx.service");
  EXPECT_EQ(seen.paths.at(deep), "/a/b/c/d");
  EXPECT_TRUE(seen.gone.empty());

  remove("/system.slice/nginx.service");
  seen = updates(paths, 4);
  EXPECT_EQ(seen.gone, std::vector<model::CgroupId>{nginx});
  EXPECT_EQ(seen.paths.at(nginx), "/system.slice/nginx.service");  // while it is counted
  seen_.erase(nginx);
  EXPECT_TRUE(update(paths).gone.empty());
}

TEST_F(Tree, another_directory_of_the_name_does_not_keep_the_first_one) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  const auto first = make("/x");
  see(first, "/x");
  update(paths);
  make("/y");  // keeps the inode number from being reused
  std::filesystem::rename(root_ + "/x", root_ + "/z");
  make("/x");
  EXPECT_EQ(updates(paths, 4).gone, std::vector<model::CgroupId>{first});
}

TEST_F(Tree, one_that_was_gone_before_the_walk_is_named_by_its_parent) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  make("/system.slice");
  see(id_of(""), "/");
  const auto other = make("/other");
  see(other, "/other");
  update(paths);
  const auto shortly = make("/system.slice/shortly.service");
  see(shortly, "/system.slice/shortly.service");
  remove("/system.slice/shortly.service");
  EXPECT_EQ(update(paths).paths.at(shortly), "/system.slice/shortly.service");
  EXPECT_EQ(updates(paths, 4).gone, std::vector<model::CgroupId>{shortly});
}

TEST_F(Tree, one_that_was_gone_with_its_parent_keeps_its_own_name) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  const auto leaf = make("/pods/pod1/leaf");
  see(leaf, "/pods/pod1/leaf");
  remove("/pods");
  const CgroupPaths::Update last = updates(paths, 8);
  EXPECT_EQ(last.paths.at(leaf), "/?/leaf");
  EXPECT_EQ(last.gone, std::vector<model::CgroupId>{leaf});
}

TEST_F(Tree, an_incomplete_walk_is_continued) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  std::string deep;
  for (std::size_t level = 0; level < kMaxLevels + 2; ++level) {
    deep += "/d";
  }
  const auto leaf = make(deep + "/leaf");
  see(leaf, deep + "/leaf");
  CgroupPaths::Update last = updates(paths, 4);
  EXPECT_EQ(last.paths.at(leaf), "/?/leaf") << "it has a name meanwhile";
  EXPECT_TRUE(last.gone.empty());
  std::filesystem::rename(root_ + deep + "/leaf", root_ + "/leaf");
  // A walk that took long is not repeated soon.
  for (int i = 0; i < 1000 && last.paths.at(leaf) != "/leaf"; ++i) {
    last = update(paths);
  }
  EXPECT_EQ(last.paths.at(leaf), "/leaf");
  remove("/leaf");
  EXPECT_EQ(updates(paths, 4).gone, std::vector<model::CgroupId>{leaf});
}

TEST_F(Tree, a_walk_goes_on_where_it_was) {
  for (int i = 0; i < 20; ++i) {
    make("/a" + std::to_string(i) + "/b/c");
  }
  CgroupWalk at_once(root_), in_slices(root_);
  EXPECT_TRUE(at_once.advance(1h));
  int slices = 1;
  while (!in_slices.advance(0ns)) {
    ASSERT_LT(++slices, 10'000);
  }
  EXPECT_GT(slices, 60) << "one entry each";
  const Walk whole = at_once.take(), pieces = in_slices.take();
  EXPECT_TRUE(whole.complete && pieces.complete);
  EXPECT_EQ(pieces.directories.size(), 61U);
  for (const auto& [id, directory] : whole.directories) {
    ASSERT_EQ(pieces.directories.count(id), 1U);
    EXPECT_EQ(pieces.directories.at(id).leaf, directory.leaf);
    EXPECT_EQ(pieces.directories.at(id).parent, directory.parent);
  }
}

TEST_F(Tree, an_unreadable_directory_is_not_gone) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  const auto leaf = make("/pod/leaf");
  see(leaf, "/pod/leaf");
  updates(paths, 4);
  std::filesystem::rename(root_ + "/pod", root_ + "/hidden");
  std::filesystem::create_symlink("pod", root_ + "/pod");  // ELOOP
  EXPECT_TRUE(updates(paths, 4).gone.empty());
  std::filesystem::remove(root_ + "/pod");
  EXPECT_EQ(updates(paths, 4).gone, std::vector<model::CgroupId>{leaf});
}

TEST_F(Tree, where_others_are_not_seen_nothing_is_called_gone) {
  CgroupPaths paths(Hierarchy{root_, true, false});
  const auto own = make("/own");
  see(own, "/own");
  seen_[999'999'999] = {999'999'998, "docker-1.scope"};
  const CgroupPaths::Update last = updates(paths, 12);
  EXPECT_EQ(last.paths.at(own), "/?/own");
  EXPECT_EQ(last.paths.at(999'999'999), "/?/docker-1.scope");
  EXPECT_TRUE(last.gone.empty());
  EXPECT_EQ(paths.walks(), 1U) << "nor looked for again";
}

TEST_F(Tree, without_a_hierarchy_there_are_the_names_that_the_kernel_gave) {
  CgroupPaths paths(std::nullopt);
  seen_[1] = {model::kNoCgroup, ""};
  seen_[7] = {3, "x.service"};
  const CgroupPaths::Update last = updates(paths, 8);
  EXPECT_EQ(last.paths.at(1), "/");
  EXPECT_EQ(last.paths.at(7), "/?/x.service");
  EXPECT_TRUE(last.gone.empty());
}

TEST_F(Tree, strangers_are_no_reason_to_walk_each_time) {
  CgroupPaths paths(Hierarchy{root_, true, true});
  make("/a");
  for (std::uint64_t stranger = 0; stranger < 100; ++stranger) {
    seen_[1'000'000'000 + stranger] = {5'000'000'000 + stranger, "gone"};
    now_ += 10ms;  // as if one second were a hundred calls
    paths.update(seen_, now_);
  }
  EXPECT_LE(paths.walks(), 2U);
  EXPECT_GE(paths.walks(), 1U);
  update(paths);
  // Children of known parents need no walk.
  const auto walks = paths.walks();
  seen_.clear();
  for (int i = 0; i < 100; ++i) {
    const std::string path = "/a/" + std::to_string(i);
    see(make(path), path);
    update(paths);
  }
  EXPECT_EQ(paths.walks(), walks);
  EXPECT_EQ(updates(paths, 4).paths.size(), 100U);
  // Many of them are checked in turns, and eventually all.
  for (int i = 0; i < 600; ++i) {
    const std::string path = "/a/x" + std::to_string(i);
    see(make(path), path);
  }
  update(paths);
  remove("/a");
  EXPECT_LT(update(paths).gone.size(), 300U);
  EXPECT_EQ(updates(paths, 3).gone.size(), 700U);
}

}  // namespace
}  // namespace ssdpulse::tenants
