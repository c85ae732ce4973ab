// SPDX-License-Identifier: Apache-2.0
// What exactly does a drive receive? Every command that could reach the kernel is intercepted: this program's own
// ioctl() takes precedence over the C library's. And which requests are not allowed?
#include <gtest/gtest.h>
#include <linux/ioctl.h>
#include <linux/nvme_ioctl.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <vector>

#include "daemon/nvme_reader/drive_commands.h"
#include "tests/fixtures/nvme_sysfs.h"

namespace {

struct Seen {
  unsigned long request = 0;
  int fd = -1;
  nvme_passthru_cmd command{};  // of the 64-bit form, only the fields that both have
};
std::vector<Seen> seen;
int answer = 0;

}  // namespace

// NOLINTNEXTLINE(cert-dcl50-cpp): as the C library declares it
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  const void* command = va_arg(arguments, const void*);
  va_end(arguments);
  Seen one{request, fd, {}};
  std::memcpy(&one.command, command, offsetof(nvme_passthru_cmd, result));
  seen.push_back(one);
  if (answer < 0) {
    errno = -answer;
    return -1;
  }
  std::memset(reinterpret_cast<void*>(one.command.addr), 0xa5, one.command.data_len);
  return answer;
}

namespace ssdpulse::nvme_reader {
namespace {

using namespace nvme;

bool any_drive(const model::NvmeIdentity& /*identity*/) { return true; }
util::Result<PageContent> nothing(Bytes /*bytes*/, const model::NvmeIdentity& /*identity*/) { return PageContent{}; }

constexpr Uuid kUuid{1, 2, 3};
const std::array kPages{
    LogPage{"smart", "", 0x02, 0, 512, Scope::controller, false, nullptr, any_drive, nothing},
    LogPage{"fdp_events", "", 0x23, 1, 4096, Scope::no_namespace, true, nullptr, any_drive, nothing},
    LogPage{"vendor", "vendor", 0xca, 0, 64, Scope::controller, false, &kUuid, any_drive, nothing},
    LogPage{"too_long", "", 0xcb, 0, 4100, Scope::controller, false, nullptr, any_drive, nothing},
    LogPage{"odd", "", 0xcc, 0, 510, Scope::controller, false, nullptr, any_drive, nothing},
    LogPage{"of_namespace", "", 0xd0, 0, 4096, Scope::first_namespace, false, nullptr, any_drive, nothing},
    LogPage{"empty", "", 0xcd, 0, 0, Scope::controller, false, nullptr, any_drive, nothing},
};

Request request(RequestKind kind, std::uint32_t nsid = 0) {
  Request made;
  made.id = 1;
  made.kind = kind;
  made.nsid = nsid;
  return made;
}

Request page_request(std::uint16_t page, std::uint16_t endurance_group = 0, std::uint8_t uuid_index = 0) {
  Request made = request(RequestKind::log_page);
  made.page = page;
  made.endurance_group = endurance_group;
  made.uuid_index = uuid_index;
  return made;
}

/// The one command that the kernel received for this request.
Seen sent(const Request& wanted, int drive_answers = 0) {
  const auto command = command_of(wanted, kPages);
  EXPECT_TRUE(command);
  seen.clear();
  answer = drive_answers;
  std::vector<std::uint8_t> data(command->bytes);
  EXPECT_EQ(LibnvmeCommands().execute(7, *command, data), drive_answers);
  EXPECT_EQ(seen.size(), 1U);
  if (drive_answers == 0) {
    EXPECT_EQ(data, std::vector<std::uint8_t>(command->bytes, 0xa5)) << "all of the buffer is the drive's";
  }
  const Seen one = seen.empty() ? Seen{} : seen.front();
  EXPECT_TRUE(one.request == NVME_IOCTL_ADMIN_CMD || one.request == NVME_IOCTL_ADMIN64_CMD);
  EXPECT_EQ(one.fd, 7);
  EXPECT_EQ(one.command.timeout_ms, 0U) << "the kernel's own";
  EXPECT_EQ(one.command.data_len, command->bytes);
  EXPECT_EQ(one.command.metadata_len, 0U);
  return one;
}

TEST(NvmeCommands, Identify) {
  const struct {
    RequestKind kind;
    std::uint32_t nsid;
    std::uint32_t cns;
  } cases[] = {{RequestKind::identify_controller, 0, 0x01},
               {RequestKind::identify_namespace, 0x12345678, 0x00},
               {RequestKind::uuid_list, 0, 0x17},
               {RequestKind::endurance_group_list, 0, 0x19}};
  for (const auto& one : cases) {
    const Seen have = sent(request(one.kind, one.nsid));
    EXPECT_EQ(have.command.opcode, 0x06);
    EXPECT_EQ(have.command.nsid, one.nsid);
    EXPECT_EQ(have.command.cdw10, one.cns);
    EXPECT_EQ(have.command.cdw11, 0U);
    EXPECT_EQ(have.command.cdw14, 0U);
    EXPECT_EQ(have.command.data_len, 4096U);
  }
}

TEST(NvmeCommands, LogPages) {
  const Seen smart = sent(page_request(0));
  EXPECT_EQ(smart.command.opcode, 0x02);
  EXPECT_EQ(smart.command.nsid, 0xffffffffU);
  EXPECT_EQ(smart.command.cdw10, 127U << 16U | 1U << 15U | 0x02U);  // dwords less one, retain events, page
  EXPECT_EQ(smart.command.cdw11, 0U);
  EXPECT_EQ(smart.command.cdw12, 0U);
  EXPECT_EQ(smart.command.cdw13, 0U);
  EXPECT_EQ(smart.command.cdw14, 0U);

  const Seen events = sent(page_request(1, 0xbeef));
  EXPECT_EQ(events.command.nsid, 0U);
  EXPECT_EQ(events.command.cdw10, 1023U << 16U | 1U << 15U | 1U << 8U | 0x23U);
  EXPECT_EQ(events.command.cdw11, 0xbeefU << 16U);

  const Seen vendor = sent(page_request(2, 0, 127));
  EXPECT_EQ(vendor.command.cdw10, 15U << 16U | 1U << 15U | 0xcaU);
  EXPECT_EQ(vendor.command.cdw14, 127U);

  EXPECT_EQ(sent(page_request(5)).command.nsid, 1U);
}

TEST(NvmeCommands, WhatTheDriveOrTheKernelAnswers) {
  for (const int answered : {0x4002, 0x109, -EACCES, -ENODEV, -EINTR}) {
    sent(page_request(0), answered);
  }
}

TEST(NvmeCommands, ABufferOfAnotherSizeIsNotACommand) {
  seen.clear();
  std::array<std::uint8_t, 64> data{};
  EXPECT_EQ(LibnvmeCommands().execute(7, *command_of(page_request(0), kPages), data), -EINVAL);
  EXPECT_TRUE(seen.empty());
}

TEST(NvmeCommands, WhatIsNotAllowed) {
  const auto allowed = [](const Request& wanted) { return command_of(wanted, kPages).has_value(); };
  EXPECT_TRUE(allowed(page_request(2, 0, 127)));
  EXPECT_FALSE(allowed(page_request(2, 0, 128))) << "seven bits";
  EXPECT_FALSE(allowed(page_request(0, 0, 1))) << "a page without UUID";
  EXPECT_FALSE(allowed(page_request(0, 1))) << "a page of no endurance group";
  EXPECT_FALSE(allowed(page_request(1, 0))) << "an endurance group's page of none";
  EXPECT_FALSE(allowed(page_request(3))) << "too long";
  EXPECT_FALSE(allowed(page_request(4))) << "no dwords";
  EXPECT_FALSE(allowed(page_request(6))) << "empty";
  EXPECT_FALSE(allowed(page_request(7))) << "no such page";
  EXPECT_FALSE(allowed(page_request(0xffff)));
  EXPECT_FALSE(allowed(request(RequestKind::identify_namespace, 0)));
  EXPECT_FALSE(allowed(request(RequestKind::identify_namespace, 0xffffffff)));
  EXPECT_TRUE(allowed(request(RequestKind::identify_namespace, 0xfffffffe)));
  EXPECT_FALSE(allowed(request(RequestKind::identify_controller, 1)));
  EXPECT_FALSE(allowed(request(static_cast<RequestKind>(5)))) << "no such kind";
  EXPECT_FALSE(allowed(request(static_cast<RequestKind>(255))));
  Request numberless = page_request(0);
  numberless.id = 0;
  EXPECT_FALSE(allowed(numberless)) << "0 is a notice's";
  Request dirty = page_request(0);
  dirty.reserved[1] = 1;
  EXPECT_FALSE(allowed(dirty));
}

RC_GTEST_PROP(NvmeCommands, WhateverIsAskedOnlyListedCommandsComeOut, ()) {
  Request wanted = *rc::gen::element(page_request(0), page_request(1, 2), page_request(2, 0, 3),
                                     request(RequestKind::identify_namespace, 1), request(RequestKind::uuid_list));
  std::array<std::uint8_t, sizeof wanted> bytes{};
  std::memcpy(bytes.data(), &wanted, sizeof wanted);
  for (int change = *rc::gen::inRange(0, 4); change > 0; --change) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  }
  std::memcpy(&wanted, bytes.data(), sizeof wanted);
  const auto command = command_of(wanted, kPages);
  RC_CLASSIFY(command.has_value(), "allowed");
  if (!command) {
    return;
  }
  if (command->opcode == Opcode::identify) {
    const std::vector<int> structures{0x00, 0x01, 0x17, 0x19};
    RC_ASSERT(std::count(structures.begin(), structures.end(), command->selector) == 1);
  } else {
    const std::vector<int> pages{0x02, 0x23, 0xca, 0xd0};
    RC_ASSERT(std::count(pages.begin(), pages.end(), command->selector) == 1);
  }
  RC_ASSERT(command->bytes % 4 == 0 && command->bytes > 0 && command->bytes <= kMaxPageBytes);
}

/// What open() returns for nvme0, with the state and device number in sysfs.
class NvmeOpen : public testing::Test {
 protected:
  NvmeOpen() {
    sysfs_.controller(0, 0);
    sysfs_.tree().directory("dev");
    set("dev", "1:3");
  }
  void set(const std::string& attribute, const std::string& value) const {
    sysfs_.tree().file("sys/class/nvme/nvme0/" + attribute, value + "\n");
  }
  [[nodiscard]] std::string node() const { return sysfs_.tree().path("dev/nvme0"); }
  [[nodiscard]] int error_of(std::uint32_t controller) const {
    const auto fd = LibnvmeCommands(sysfs_.root(), sysfs_.tree().path("dev")).open(controller);
    return fd ? 0 : fd.error().error_number;
  }

