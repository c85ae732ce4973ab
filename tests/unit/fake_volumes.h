/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would the programs of volumes count if the kernel did exactly this?
 *
 * Runs the programs themselves, compiled for this machine, on one CPU. All bios are in one set. Not thread-safe;
 * fake_volumes_boot() starts from scratch.
 */
#pragma once

#include <linux/types.h>

#include "bpf/abi/volume_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_BIOS 8
#define FAKE_ROWS 2
#define FAKE_VOLUME 7   /* number of the device with row 0 */
#define FAKE_MEMBER 8   /* with row 1 */
#define FAKE_STRANGER 9 /* without a row */
#define FAKE_PREFLUSH (1U << 18)

extern __u64 fake_now;

/* `old`: with the programs for Linux 5.10. */
void fake_volumes_boot(int old);
/* `bio`: which structure, less than FAKE_BIOS. `operation`: the kernel's op code, with flags. */
void fake_volumes_submit(__u32 bio, __u32 device, __u32 operation, __u32 bytes);
void fake_volumes_end(__u32 bio, __u32 device, __u8 status);
/* A request of the bios from `first` on ends, or the first `ended_bytes` of it, or a stage of its flush sequence. */
void fake_volumes_request_end(__u32 first, __u32 bios, __u32 ended_bytes, int error, int flush_stage);
/* Its end is one that the kernel does not report. Before it is submitted. */
void fake_volumes_chain(__u32 bio);
/* Pieces were split off from it that have not ended. */
void fake_volumes_split(__u32 bio);
/* A class on the only group of CPUs. */
const struct volume_cell* fake_volumes_cell(__u32 row, __u32 operation_class);

#ifdef __cplusplus
}
#endif
