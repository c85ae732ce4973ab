/* SPDX-License-Identifier: Apache-2.0 */
/* What do the block programs get from libbpf when they run in a unit test? */
#pragma once

#include "../../fake_kernel.h"

#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __ksym
#define __uint(name, value) int(*name)[value]
#define __type(name, type) type* name

#define bpf_ktime_get_ns() fake_now
#define bpf_get_smp_processor_id() 0U
#define bpf_map_lookup_elem(map, key) fake_element(map, *(key))
#define bpf_ringbuf_output(map, data, size, flags) fake_send(map, data, size, flags)
#define bpf_probe_read_kernel_str(to, size, from) fake_copy(to, size, from)
