-- SPDX-License-Identifier: Apache-2.0
-- What does version 5 hold beside version 4? The age of each row, by a clock that nobody sets. A file of version 4
-- becomes one of version 5 by this.
--
-- measured: minutes by CLOCK_BOOTTIME in which a daemon ran that kept this file, over all boots, when the row was
-- written. Age is counted in it; the stamps of the wall clock only say where a row is shown. Rows of version 4 have 0,
-- those of versions before histograms -1.

ALTER TABLE device_minute ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;  -- when something was last added
ALTER TABLE device_hour ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant_minute ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;  -- when it was made: no name in it is older
ALTER TABLE tenant_hour ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;

-- A lane of a device: rows of one go forward in both clocks. Where the wall clock goes back, another one goes on.
-- No number is given out twice.
ALTER TABLE device RENAME TO device_without_lanes;
CREATE TABLE device (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity TEXT NOT NULL,         -- WWID, else serial number and model, else the kernel's name
  name TEXT NOT NULL,             -- the kernel's last one
  model TEXT NOT NULL,
  serial TEXT NOT NULL,
  last_minute INTEGER NOT NULL,   -- no row of the lane is younger
  last_measured INTEGER NOT NULL,
  minutes_from INTEGER NOT NULL,  -- there are no older minutes: their hours have them
  hours_made_to INTEGER NOT NULL  -- there are no younger hours
) STRICT;
INSERT INTO device SELECT id, identity, name, model, serial, last_minute, 0,
  coalesce((SELECT minutes_from FROM account), 0), coalesce((SELECT hours_made_to FROM account), 0)
  FROM device_without_lanes;
DROP TABLE device_without_lanes;
CREATE INDEX device_identity ON device (identity);

ALTER TABLE tenant RENAME TO tenant_without_age;
CREATE TABLE tenant (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  last_measured INTEGER NOT NULL  -- no row mentions it later
) STRICT;
INSERT INTO tenant SELECT id, name, 0 FROM tenant_without_age;
DROP TABLE tenant_without_age;

ALTER TABLE drive RENAME TO drive_without_age;
CREATE TABLE drive (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  nqn TEXT NOT NULL,              -- of its NVM subsystem; empty: written before it was kept
  serial TEXT NOT NULL,
  model TEXT NOT NULL,
  firmware TEXT NOT NULL,
  last_measured INTEGER NOT NULL, -- no row of the drive is younger
  state BLOB CHECK (length(state) <= 1048576),  -- the ledger's own words, under the newest firmware alone
  UNIQUE (nqn, serial, model, firmware)
) STRICT;
INSERT INTO drive SELECT id, nqn, serial, model, firmware, 0, state FROM drive_without_age;
DROP TABLE drive_without_age;

ALTER TABLE drive_minute RENAME TO drive_minute_without_age;
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
  read_p50_seconds REAL,
  read_p99_seconds REAL,
  write_p50_seconds REAL,
  write_p99_seconds REAL,
  discard_bytes INTEGER NOT NULL,                   -- of this minute
  PRIMARY KEY (minute, drive, measured)             -- a clock that was set back comes to the same minute again
) STRICT, WITHOUT ROWID;
INSERT INTO drive_minute SELECT minute, drive,
  CASE WHEN minute < (SELECT coalesce(max(begun), 9223372036854775807) FROM account) THEN -1 ELSE 0 END,
  boottime_ns, source, host_count, host_unit_bytes, host_rounding, host_count_before, media_count, media_unit_bytes,
  media_rounding, percentage_used, available_spare, temperature_celsius, read_p50_seconds, read_p99_seconds,
  write_p50_seconds, write_p99_seconds, discard_bytes
  FROM drive_minute_without_age;
DROP TABLE drive_minute_without_age;
CREATE INDEX drive_minute_measured ON drive_minute (measured);

