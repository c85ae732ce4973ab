-- SPDX-License-Identifier: Apache-2.0
-- What does this version change? Drives behind a network may share serial and model: their subsystem tells them apart.
-- A file of the version before becomes one of this version by this.

ALTER TABLE drive RENAME TO drive_without_nqn;

CREATE TABLE drive (
  id INTEGER PRIMARY KEY,
  nqn TEXT NOT NULL,                                -- of its NVM subsystem; empty: written before it was kept
  serial TEXT NOT NULL,
  model TEXT NOT NULL,
  firmware TEXT NOT NULL,
  last_minute INTEGER NOT NULL,                     -- no row of the drive is younger
  state BLOB CHECK (length(state) <= 1048576),      -- the ledger's own words, under the newest firmware alone
  UNIQUE (nqn, serial, model, firmware)
) STRICT;

INSERT INTO drive SELECT id, '', serial, model, firmware, last_minute, state FROM drive_without_nqn;

DROP TABLE drive_without_nqn;
