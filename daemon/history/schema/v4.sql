-- SPDX-License-Identifier: Apache-2.0
-- What does version 4 hold beside version 3? What every measured device did, in histograms that can be added up: per
-- minute as long as there is room, and per hour. And what happened: bursts of discards, settings that changed, marks.
-- A file of version 3 becomes one of version 4 by this; what it holds of latency stays quantiles, in drive_minute.

-- A piece of hardware, whatever name the kernel gave it.
CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,  -- WWID, else serial number and model, else the kernel's name
  name TEXT NOT NULL,             -- the kernel's last one
  model TEXT NOT NULL,
  serial TEXT NOT NULL,
  last_minute INTEGER NOT NULL    -- no row of the device is younger
) STRICT;

-- at = device * 2^32 + minutes since 1970-01-01 UTC: the rows of a device lie together, in their order.
CREATE TABLE device_minute (
  at INTEGER PRIMARY KEY,
  load BLOB NOT NULL              -- see daemon/history/load_codec.h, as of the tenants
) STRICT;

-- The sum of the hour's minutes, word for word, under its first minute.
CREATE TABLE device_hour (
  at INTEGER PRIMARY KEY,
  load BLOB NOT NULL
) STRICT;

CREATE TABLE tenant (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  last_minute INTEGER NOT NULL    -- no row mentions it later
) STRICT;

CREATE TABLE tenant_minute (
  at INTEGER PRIMARY KEY,         -- as of device_minute
  tenants BLOB NOT NULL
) STRICT;

CREATE TABLE tenant_hour (
  at INTEGER PRIMARY KEY,
  tenants BLOB NOT NULL
) STRICT;

-- One row: how far the work on the rows above has come. Whole hours, in minutes since 1970-01-01 UTC.
CREATE TABLE account (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  begun INTEGER NOT NULL,         -- rows of drive_minute before it are of older versions
  minutes_from INTEGER NOT NULL,  -- there are no older minutes: their hours have them
  hours_made_to INTEGER NOT NULL, -- there are no younger hours
  drive_minutes_thinned_to INTEGER NOT NULL,  -- older ones are one an hour, unless older than begun
  tenant_bytes INTEGER NOT NULL   -- in both tables
) STRICT;

CREATE TABLE discard_burst (
  begin_ms INTEGER NOT NULL,      -- since 1970-01-01 UTC, as all _ms
  device TEXT NOT NULL,           -- the kernel's name of then
  trigger TEXT NOT NULL,
  duration_seconds REAL NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (begin_ms, device, trigger)
) STRICT, WITHOUT ROWID;

-- The seconds around a spike, or several of one device that lie close together.
CREATE TABLE spike_seconds (
  id INTEGER PRIMARY KEY,
  begin_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL,
  device TEXT NOT NULL,
  excess_seconds REAL NOT NULL,   -- of the worst of them: it is kept longest
  seconds BLOB NOT NULL CHECK (length(seconds) <= 1048576)
) STRICT;

CREATE INDEX spike_seconds_end ON spike_seconds (end_ms);

CREATE TABLE setting (
  at_ms INTEGER NOT NULL,         -- when it was first seen to be so
  device TEXT NOT NULL,           -- identity in table device; empty: of the host
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (device, name, at_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE mark (
  at_ms INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

-- What held up I/O above the drives.
CREATE TABLE host_wait (
  begin_ms INTEGER NOT NULL,
  cause TEXT NOT NULL,
  subject TEXT NOT NULL,          -- a volume, a mount point or a tenant; empty: the host
  device TEXT NOT NULL,           -- that a limit is for; empty: none
  tenant TEXT NOT NULL,           -- who was held up; empty: not known
  duration_seconds REAL NOT NULL,
  evidence TEXT NOT NULL,         -- name=value ..., numbers; and command=NAME, with _ for blanks and quotes
  file TEXT NOT NULL,             -- the kernel's file, or function, that says so
  PRIMARY KEY (begin_ms, cause, subject, device)
) STRICT, WITHOUT ROWID;
