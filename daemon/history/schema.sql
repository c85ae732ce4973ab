-- SPDX-License-Identifier: Apache-2.0
-- What does a history hold? What every measured device did, in histograms that can be added up: per minute as long as
-- there is room, and per hour. What NVMe drives reported. And what happened: spikes, bursts of discards, settings that
-- changed, marks.
-- A contract with every reader of ssdpulse.db: a change needs a new number, see database_file.h. Times are minutes since
-- 1970-01-01 UTC, or milliseconds where the name ends in _ms; shares are of 1; absent values are NULL.
--
-- measured: minutes by CLOCK_BOOTTIME in which a daemon ran that kept this file, over all boots, when the row was
-- written. Age is counted in it; the stamps of the wall clock only say where a row is shown.

-- A piece of hardware, whatever name the kernel gave it, or a rung of the write ladder (daemon/history/ladder_minutes.h),
-- and a lane of it: rows of one go forward in both clocks. Where
-- the wall clock goes back, another one goes on. No number is given out twice.
CREATE TABLE device (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity TEXT NOT NULL,         -- see daemon/model/device_identity.h; else the kernel's name
  name TEXT NOT NULL,             -- the kernel's last one
  model TEXT NOT NULL,
  serial TEXT NOT NULL,
  last_minute INTEGER NOT NULL,   -- no row of the lane is younger
  last_measured INTEGER NOT NULL,
  minutes_from INTEGER NOT NULL,  -- there are no older minutes: their hours have them
  hours_made_to INTEGER NOT NULL  -- there are no younger hours
) STRICT;
CREATE INDEX device_identity ON device (identity);

-- at = device * 2^32 + minute: the rows of a device lie together, in their order.
CREATE TABLE device_minute (
  at INTEGER PRIMARY KEY,
  load BLOB NOT NULL,             -- see daemon/history/load_codec.h, as of the tenants
  measured INTEGER NOT NULL       -- when something was last added
) STRICT;

-- The sum of the hour's minutes, word for word, under its first minute.
CREATE TABLE device_hour (
  at INTEGER PRIMARY KEY,
  load BLOB NOT NULL,
  measured INTEGER NOT NULL
) STRICT;

CREATE TABLE tenant (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  last_measured INTEGER NOT NULL  -- no row mentions it later
) STRICT;

CREATE TABLE tenant_minute (
  at INTEGER PRIMARY KEY,         -- as of device_minute
  tenants BLOB NOT NULL,
  measured INTEGER NOT NULL       -- when it was made: no name in it is older
) STRICT;

CREATE TABLE tenant_hour (
  at INTEGER PRIMARY KEY,
  tenants BLOB NOT NULL,
  measured INTEGER NOT NULL
) STRICT;

CREATE TABLE drive (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  nqn TEXT NOT NULL,              -- of its NVM subsystem: drives behind a network may share serial and model
  serial TEXT NOT NULL,
  model TEXT NOT NULL,
  firmware TEXT NOT NULL,
  last_measured INTEGER NOT NULL, -- no row of the drive is younger
  state BLOB CHECK (length(state) <= 1048576),  -- the write-amplification ledger's own, under the newest firmware alone
  UNIQUE (nqn, serial, model, firmware)
) STRICT;

-- By minute first: all drives append in one place, and the oldest rows leave whole pages free.
CREATE TABLE drive_minute (
  minute INTEGER NOT NULL,
  drive INTEGER NOT NULL,
  measured INTEGER NOT NULL,
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
  discard_bytes INTEGER NOT NULL,                   -- of this minute
  PRIMARY KEY (minute, drive, measured)             -- a clock that was set back comes to the same minute again
) STRICT, WITHOUT ROWID;
CREATE INDEX drive_minute_measured ON drive_minute (measured);

CREATE TABLE latency_spike (
  begin_ms INTEGER NOT NULL,
  device TEXT NOT NULL,            -- the kernel's name of then, as below
  operation TEXT NOT NULL,
  measured INTEGER NOT NULL,
  duration_seconds REAL NOT NULL,
  peak_seconds REAL NOT NULL,      -- 99th percentile of total latency in the worst second
  baseline_seconds REAL NOT NULL,  -- what it was before
  excess_seconds REAL NOT NULL,    -- waited in it beyond the baseline, by all I/Os together
  ios INTEGER NOT NULL,            -- that were slow
  cause TEXT NOT NULL,
  evidence TEXT NOT NULL,          -- name=value ...
  missing TEXT NOT NULL,           -- what could not be known, in words
  PRIMARY KEY (begin_ms, device, operation, measured)
) STRICT, WITHOUT ROWID;
CREATE INDEX latency_spike_measured ON latency_spike (measured);

