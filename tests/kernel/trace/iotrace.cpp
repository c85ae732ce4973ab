// SPDX-License-Identifier: Apache-2.0
// Loads iotrace.bpf.c, drains its ring into memory, and writes the file at the end.
//
//   ssdpulse_iotrace OUTPUT RING_MIB DISK...
//
// Prints "armed" once the `before` programs are attached; a line on stdin (the subject is attached now) attaches the
// `after` programs and prints "tracing"; each further line writes the trace so far and prints "written"; the end of
// stdin ends the trace. Exit codes: 0 complete trace, 1 cannot trace, 3 events were lost.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event.h"
#include "iotrace.skel.h"

namespace {

constexpr int kLost = 3;

struct SkeletonDeleter {
  void operator()(iotrace_bpf* skeleton) const { iotrace_bpf::destroy(skeleton); }
};
struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "iotrace: " << what << '\n';
  std::exit(1);
}

std::uint32_t dev_of_disk(const std::string& disk) {
  std::ifstream file("/sys/block/" + disk + "/dev");
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  char colon = 0;
  if (!(file >> major >> colon >> minor)) fail("no such disk: " + disk);
  return major << 20 | minor;
}

// In chunks, so that growing never copies existing records.
struct Trace {
  static constexpr std::size_t kPiece = 1 << 16;
  std::vector<std::vector<event>> pieces;

  static int add(void* self, void* data, std::size_t) {
    auto& pieces = static_cast<Trace*>(self)->pieces;
    if (pieces.empty() || pieces.back().size() == kPiece) pieces.emplace_back().reserve(kPiece);
    pieces.back().push_back(*static_cast<const event*>(data));
    return 0;
  }
  [[nodiscard]] std::uint64_t size() const {
    return pieces.empty() ? 0 : (pieces.size() - 1) * kPiece + pieces.back().size();
  }
  [[nodiscard]] bool write(const std::string& path) const {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    for (const auto& piece : pieces)
      out.write(reinterpret_cast<const char*>(piece.data()),
                static_cast<std::streamsize>(piece.size() * sizeof(event)));
    return static_cast<bool>(out.flush());
  }
};

// Runs of a program that the kernel skipped because the same program was already running on that CPU.
std::uint64_t recursion_misses(const bpf_program* program) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0) fail("no program info");
  return info.recursion_misses;
}

void attach(std::initializer_list<bpf_program*> programs, std::vector<bpf_link*>& links) {
  for (bpf_program* program : programs) {
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) fail(std::string("cannot attach ") + bpf_program__name(program));
    links.push_back(link);
  }
}

void say(const char* word) { std::cout << word << std::endl; }

enum class Input { none, line, end };

Input input_within(int milliseconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, milliseconds) <= 0) return Input::none;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    if (byte == '\n') return Input::line;
  }
  return Input::end;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc - 3 > MAX_DISKS) fail("usage: ssdpulse_iotrace OUTPUT RING_MIB DISK...");
  libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
  std::unique_ptr<iotrace_bpf, SkeletonDeleter> skeleton(iotrace_bpf::open());
  if (!skeleton) fail("cannot open the BPF object");
  for (int i = 3; i < argc; ++i) skeleton->rodata->cfg_disks[i - 3] = dev_of_disk(argv[i]);
  skeleton->rodata->cfg_disk_count = static_cast<unsigned>(argc - 3);
  bpf_map__set_max_entries(skeleton->maps.events, static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)) << 20);
  if (iotrace_bpf::load(skeleton.get()) != 0) fail("cannot load the BPF object");

  Trace trace;
  std::unique_ptr<ring_buffer, RingDeleter> ring(
      ring_buffer__new(bpf_map__fd(skeleton->maps.events), Trace::add, &trace, nullptr));
  if (!ring) fail("cannot map the ring");

  std::vector<bpf_link*> links;
  const auto& programs = skeleton->progs;
  attach({programs.before_issue, programs.before_complete, programs.before_requeue}, links);
  say("armed");
  while (input_within(1000) == Input::none) {
  }
  attach({programs.after_complete, programs.after_requeue, programs.after_issue}, links);
  say("tracing");
  const auto write = [&] {
    ring_buffer__consume(ring.get());
    if (!trace.write(argv[1])) fail(std::string("cannot write ") + argv[1]);
  };
  Input input = Input::none;
  while (input != Input::end) {
    input = input_within(50);
    ring_buffer__consume(ring.get());
    if (input == Input::line) {
      write();
      say("written");
    }
  }

  for (auto* const link : links) bpf_link__destroy(link);
  write();
  const std::uint64_t skipped = recursion_misses(programs.after_issue) + recursion_misses(programs.after_complete) +
                                recursion_misses(programs.after_requeue);
  const trace_losses& losses = skeleton->bss->losses;
  std::cout << "{\"events\": " << trace.size() << ", \"ring_full\": " << losses.ring_full
            << ", \"skipped\": " << skipped << ", \"no_before\": " << losses.no_before << "}" << std::endl;
  return losses.ring_full + skipped == 0 ? 0 : kLost;
}
