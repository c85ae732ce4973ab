-- SPDX-License-Identifier: Apache-2.0
-- Readable views of ssdpulse.db, described in ssdpulse-history(5). Temporary: nothing is written to the file.
-- Times are UTC, as text; latencies and durations are seconds; what is not known is NULL.

-- `clock_ahead` is 1 where a time was stamped by a clock that went back to an earlier one since: it is not to be trusted.

CREATE TEMP VIEW devices AS
  SELECT device.name, device.model, device.serial, device.identity,
    (SELECT datetime(min(at & 4294967295) * 60, 'unixepoch') FROM device_minute WHERE at >> 32 = device.id) AS minutes_from,
    (SELECT datetime(min(at & 4294967295) * 60, 'unixepoch') FROM device_hour WHERE at >> 32 = device.id) AS hours_from,
    datetime(device.last_minute * 60, 'unixepoch') AS last,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= last_measured AND wall + 2 < last_minute) AS clock_ahead
  FROM device WHERE device.identity NOT GLOB 'rung/*' OR device.identity GLOB '*[^a-zA-Z0-9/_.:!+-]*';

CREATE TEMP VIEW spikes AS
  SELECT datetime(begin_ms / 1000, 'unixepoch') AS begin, begin_ms, device, operation, cause, duration_seconds,
    peak_seconds, baseline_seconds, peak_seconds / baseline_seconds AS times_baseline, excess_seconds, ios, evidence, missing,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= latency_spike.measured AND wall + 2 < begin_ms / 60000)
      AS clock_ahead
  FROM latency_spike;

CREATE TEMP VIEW discards AS
  SELECT datetime(begin_ms / 1000, 'unixepoch') AS begin, begin_ms,
    begin_ms + CAST(duration_seconds * 1000 AS INTEGER) AS end_ms, device, trigger, duration_seconds, bytes,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= discard_burst.measured AND wall + 2 < begin_ms / 60000)
      AS clock_ahead
  FROM discard_burst;

CREATE TEMP VIEW waits AS
  SELECT datetime(begin_ms / 1000, 'unixepoch') AS begin, begin_ms, cause, nullif(subject, '') AS subject,
    nullif(device, '') AS device, nullif(tenant, '') AS tenant, duration_seconds, evidence, file,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= host_wait.measured AND wall + 2 < begin_ms / 60000)
      AS clock_ahead
  FROM host_wait;

-- `before` is NULL where a setting was seen for the first time; `device` is NULL for a setting of the host.
CREATE TEMP VIEW changes AS
  SELECT datetime(at_ms / 1000, 'unixepoch') AS time, at_ms,
    (SELECT device.name FROM device WHERE device.identity = setting.device ORDER BY last_measured DESC, id DESC LIMIT 1)
      AS device,
    setting.name AS setting,
    lag(setting.value) OVER (PARTITION BY setting.device, setting.name ORDER BY setting.id) AS before, setting.value AS after,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= setting.measured AND wall + 2 < at_ms / 60000) AS clock_ahead
  FROM setting;

CREATE TEMP VIEW marks AS
  SELECT datetime(at_ms / 1000, 'unixepoch') AS time, at_ms, text,
    EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= mark.measured AND wall + 2 < at_ms / 60000) AS clock_ahead
  FROM mark;

-- One row for each reading that was kept of an NVMe drive. A drive counts in 128 bits: bytes are rounded to 53 of them. A unit of
-- 0 is not known yet.
CREATE TEMP VIEW readings AS
  SELECT datetime(minute * 60, 'unixepoch') AS time, minute, serial, model, firmware, source, percentage_used,
    available_spare, temperature_celsius, discard_bytes,
    nullif(host_unit_bytes, 0) * (WITH RECURSIVE digit(place, value) AS (
        SELECT 0, 0.0 UNION ALL
        SELECT place + 1, value * 16 + instr('0123456789ABCDEF', substr(hex(host_count), place + 1, 1)) - 1
        FROM digit WHERE place < length(hex(host_count)))
      SELECT value FROM digit WHERE place = 32) AS host_bytes,
    nullif(media_unit_bytes, 0) * (WITH RECURSIVE digit(place, value) AS (
        SELECT 0, 0.0 UNION ALL
        SELECT place + 1, value * 16 + instr('0123456789ABCDEF', substr(hex(media_count), place + 1, 1)) - 1
        FROM digit WHERE place < length(hex(media_count)))
      SELECT value FROM digit WHERE place = 32) AS media_bytes
  FROM drive_minute JOIN drive ON drive.id = drive_minute.drive;