ALTER TABLE latency_spike RENAME TO latency_spike_without_age;
CREATE TABLE latency_spike (
  begin_ms INTEGER NOT NULL,  -- since 1970-01-01 UTC
  device TEXT NOT NULL,       -- the kernel's name of then
  operation TEXT NOT NULL,
  measured INTEGER NOT NULL,
  duration_seconds REAL NOT NULL,
  peak_seconds REAL NOT NULL,      -- 99th percentile of total latency in the worst second
  baseline_seconds REAL NOT NULL,  -- what it was before
  ios INTEGER NOT NULL,            -- that were slow
  cause TEXT NOT NULL,
  evidence TEXT NOT NULL,          -- name=value ...
  missing TEXT NOT NULL,           -- what could not be known, in words
  PRIMARY KEY (begin_ms, device, operation, measured)
) STRICT, WITHOUT ROWID;
INSERT INTO latency_spike SELECT begin_ms, device, operation, 0, duration_seconds, peak_seconds, baseline_seconds,
  ios, cause, evidence, missing FROM latency_spike_without_age;
DROP TABLE latency_spike_without_age;
CREATE INDEX latency_spike_measured ON latency_spike (measured);

ALTER TABLE discard_burst RENAME TO discard_burst_without_age;
CREATE TABLE discard_burst (
  begin_ms INTEGER NOT NULL,
  device TEXT NOT NULL,           -- the kernel's name of then
  trigger TEXT NOT NULL,
  measured INTEGER NOT NULL,
  duration_seconds REAL NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (begin_ms, device, trigger, measured)
) STRICT, WITHOUT ROWID;
INSERT INTO discard_burst SELECT begin_ms, device, trigger, 0, duration_seconds, bytes FROM discard_burst_without_age;
DROP TABLE discard_burst_without_age;
CREATE INDEX discard_burst_measured ON discard_burst (measured);

ALTER TABLE host_wait RENAME TO host_wait_without_age;
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
INSERT INTO host_wait SELECT begin_ms, cause, subject, device, 0, tenant, duration_seconds, evidence, file FROM host_wait_without_age;
DROP TABLE host_wait_without_age;
CREATE INDEX host_wait_measured ON host_wait (measured);

ALTER TABLE spike_seconds ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
CREATE INDEX spike_seconds_measured ON spike_seconds (measured);

-- In the order of their numbers, not of their stamps: the last one is the current value.
ALTER TABLE setting RENAME TO setting_by_time;
CREATE TABLE setting (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,         -- when it was first seen to be so
  device TEXT NOT NULL,           -- identity in table device; empty: of the host
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  measured INTEGER NOT NULL
) STRICT;
INSERT INTO setting (at_ms, device, name, value, measured)
  SELECT at_ms, device, name, value, 0 FROM setting_by_time ORDER BY at_ms;
DROP TABLE setting_by_time;
CREATE INDEX setting_of ON setting (device, name, id);

ALTER TABLE mark ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
CREATE INDEX mark_measured ON mark (measured);

-- At `measured` the wall clock went back from `before` to `wall`, both in minutes since 1970-01-01 UTC: what was written
-- until then and is stamped later than `wall` was stamped by a clock that was ahead. Gone where the clock jumped forward
-- again over `before`: then it was behind in between.
CREATE TABLE clock_step (
  id INTEGER PRIMARY KEY,
  measured INTEGER NOT NULL,
  wall INTEGER NOT NULL,
  before INTEGER NOT NULL
) STRICT;

ALTER TABLE account RENAME TO account_by_time;
CREATE TABLE account (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  measured_ms INTEGER NOT NULL,   -- by now: see above
  wall INTEGER NOT NULL,          -- the last reading of the wall clock that can be true, in minutes; 0: none yet
  wall_measured INTEGER NOT NULL, -- when that was
  drive_minutes_thinned_to INTEGER NOT NULL,  -- measured: older ones are one an hour, unless of older versions
  tenant_bytes INTEGER NOT NULL   -- in both tables
) STRICT;
INSERT INTO account SELECT 1, 0, 0, 0, 0, tenant_bytes FROM account_by_time;
DROP TABLE account_by_time;
