// SPDX-License-Identifier: Apache-2.0
// How many instructions did the verifier walk? Preloaded into the daemon, it asks the kernel for the verifier's own
// summary of each program and prints it as "verifier: PROGRAM: processed N insns ...". Kernels before 5.16 report it in
// no other way.
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_STATS = 4, LOG_BYTES = 1 << 16 };

int bpf_object__load_skeleton(struct bpf_object_skeleton* skeleton) {
  int (*load)(struct bpf_object_skeleton*) =
      (int (*)(struct bpf_object_skeleton*))dlsym(RTLD_NEXT, "bpf_object__load_skeleton");
  struct bpf_program* program = NULL;
  while ((program = bpf_object__next_program(*skeleton->obj, program)) != NULL) {
    bpf_program__set_log_level(program, LOG_STATS);
    bpf_program__set_log_buf(program, (char*)calloc(1, LOG_BYTES), LOG_BYTES);
  }
  const int error = load(skeleton);
  while ((program = bpf_object__next_program(*skeleton->obj, program)) != NULL) {
    size_t size = 0;
    const char* log = bpf_program__log_buf(program, &size);
    const char* summary = log == NULL ? NULL : strstr(log, "processed ");
    if (error != 0 && log != NULL && *log != '\0') {
      fprintf(stderr, "verifier: %s refused: %s\n", bpf_program__name(program), log);
    }
    if (summary != NULL) {
      fprintf(stderr, "verifier: %s: %.*s\n", bpf_program__name(program), (int)strcspn(summary, "\n"), summary);
    }
  }
  return error;
}
