// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_reader/drive_commands.h"

#include <fcntl.h>
#include <libnvme.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "daemon/base/outside_text.h"

namespace ssdpulse::nvme_reader {

CommandBudget* CommandBudget::shared() {
  void* memory = ::mmap(nullptr, sizeof(CommandBudget), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) CommandBudget;
}

bool CommandBudget::take(std::uint32_t controller, std::uint64_t now_ns) {
  return take(drives_.at(controller % drives_.size()), of_drive_, now_ns) && take(all_, of_all_, now_ns);
}

bool CommandBudget::take(Account& account, CommandRate rate, std::uint64_t now_ns) {
  const std::uint64_t cost_ns = 1'000'000'000 / std::max<std::uint64_t>(rate.per_second, 1);
  std::uint64_t whole_at = account.load();
  while (true) {
    const std::uint64_t after = std::max(whole_at, now_ns) + cost_ns;
    if (after - now_ns > rate.burst * cost_ns) {
      return false;
    }
    if (account.compare_exchange_weak(whole_at, after)) {
      return true;
    }
  }
}

namespace {

constexpr std::size_t kMaxStateBytes = 4096;
constexpr std::uint8_t kMaxUuidIndex = 127;
constexpr std::uint32_t kAllNamespaces = 0xffffffff;

std::optional<Command> identify(const Request& request) {
  Command command{.bytes = nvme::kIdentifyBytes, .nsid = request.nsid};
  const bool of_namespace = request.kind == RequestKind::identify_namespace;
  const bool nsid_fits = of_namespace ? request.nsid != 0 && request.nsid != kAllNamespaces : request.nsid == 0;
  if (!nsid_fits || request.page != 0 || request.endurance_group != 0 || request.uuid_index != 0) {
    return std::nullopt;
  }
  switch (request.kind) {
    case RequestKind::identify_controller:
      command.selector = NVME_IDENTIFY_CNS_CTRL;
      return command;
    case RequestKind::identify_namespace:
      command.selector = NVME_IDENTIFY_CNS_NS;
      return command;
    case RequestKind::uuid_list:
      command.selector = NVME_IDENTIFY_CNS_UUID_LIST;
      return command;
    case RequestKind::endurance_group_list:
      command.selector = NVME_IDENTIFY_CNS_ENDURANCE_GROUP_ID;
      return command;
    case RequestKind::log_page:
      break;
  }
  return std::nullopt;  // also any number that is no kind at all
}

std::uint32_t nsid_of(nvme::Scope scope) {
  return scope == nvme::Scope::controller ? kAllNamespaces : scope == nvme::Scope::first_namespace ? 1 : 0;
}

std::optional<Command> log_page(const Request& request, std::span<const nvme::LogPage> pages) {
  if (request.page >= pages.size() || request.nsid != 0) {
    return std::nullopt;
  }
  const nvme::LogPage& page = pages[request.page];
  const std::uint8_t highest_index = page.uuid == nullptr ? 0 : kMaxUuidIndex;
  if (page.bytes == 0 || page.bytes % 4 != 0 || page.bytes > nvme::kMaxPageBytes ||
      request.uuid_index > highest_index || page.per_endurance_group != (request.endurance_group != 0)) {
    return std::nullopt;
  }
  return Command{.opcode = Opcode::get_log_page,
                 .selector = page.lid,
                 .lsp = page.lsp,
                 .uuid_index = request.uuid_index,
                 .lsi = request.endurance_group,
                 .bytes = page.bytes,
                 .nsid = nsid_of(page.scope)};
}

/// libnvme returns -1 and sets errno, or returns the drive's status.
int result_of(int returned) { return returned < 0 ? -std::max(errno, 1) : returned; }

}  // namespace

std::optional<Command> command_of(const Request& request, std::span<const nvme::LogPage> pages) {
  const bool clean = std::all_of(request.reserved.begin(), request.reserved.end(), [](auto byte) { return byte == 0; });
  if (!clean || request.id == 0) {
    return std::nullopt;
  }
  return request.kind == RequestKind::log_page ? log_page(request, pages) : identify(request);
}

LibnvmeCommands::LibnvmeCommands(std::string sys_root, std::string dev_root)
    : sys_root_(std::move(sys_root)), dev_root_(std::move(dev_root)) {}

// Opened for each command and closed after it: keeping the descriptor would hold on to a controller that is gone, and
// to its number and driver, to save one system call in ten seconds.
util::Result<util::UniqueFd> LibnvmeCommands::open(std::uint32_t controller) {
  const std::string name = "nvme" + std::to_string(controller);
  const std::string directory = sys_root_ + "/class/nvme/" + name;
  const auto state = util::read_file(directory + "/state", kMaxStateBytes);
  if (!state) {
    const int error = state.error().error_number;
    return util::fail(state.error().message, error == 0 || error == ENOENT ? ENODEV : error);
  }
  // On a controller that is not live, an ioctl would fail, or have to wait for its reset.
  if (util::without_padding(*state) != "live") {
    return util::fail(name + " is " + util::for_log(*state), EAGAIN);
  }
  const std::string path = dev_root_ + "/" + name;
  util::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    return util::fail_errno("cannot open " + path);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return util::fail_errno("cannot inspect " + path);
  }
  const auto number = util::read_file(directory + "/dev", kMaxStateBytes);
  const std::string opened = std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev));
  // It must not be another device of that name: a command would be an ioctl that means something else there.
  if (!S_ISCHR(status.st_mode) || !number || util::without_padding(*number) != opened) {
    return util::fail(path + " is not the controller", ENXIO);
  }
  return fd;
}

int LibnvmeCommands::execute(int fd, const Command& command, std::span<std::uint8_t> data) {
  if (data.size() != command.bytes) {
    return -EINVAL;
  }
  std::uint32_t completion = 0;
  if (command.opcode == Opcode::identify) {
    nvme_identify_args arguments{};
    arguments.args_size = sizeof arguments;
    arguments.fd = fd;
    arguments.timeout = NVME_DEFAULT_IOCTL_TIMEOUT;
    arguments.cns = static_cast<nvme_identify_cns>(command.selector);
    arguments.nsid = command.nsid;
    arguments.result = &completion;
    arguments.data = data.data();
    return result_of(nvme_identify(&arguments));
  }
  nvme_get_log_args arguments{};
  arguments.args_size = sizeof arguments;
  arguments.fd = fd;
  arguments.timeout = NVME_DEFAULT_IOCTL_TIMEOUT;
  arguments.lid = static_cast<nvme_cmd_get_log_lid>(command.selector);
  arguments.len = command.bytes;
  arguments.nsid = command.nsid;
  arguments.lsi = command.lsi;
  arguments.lsp = command.lsp;
  arguments.uuidx = command.uuid_index;
  arguments.rae = true;  // leave events to the programs that wait for them
  arguments.result = &completion;
  arguments.log = data.data();
  return result_of(nvme_get_log(&arguments));
}

}  // namespace ssdpulse::nvme_reader
