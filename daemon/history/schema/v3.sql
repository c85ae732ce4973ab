-- SPDX-License-Identifier: Apache-2.0
-- What does version 3 hold beside version 2? Latency spikes. A file of version 2 becomes one of version 3 by this.

CREATE TABLE latency_spike (
  begin_ms INTEGER NOT NULL,  -- since 1970-01-01 UTC
  device TEXT NOT NULL,       -- the kernel's name of then
  operation TEXT NOT NULL,
  duration_seconds REAL NOT NULL,
  peak_seconds REAL NOT NULL,      -- 99th percentile of total latency in the worst second
  baseline_seconds REAL NOT NULL,  -- what it was before
  ios INTEGER NOT NULL,            -- that were slow
  cause TEXT NOT NULL,
  evidence TEXT NOT NULL,          -- name=value ...
  missing TEXT NOT NULL,           -- what could not be known, in words
  PRIMARY KEY (begin_ms, device, operation)
) STRICT, WITHOUT ROWID;