  tests::NvmeSysfs sysfs_;
};

TEST_F(NvmeOpen, NoSuchController) {
  EXPECT_EQ(error_of(1), ENODEV);
  EXPECT_EQ(error_of(0xffffffff), ENODEV);
}

TEST_F(NvmeOpen, NoDeviceFile) { EXPECT_EQ(error_of(0), ENOENT); }

TEST_F(NvmeOpen, StateIsCheckedFirst) {
  for (const char* state : {"resetting", "connecting", "deleting", "dead", "new", "", "live now", "LIVE"}) {
    set("state", state);
    EXPECT_EQ(error_of(0), EAGAIN) << state;
  }
}

TEST_F(NvmeOpen, OnlyThatCharacterDevice) {
  sysfs_.tree().file("dev/nvme0", "a file");
  EXPECT_EQ(error_of(0), ENXIO);
  sysfs_.tree().remove("dev/nvme0");
  sysfs_.tree().link("dev/nvme0", "/dev/null");
  EXPECT_EQ(error_of(0), ELOOP);
  sysfs_.tree().remove("dev/nvme0");
  if (::mknod(node().c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "device files need root";
  }
  EXPECT_EQ(error_of(0), 0);
  set("dev", "1:5");
  EXPECT_EQ(error_of(0), ENXIO) << "another device has that name";
  ::unlink(node().c_str());
  ASSERT_EQ(::mknod(node().c_str(), S_IFBLK | 0600, makedev(1, 3)), 0);
  set("dev", "1:3");
  EXPECT_NE(error_of(0), 0) << "a block device";
}

}  // namespace
}  // namespace ssdpulse::nvme_reader
