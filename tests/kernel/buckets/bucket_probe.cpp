// SPDX-License-Identifier: Apache-2.0
// Reads latencies in nanoseconds, one per line, and prints the histogram word that the kernel computes for each.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cstdio>
#include <iostream>

#include "bucket_probe.skel.h"

int main() {
  bucket_probe* skeleton = bucket_probe::open_and_load();
  if (skeleton == nullptr) {
    std::cerr << "cannot load the program\n";
    return 1;
  }
  LIBBPF_OPTS(bpf_test_run_opts, options);
  for (long long value = 0; std::cin >> value;) {
    skeleton->bss->value = value;
    if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.probe), &options) != 0) {
      std::perror("cannot run the program");
      return 1;
    }
    std::cout << skeleton->bss->word << '\n';
  }
  bucket_probe::destroy(skeleton);
  return 0;
}
