// SPDX-License-Identifier: Apache-2.0
// What is said of each cause of a spike. Made from daemon/model/spike_cause.h: SSDPULSE_TEST_GOLDEN=write
// cause_documents_test writes it.

export const CAUSES = {
  "discard": {"letter":"D","noun":"discards","legend":"slow because of discards (trim)","colour":"#F2495C"},
  "flush": {"letter":"F","noun":"flushes","legend":"slow because of flushes (fsync)","colour":"#B877D9"},
  "gc": {"letter":"G","noun":"garbage collection","legend":"slow because the drive collects garbage","colour":"#E0B400"},
  "queue": {"letter":"Q","noun":"queueing on the host","legend":"slow because of queueing on the host","colour":"#8AB8FF"},
  "saturation": {"letter":"S","noun":"too much load","legend":"slow because of too much load","colour":"#1F60C4"},
  "thermal": {"letter":"T","noun":"heat","legend":"slow because the drive throttles for heat","colour":"#FF780A"},
  "error": {"letter":"E","noun":"errors","legend":"slow because of errors","colour":"#AD0317"},
  "unknown": {"letter":"?","noun":"an unknown cause","legend":"slow, and nothing measured here explains it","colour":"#8E8E8E"}
};
