// SPDX-License-Identifier: Apache-2.0
// Does the message that the kernel refused the programs tell the reader what to do?
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/block/bpf_objects.h"

namespace ssdpulse::block {
namespace {

using util::ExitCode;

struct Row {
  LoadRefusal refusal;
  const char* words;
  ExitCode code;
};

TEST(LoadRefusal, SaysWhatToDo) {
  constexpr int kNotSupported = 524;
  const std::vector<Row> table{
      {{EPERM, true}, "boot with lockdown=integrity or none", ExitCode::not_permitted},
      {{EINVAL, true}, "boot with lockdown=integrity or none", ExitCode::kernel},
      {{EMFILE}, "raise LimitNOFILE=", ExitCode::open_files},
      {{EMFILE, false, false, "libbpf: map 'samples': failed to create"}, "(RLIMIT_NOFILE)", ExitCode::open_files},
      {{ENFILE}, "fs.file-max", ExitCode::failure},
      {{ENOMEM}, "allow the service more (MemoryMax)", ExitCode::failure},
      {{EPERM}, "run as root, or with CAP_BPF and CAP_PERFMON", ExitCode::not_permitted},
      {{EACCES}, "run as root, or with CAP_BPF and CAP_PERFMON", ExitCode::not_permitted},
      {{EACCES, false, true, "R1 is a stranger"}, "verifier:\nR1 is a stranger", ExitCode::kernel},
      {{kNotSupported}, "; sysctl -w net.core.bpf_jit_enable=1", ExitCode::kernel},
      {{kNotSupported, false, true, "processed 9 insns"}, "; sysctl -w net.core.bpf_jit_enable=1", ExitCode::kernel},
      {{EINVAL, false, true, "callbacks are not allowed in non-JITed programs"},
       "; sysctl -w net.core.bpf_jit_enable=1",
       ExitCode::kernel},
      {{kNotSupported, false, false, "", false}, "; sysctl -w net.core.bpf_jit_enable=1", ExitCode::kernel},
      {{kNotSupported, false, false, "libbpf: full", true},
       "(net.core.bpf_jit_limit); the last words of libbpf and the verifier:\nlibbpf: full",
       ExitCode::kernel},
      {{EINVAL, false, false, "libbpf: no"}, "Invalid argument; please report this", ExitCode::kernel},
  };
  for (const Row& row : table) {
    const util::Error error = explain(row.refusal);
    EXPECT_NE(error.message.find(row.words), std::string::npos) << row.refusal.error_number << ": " << error.message;
    EXPECT_EQ(util::exit_code_of(error.error_number), row.code) << error.message;
    EXPECT_EQ(error.message.find("Unknown error"), std::string::npos) << error.message;
  }
}

TEST(OpenFiles, too_few_are_seen_before_the_kernel_is_judged) {
  for (const rlim_t few : {rlim_t{0}, rlim_t{3}, rlim_t{16}, rlim_t{20}, rlim_t{28}, rlim_t{32}, rlim_t{63}}) {
    const std::string words = util::too_few_open_files(few).value_or("");
    EXPECT_NE(words.find("only " + std::to_string(few) + " are allowed (RLIMIT_NOFILE)"), std::string::npos) << words;
    EXPECT_NE(words.find("raise LimitNOFILE="), std::string::npos) << words;
  }
  for (const rlim_t enough : {rlim_t{64}, rlim_t{1024}, rlim_t{8192}, RLIM_INFINITY}) {
    EXPECT_EQ(util::too_few_open_files(enough), std::nullopt) << enough;
  }
}

}  // namespace
}  // namespace ssdpulse::block
