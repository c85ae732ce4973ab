#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the flash models stay within their bounds? In the kernel, 5 ns for a write that holds no followed page. In the
# daemon, at 100,000 writes a second and with the usual what-ifs, half a percent of a core, 16 MB a drive and 128 MB in
# all, with 8, 24 and 64 drives. The programs print each figure and check it.
# tier: long
# timeout: 900
# alone: it measures CPU time in nanoseconds
set -euo pipefail
result=0
for program in ssdpulse_sample_costs ssdpulse_flash_costs; do
  "$SSDPULSE_BUILD/$program" || result=1
done
exit "$result"
