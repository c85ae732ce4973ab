-- SPDX-License-Identifier: Apache-2.0
-- What does a history hold? One row per drive and minute, and what the ledger of write amplification knew of each drive.
-- A contract with every reader of ssdpulse.db: a change is a new file beside this one, a new user_version, and a way
-- from the old to the new. Times are minutes since 1970-01-01 UTC; shares are of 1; absent values are NULL.

CREATE TABLE drive (
  id INTEGER PRIMARY KEY,
  serial TEXT NOT NULL,
  model TEXT NOT NULL,
  firmware TEXT NOT NULL,
  last_minute INTEGER NOT NULL,                     -- no row of the drive is younger
  state BLOB CHECK (length(state) <= 1048576),      -- the ledger's own words, under the newest firmware alone
  UNIQUE (serial, model, firmware)
) STRICT;

-- By minute first: all drives append in one place, and the oldest rows leave whole pages free.
CREATE TABLE drive_minute (
  minute INTEGER NOT NULL,
  drive INTEGER NOT NULL,
  boottime_ns INTEGER NOT NULL,                     -- CLOCK_BOOTTIME of the reading
  source TEXT NOT NULL,                             -- of both counters; empty: none
  host_count BLOB CHECK (length(host_count) = 16),  -- big-endian, as the drive counts
  host_unit_bytes INTEGER,                          -- 64 bits without a sign, as all bytes here
  host_rounding INTEGER,                            -- 0 exact, 1 up, 2 unknown
  host_count_before BLOB CHECK (length(host_count_before) = 16),  -- host_count is read behind the media's count, and
                                                    -- this before it; NULL where one page has both at once
  media_count BLOB CHECK (length(media_count) = 16),
  media_unit_bytes INTEGER,
  media_rounding INTEGER,
  percentage_used REAL,
  available_spare REAL,
  temperature_celsius REAL,
  read_p50_seconds REAL,
  read_p99_seconds REAL,
  write_p50_seconds REAL,
  write_p99_seconds REAL,
  discard_bytes INTEGER NOT NULL,                   -- of this minute
  PRIMARY KEY (minute, drive)
) STRICT, WITHOUT ROWID;
