// SPDX-License-Identifier: Apache-2.0
// Is each disk of each QEMU judged by what its command line says about it, in whatever syntax, and nothing else taken
// for a disk?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "daemon/advice/virtual_machines.h"

namespace ssdpulse::advice {
namespace {

/// The files, each with '!' if threads do its I/O.
std::string judged(std::string_view line) {
  std::vector<std::string> names;
  for (const QemuDisk& disk : disks_of_qemu(line).disks) {
    names.push_back(disk.file.raw() + (disk.threads ? "!" : ""));
  }
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : " ") + name;
  }
  return all;
}

struct Case {
  const char* line;
  const char* disks;
};

const Case kCases[] = {
    {R"(q -blockdev {"driver":"host_device","filename":"/dev/a","aio":"threads","node-name":"n"})", "/dev/a!"},
    {R"(q -blockdev {"driver":"host_device","filename":"/dev/a","aio":"native","node-name":"n"})", "/dev/a"},
    {R"(q -blockdev {"driver":"file","filename":"/a","node-name":"n"})", "/a!"},
    {R"(q -blockdev { "driver": "file", "filename": "/a", "aio": "io_uring" } -m 1)", "/a"},
    {"q -drive file=/dev/a,format=raw,if=virtio -drive file=/iso,media=cdrom,aio=io_uring", "/dev/a!"},
    {"q -drive file=/a,aio=io_uring -drive file=/b", "/a /b!"},
    {"q -drive file=/a,aio=native,cache=none -drive file=/b,aio=io_uring", "/a /b"},
    {"q -drive /a,aio=native", "/a"},
    {"q -drive file=/a,,b,aio=native", "/a,b"},
    {"q -drive driver=qcow2,file.driver=file,file.filename=/a,file.aio=io_uring", "/a"},
    {"q -drive driver=qcow2,file.filename=/a", "/a!"},
    {"q -blockdev driver=file,node-name=n,filename=/a,aio=native -blockdev driver=qcow2,node-name=m,file=n", "/a"},
    {"q -blockdev driver=qcow2,node-name=m,file.driver=file,file.filename=/a", "/a!"},
    {R"(q -blockdev {"driver":"qcow2","node-name":"m","file":{"driver":"file","filename":"/a","aio":"native"}})", "/a"},
    {R"(q -drive file=json:{"driver":"qcow2",,"file":{"driver":"file",,"filename":"/a",,"aio":"native"}})", "/a"},
    {R"(q -drive {"file":"/a","aio":"threads"})", "/a!"},
    {"q -hda /a -hdb /b -cdrom /iso", "/a! /b!"},
    {"q -m 4G -enable-kvm /a.img", "/a.img!"},
    {"q /a.img -m 4G", "/a.img!"},
    // options without a value that no list has
    {"q -mem-prealloc -drive file=/a,aio=native -curses -drive file=/b", "/a /b!"},
    {"q --new-flag --drive file=/a -x", "/a!"},
    {"q -object id=a,value=-b -drive file=/a", "/a!"},
    {"q -serial - /a.img", "/a.img!"},
    {"q -drive file=file:/a:b,aio=native -hda host_device:/dev/c", "/a:b /dev/c!"},
    {"q -sd /s.img -mtdblock /m.img", "/m.img! /s.img!"},
    {"q --blockdev driver=host_device,node-name=n,filename=/dev/a,aio=io_uring --export type=nbd,id=e,node-name=n",
     "/dev/a"},
    // neither firmware, CD-ROMs, floppies nor what is elsewhere
    {"q -drive if=pflash,file=/OVMF.fd -drive if=floppy,file=/f -drive file=nbd:host:1 -drive file=rbd:p/i", ""},
    {"q -drive driver=nbd,host=h,port=1 -blockdev driver=null-co,node-name=n -vnc 127.0.0.1:1", ""},
    {R"(q -machine pc,pflash0=f -blockdev {"driver":"raw","node-name":"f","file":"s"} )"
     R"(-blockdev {"driver":"file","filename":"/OVMF.fd","node-name":"s"})",
     ""},
    {R"(q -blockdev {"driver":"file","filename":"/iso","node-name":"s"} -blockdev {"driver":"raw","node-name":"f","file":"s"} )"
     R"(-device {"driver":"ide-cd","drive":"f"} -drive file=/a,aio=native)",
     "/a"},
    {"q -drive if=none,id=cd,file=/iso -device scsi-cd,drive=cd", ""},
    // a base image is read by its own node
    {"q -blockdev driver=file,node-name=b,filename=/base -blockdev driver=file,node-name=o,filename=/over,aio=native "
     "-blockdev driver=qcow2,node-name=base,file=b -blockdev driver=qcow2,node-name=top,file=o,backing=base",
     "/base! /over"},
    {"", ""},
    {"q", ""},
};

TEST(QemuDisks, each_is_judged_by_itself) {
  for (const Case& one : kCases) {
    EXPECT_EQ(judged(one.line), one.disks) << one.line;
    EXPECT_TRUE(disks_of_qemu(one.line).whole) << one.line;
  }
}

TEST(QemuDisks, arguments_that_end_in_nul_may_have_blanks) {
  using namespace std::string_literals;
  EXPECT_EQ(judged("q\0-name\0my db\0-drive\0file=/my disk,aio=native\0"s), "/my disk");
}

TEST(QemuDisks, what_was_not_read_is_not_guessed) {
  for (const char* line : {"q -readconfig /a", "q -blockdev {\"driver\":", "q -drive {}}",
                           "q -machine {\"type\":", "q -drive file=json:{\"driver\":"}) {
    EXPECT_FALSE(disks_of_qemu(line).whole) << line;
  }
  std::string deep = "{\"driver\":\"file\",\"filename\":\"/a\"}";
  std::string many = "q";
  std::string nodes = "q";
  for (int i = 0; i < 10; ++i) {
    deep = "{\"file\":" + deep + "}";
  }
  for (int i = 0; i < 5000; ++i) {
    many += " -hda /a";
    nodes += " -blockdev driver=null-co,node-name=n" + std::to_string(i);
  }
  for (const std::string& line : {"q -blockdev " + deep, many, nodes}) {
    EXPECT_FALSE(disks_of_qemu(line).whole) << line.substr(0, 100);
  }
}

RC_GTEST_PROP(QemuDisks, hostile_bytes_stay_in_bounds, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element<std::string>(" ", "-drive", "-blockdev", "-device", "file=", ",", ",,", "{", "}",
                                    "\"file\":", "\"filename\":\"/a\"", "json:", "node-name=a", "file=a",
                                    std::string(1, 0), std::string(100'000, '['), "{\"a\":" + std::string(1000, '{'))));
  std::string line;
  for (const std::string& piece : pieces) {
    line += piece;
  }
  RC_ASSERT(disks_of_qemu(line).disks.size() <= line.size());
}

}  // namespace
}  // namespace ssdpulse::advice