-- The seconds around a spike, or several of one device that lie close together.
CREATE TABLE spike_seconds (
  id INTEGER PRIMARY KEY,
  begin_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL,
  device TEXT NOT NULL,
  excess_seconds REAL NOT NULL,   -- of the worst of them: it is kept longest
  seconds BLOB NOT NULL CHECK (length(seconds) <= 1048576),  -- see daemon/spikes/past_spikes.h
  measured INTEGER NOT NULL
) STRICT;
CREATE INDEX spike_seconds_end ON spike_seconds (end_ms);
CREATE INDEX spike_seconds_measured ON spike_seconds (measured);

CREATE TABLE discard_burst (
  begin_ms INTEGER NOT NULL,
  device TEXT NOT NULL,
  trigger TEXT NOT NULL,
  measured INTEGER NOT NULL,
  duration_seconds REAL NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (begin_ms, device, trigger, measured)
) STRICT, WITHOUT ROWID;
CREATE INDEX discard_burst_measured ON discard_burst (measured);

-- What held up I/O above the drives.
CREATE TABLE host_wait (
  begin_ms INTEGER NOT NULL,
  cause TEXT NOT NULL,
  subject TEXT NOT NULL,          -- a volume, a mount point or a tenant; empty: the host
  device TEXT NOT NULL,           -- that a limit is for; empty: none
  measured INTEGER NOT NULL,
  tenant TEXT NOT NULL,           -- who was held up; empty: not known
  duration_seconds REAL NOT NULL,
  evidence TEXT NOT NULL,         -- name=value ..., numbers; and command=NAME, with _ for blanks and quotes
  file TEXT NOT NULL,             -- the kernel's file, or function, that says so
  PRIMARY KEY (begin_ms, cause, subject, device, measured)
) STRICT, WITHOUT ROWID;
CREATE INDEX host_wait_measured ON host_wait (measured);

-- In the order of their numbers, not of their stamps: the last one is the current value.
CREATE TABLE setting (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,         -- when it was first seen to be so
  device TEXT NOT NULL,           -- identity in table device; empty: of the host
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  measured INTEGER NOT NULL
) STRICT;
CREATE INDEX setting_of ON setting (device, name, id);

CREATE TABLE mark (
  at_ms INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  id TEXT UNIQUE,                 -- the sender's: sent again, it makes no second row
  measured INTEGER NOT NULL
) STRICT;
CREATE INDEX mark_measured ON mark (measured);

-- At `measured` the wall clock went back from `before` to `wall`: what was written until then and is stamped later than
-- `wall` was stamped by a clock that was ahead. Gone where the clock jumped forward again over `before`: then it was
-- behind in between.
CREATE TABLE clock_step (
  id INTEGER PRIMARY KEY,
  measured INTEGER NOT NULL,
  wall INTEGER NOT NULL,
  before INTEGER NOT NULL
) STRICT;

-- One row: what the file knows of the clocks, and how far its upkeep has come.
CREATE TABLE account (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  measured_ms INTEGER NOT NULL,   -- by now: see above
  wall INTEGER NOT NULL,          -- the last reading of the wall clock that can be true, in minutes; 0: none yet
  wall_measured INTEGER NOT NULL, -- when that was
  drive_minutes_thinned_to INTEGER NOT NULL,  -- measured: older ones are one an hour
  tenant_bytes INTEGER NOT NULL,  -- in both tables
  minutes_reach INTEGER NOT NULL, -- the first minute of a device that is kept; 0: none
  hours_reach INTEGER NOT NULL,   -- likewise its first hour; until one is over, its first minute
  rows TEXT NOT NULL              -- {"table": [inserted, age, size, hour, repeated, unreadable], ...}: how many rows were
                                  -- inserted, and have gone, by why. The first less the others are there
) STRICT;
