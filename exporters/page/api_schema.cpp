// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/api_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

constexpr std::string_view kDescription =
    "GET alone, but for POST /api/v1/marks?text=&id= with the header X-Ssdpulse. Times are seconds since the epoch, "
    "all "
    "else is in base units; null is what is not known, 0 what is known to be none. An answer is made once a snapshot, "
    "with an ETag (but for /api/v1/measured, which has none). A word is the number of a latency bucket: bounds_seconds "
    "of a first live answer has their upper "
    "bounds. Fields may be added; those that are here stay within v1.";

/// What is no object with fixed names: values that many fields share, and what is not made from a table.
constexpr std::string_view kOthers = R"({
  "head": {
    "type": "object",
    "required": ["run", "snapshot", "taken_at"],
    "properties": {
      "run": { "description": "Changes when the daemon was restarted: snapshots' numbers restart.", "type": "string" },
      "snapshot": { "description": "Number of the snapshot that the answer is of.", "type": "integer", "minimum": 0 },
      "taken_at": { "type": "number" }
    }
  },
  "cause": { "anyOf": [{ "$ref": "#/$defs/spike_cause" }, { "$ref": "#/$defs/host_wait_cause" }] },
  "runbook": { "description": "At /runbooks/NAME.md.", "type": ["string", "null"] },
  "words": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0, "maximum": 210 } },
  "counts": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0 } },
  "histogram": {
    "description": "Pairs of word and I/Os.",
    "type": "array",
    "items": {
      "type": "array",
      "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 210 }, { "type": "integer", "minimum": 1 }],
      "minItems": 2,
      "maxItems": 2
    }
  },
  "columns": {
    "type": "object",
    "patternProperties": {
      "^milliseconds$": { "$ref": "#/$defs/counts" },
      "^(read|write|flush|discard|commit)_ios$": { "$ref": "#/$defs/counts" },
      "^(read|write|discard)_bytes$": { "$ref": "#/$defs/counts" },
      "^(read|write)_during_(discard|flush|both)_ios$": { "$ref": "#/$defs/counts" },
      "_p(50|99|999)$": { "$ref": "#/$defs/words" },
      "^(read|write)_in_flight$": { "type": "array", "items": { "type": ["integer", "null"] } },
      "^(errors|losses|bursts)$": { "$ref": "#/$defs/counts" },
      "^spikes$": { "type": "array", "items": { "type": ["boolean", "null"] } }
    },
    "additionalProperties": false
  },
  "history_minutes": {
    "description": "/api/v1/history/DEVICE?from=&to=&minutes=1: exact histograms of at most six hours, which are the last ones without from=; hours where minutes are no longer kept. What is missing was not measured.",
    "type": "object",
    "required": ["minutes"],
    "properties": {
      "minutes": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["start", "seconds", "measured_ms"],
          "properties": {
            "start": { "type": "number" },
            "seconds": { "type": "integer", "minimum": 60 },
            "measured_ms": { "type": "integer", "minimum": 0 },
            "operations": {
              "type": "object",
              "additionalProperties": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } }
            },
            "losses": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } },
            "latencies": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "required": ["sum_ns", "words"],
                "properties": {
                  "sum_ns": { "type": "integer", "minimum": 0 },
                  "words": { "$ref": "#/$defs/histogram" }
                }
              }
            }
          }
        }
      }
    }
  },
  "measured": { "description": "By the drive's own counter.", "$ref": "#/$defs/bounds" },
      "life_seconds": { "$ref": "#/$defs/seconds" },
      "rows": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["overprovisioning", "policy", "discards", "placement", "write_amplification", "interpolated", "life"],
          "additionalProperties": false,
          "properties": {
            "overprovisioning": { "type": "number", "minimum": 0 },
            "policy": { "enum": ["greedy", "greedy_gc_frontier", "cost_benefit", "fifo"] },
            "discards": { "enum": ["honoured", "ignored"] },
            "placement": { "enum": ["none", "hints", "last_lifetime"] },
            "write_amplification": { "$ref": "#/$defs/bounds" },
            "interpolated": { "description": "Between what was modelled.", "type": "boolean" },
            "life": {
              "type": ["object", "null"],
              "required": ["seconds", "lower", "upper"],
              "properties": {
                "seconds": { "$ref": "#/$defs/seconds" },
                "lower": { "$ref": "#/$defs/seconds" },
                "upper": { "$ref": "#/$defs/seconds" }
              }
            }
          }
        }
      },
      "assumptions": { "type": "array", "items": { "type": "string" } },
      "beyond": { "description": "Over-provisioning that is not modelled.", "type": "array", "items": { "type": "number" } }
    }
  },
  "live": {
    "description": "/api/v1/devices/NAME/live?since=N&heat=KIND: the columns of the snapshots after N, up to `to`. An answer whose `from` is 0 is all there is. Each array has one entry a column; null: the device was not measured then, or, of quantiles, nothing was done.",
    "$ref": "#/$defs/head",
    "required": ["device", "from", "to", "begin", "columns", "clock_steps", "heat", "marks"],
    "properties": {
      "device": { "type": "string" },
      "from": { "type": "integer" },
      "to": { "type": "integer" },
      "begin": { "description": "When the first column begins.", "type": ["number", "null"] },
      "columns": {
        "type": "object",
        "patternProperties": {
          "^milliseconds$": { "$ref": "#/$defs/counts" },
          "^(read|write|flush|discard|commit)_ios$": { "$ref": "#/$defs/counts" },
          "^(read|write|discard)_bytes$": { "$ref": "#/$defs/counts" },
          "^(read|write)_during_(discard|flush|both)_ios$": { "$ref": "#/$defs/counts" },
          "_p(50|99|999)$": { "$ref": "#/$defs/words" },
          "^(read|write)_in_flight$": { "type": "array", "items": { "type": ["integer", "null"] } },
          "^(errors|losses|bursts)$": { "$ref": "#/$defs/counts" },
          "^spikes$": { "type": "array", "items": { "type": ["boolean", "null"] } }
        },
        "additionalProperties": false
      },
      "clock_steps": {
        "description": "Columns that do not begin when the one before ended, and by how much: the clock was set, or the host slept. Elsewhere each begins where the one before ends.",
        "type": "array",
        "items": {
          "type": "object",
          "required": ["column", "at", "milliseconds"],
          "properties": { "column": { "type": "integer" }, "at": { "type": "number" }, "milliseconds": { "type": "integer" } }
        }
      },
      "heat": { "$ref": "#/$defs/heat" },
      "marks": {
        "type": "object",
        "required": ["spikes", "bursts", "waits"],
        "properties": {
          "spikes": { "type": "array", "items": { "$ref": "#/$defs/spike" } },
          "bursts": { "type": "array", "items": { "$ref": "#/$defs/burst" } },
          "waits": { "type": "array", "items": { "$ref": "#/$defs/wait" } }
        }
      },
      "bounds_seconds": { "type": "array", "minItems": 211, "maxItems": 211, "items": { "type": "number" } }
    }
  },
  "column": {
    "description": "/api/v1/devices/NAME/column?snapshot=N: the exact histograms of total latency of one column, as pairs of word and I/Os.",
    "$ref": "#/$defs/head",
    "required": ["device", "column", "end", "seconds", "latency"],
    "properties": {
      "latency": {
        "type": "object",
        "required": ["read", "write", "flush", "discard", "commit"],
        "additionalProperties": {
          "type": "array",
          "items": { "type": "array", "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 210 }, { "type": "integer", "minimum": 1 }], "minItems": 2, "maxItems": 2 }
        }
      }
    }
  },
  "wait": {
    "description": "What held up I/O above the drives: this device, a volume or file system on it, or the whole host. In the past, volumes and file systems of other devices, too.",
    "type": "object",
    "required": ["id", "cause", "words", "begin", "end", "seconds", "next", "runbook"],
    "properties": {
      "cause": { "$ref": "#/$defs/host_wait_cause" },
      "words": { "type": "string", "minLength": 1 },
      "end": { "description": "null: it is going on.", "type": ["number", "null"] },
      "seconds": { "type": "number", "minimum": 0 },
      "runbook": { "$ref": "#/$defs/runbook" }
    }
  },
  "history_device": {
    "type": "object",
    "required": ["name", "model", "serial", "first", "last"],
    "properties": {
      "name": { "description": "The kernel's last one.", "type": "string" },
      "first": { "description": "Of what is kept, as the next.", "type": "number" },
      "last": { "type": "number" }
    }
  },
  "history_settings": {
    "type": "array",
    "items": {
      "type": "object",
      "required": ["at", "device", "name", "before", "value"],
      "properties": {
        "device": { "description": "null: the host.", "type": ["string", "null"] },
        "before": { "description": "null: seen for the first time.", "type": ["string", "null"] }
      }
    }
  },
  "history_marks": { "type": "array", "items": { "type": "object", "required": ["at", "text", "clock_ahead"] } },
  "history_kind": {
    "description": "Arrays with one entry a point: min and max are bounds of the quickest and the slowest, mean is exact, quantiles are upper bounds of buckets.",
    "type": "object",
    "required": ["ios", "min", "mean", "max", "p50", "p99", "p999"],
    "properties": { "ios": { "$ref": "#/$defs/counts" } },
    "additionalProperties": { "type": "array", "items": { "$ref": "#/$defs/seconds" } }
  },
  "history_list": {
    "description": "/api/v1/history?from=&to=: which devices are known; settings that changed and marks in that time. Also what POST /api/v1/marks answers.",
    "type": "object",
    "required": ["devices", "settings", "marks"],
    "properties": {
      "devices": { "type": "array", "items": { "$ref": "#/$defs/history_device" } },
      "settings": { "$ref": "#/$defs/history_settings" },
      "marks": { "$ref": "#/$defs/history_marks" }
    }
  },
  "history_minutes": {
    "description": "/api/v1/history/DEVICE?from=&to=&minutes=1: exact histograms of at most six hours, which are the last ones without from=; hours where minutes are no longer kept. What is missing was not measured.",
    "type": "object",
    "required": ["minutes"],
    "properties": {
      "minutes": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["start", "seconds", "measured_ms"],
          "properties": {
            "latencies": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "required": ["sum_ns", "words"],
                "properties": {
                  "words": { "type": "array", "items": { "type": "array", "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 210 }, { "type": "integer", "minimum": 1 }], "minItems": 2, "maxItems": 2 } }
                }
              }
            }
          }
        }
      }
    }
  },
  "history": {
    "description": "/api/v1/history/DEVICE?from=&to=&points=&heat=&tenants=: at most 2000 points of equal length. A time that is missing was not measured, or lies in clock_ahead: what was recorded then was stamped by a clock that went back to an earlier time since. Marks, spikes, bursts and changes are of the whole window. heat=read, write, flush, discard or commit: a column of a heatmap for each point, as in live, and bounds_seconds. tenants=total: of the whole window instead of each point, without `point`.",
    "type": "object",
    "required": ["device", "from", "to", "step_seconds", "reach", "points", "tenants", "wear", "spikes", "bursts", "waits", "settings", "marks", "clock_ahead", "cut"],
    "properties": {
      "device": { "$ref": "#/$defs/history_device" },
      "step_seconds": { "type": "integer", "minimum": 60 },
      "reach": {
        "description": "The oldest time with minutes, and with hours.",
        "type": "object",
        "required": ["minutes", "hours"],
        "additionalProperties": { "type": ["number", "null"] }
      },
      "points": {
        "type": "object",
        "required": ["start"],
        "properties": {
          "start": { "type": "array", "items": { "type": "number" } },
          "measured_seconds": { "description": "Of the point's time.", "type": "array", "items": { "type": "number" } },
          "read": { "$ref": "#/$defs/history_kind" },
          "write": { "$ref": "#/$defs/history_kind" },
          "flush": { "$ref": "#/$defs/history_kind" },
          "commit": { "$ref": "#/$defs/history_kind" },
          "discard": { "$ref": "#/$defs/history_kind" },
          "errors": { "$ref": "#/$defs/counts" },
          "losses": { "$ref": "#/$defs/counts" }
        }
      },
      "wear": { "type": "array", "items": { "type": "object", "required": ["at", "percentage_used", "available_spare", "temperature_celsius", "host_bytes", "media_bytes", "source", "host_unit_bytes", "media_unit_bytes"],
        "properties": { "host_unit_bytes": { "description": "In which the drive counts, as media_unit_bytes: host_bytes and media_bytes are each off by less than one.", "$ref": "#/$defs/seconds" }, "media_unit_bytes": { "$ref": "#/$defs/seconds" } } } },
      "heat": { "$ref": "#/$defs/heat" },
      "bounds_seconds": { "type": "array", "items": { "type": "number" } },
      "tenants": { "type": "array", "items": { "$ref": "#/$defs/tenant" } },
      "spikes": { "type": "array", "items": { "type": "object", "required": ["begin", "seconds", "operation", "cause", "words", "peak_seconds", "baseline_seconds", "excess_seconds", "ios", "evidence", "sentences", "missing", "next", "runbook", "has_columns", "clock_ahead"] } },
      "bursts": { "type": "array", "items": { "type": "object", "required": ["begin", "seconds", "trigger", "bytes", "clock_ahead"] } },
      "waits": { "type": "array", "items": { "$ref": "#/$defs/wait" } },
      "settings": { "$ref": "#/$defs/history_settings" },
      "marks": { "$ref": "#/$defs/history_marks" },
      "clock_ahead": { "type": "array", "items": { "type": "object", "required": ["from", "to"], "additionalProperties": { "type": "number" } } },
      "cut": { "description": "There are more spikes, bursts or waits: the newest are here.", "type": "boolean" }
    }
  },
  "heat": {
    "type": "object",
    "required": ["operation", "levels"],
    "properties": {
      "operation": { "enum": ["read", "write", "flush", "discard", "commit"] },
      "levels": {
        "description": "FIRST:LEVELS, the word of the first level and one level for each word from there: '0' none, '1' one I/O, '2' two or three, each sign further twice as many. Empty: no I/Os. null: not measured.",
        "type": "array",
        "items": { "type": ["string", "null"], "pattern": "^(\\d+:[0-r]+)?$" }
      }
    }
  },
  "history_seconds": {
    "description": "/api/v1/history/DEVICE?seconds=1&from=&to=&heat=: of an hour at most, the seconds around spikes, as far as they are kept; columns as in live, and when each ends.",
    "type": "object",
    "required": ["device", "end", "columns", "heat", "bounds_seconds"],
    "properties": {
      "device": { "type": "string" },
      "end": { "type": "array", "items": { "type": "number" } },
      "columns": { "type": "object" },
      "heat": { "$ref": "#/$defs/heat" },
      "bounds_seconds": { "type": "array", "items": { "type": "number" } }
    }
  },
  "tenant": {
    "type": "object",
    "required": ["name", "read", "write", "discard"],
    "properties": {
      "point": { "description": "Of the history, point by point.", "type": "integer" },
      "name": { "type": "string" },
      "title": { "description": "For people: the root's is not its name.", "type": "string" },
      "read": { "$ref": "#/$defs/attributed" },
      "write": { "$ref": "#/$defs/attributed" },
      "discard": { "$ref": "#/$defs/attributed" }
    }
  },
  "named_bytes": {
    "type": "array",
    "items": {
      "type": "object",
      "required": ["name", "bytes"],
      "properties": { "name": { "type": "string" }, "bytes": { "type": "integer", "minimum": 0 } }
    }
  },
  "attributed": {
    "type": "object",
    "required": ["ios", "bytes", "device_seconds"],
    "properties": {
      "ios": { "type": "integer", "minimum": 0 },
      "bytes": { "type": "integer", "minimum": 0 },
      "device_seconds": { "type": "number", "minimum": 0 }
    }
  },
  "tenants": {
    "description": "/api/v1/devices/NAME/tenants: whose I/O it was, how it entered the kernel, and what was said of writes, since the daemon began; rates are differences of two answers. null: this kernel does not tell, or names are switched off.",
    "$ref": "#/$defs/head",
    "required": ["device", "tenants", "paths", "writes", "hint_path", "placement_handles"],
    "properties": {
      "device": { "type": "string" },
      "writes": {
        "description": "null: latency.mode is completion-only.",
        "type": ["object", "null"],
        "required": ["hints", "classes", "streams"],
        "properties": {
          "hints": {
            "description": "By the lifetime that the writer declared.",
            "type": "array",
            "items": {
              "type": "object",
              "required": ["name", "ios", "bytes", "device_seconds"],
              "properties": {
                "name": { "enum": ["not_set", "none", "short", "medium", "long", "extreme", "unknown"] },
                "ios": { "type": "integer", "minimum": 0 },
                "bytes": { "type": "integer", "minimum": 0 },
                "device_seconds": { "type": "number", "minimum": 0 }
              }
            }
          },
          "classes": { "description": "By who made them.", "$ref": "#/$defs/named_bytes" },
          "streams": { "description": "By the stream that they named; those that did.", "$ref": "#/$defs/named_bytes" }
        }
      },
      "hint_path": {
        "description": "In words: how far the kernel carries a hint, and what the drive could do with it. null: not known yet.",
        "type": ["object", "null"],
        "required": ["kernel", "drive"],
        "properties": { "kernel": { "type": "string" }, "drive": { "type": "string" } }
      },
      "placement_handles": {
        "description": "How many reclaim unit handles (FDP) are in use, and by whom. null: the drive does not say.",
        "type": ["object", "null"],
        "required": ["unused", "host", "controller"],
        "additionalProperties": { "type": "integer", "minimum": 0 }
      },
      "tenants": { "type": ["array", "null"], "items": { "$ref": "#/$defs/tenant" } },
      "paths": { "type": ["array", "null"], "items": { "$ref": "#/$defs/tenant" } }
    }
  },
  "status": {
    "description": "/api/v1/status: the daemon itself, and what is not measured here, and why.",
    "$ref": "#/$defs/head",
    "required": ["version", "started_at", "latency_mode", "missed_ticks", "not_measured", "findings", "sources", "kernel_features"],
    "properties": {
      "not_measured": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["what", "why", "change"],
          "properties": { "what": { "type": "string", "minLength": 1 }, "why": { "type": "string", "minLength": 1 }, "change": { "type": "string" } }
        }
      },
      "findings": {
        "type": "array",
        "items": { "type": "object", "required": ["what", "evidence", "change", "runbook"] }
      },
      "sources": {
        "type": "array",
        "items": { "type": "object", "required": ["name", "controller", "up", "reason", "errors"] }
      }
    }
  },
  "doctor": {
    "description": "/api/v1/doctor: every check of what is measured. What is well is ok; info cannot be changed here, or was wanted so.",
    "$ref": "#/$defs/head",
    "required": ["findings"],
    "properties": { "findings": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/finding" } } }
  },
  "measured": {
    "description": "/api/v1/measured: what the rules of `ssdpulse audit` weigh, since the daemon's start; also without the page (web.page). Unlike elsewhere, what is not known is left out, and a whole object if nothing of it is known. Names are those of /metrics: of operations, causes, triggers, classes and paths; mount points are written as in its labels.",
    "type": "object",
    "properties": {
      "observed_seconds": { "$ref": "#/$defs/figure" },
      "tenant_limits": { "type": "boolean" },
      "cgroup_limit_seconds": { "$ref": "#/$defs/figure" },
      "devices": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": {
            "unseen": { "type": "boolean" },
            "controller": { "type": "string" },
            "operations": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "properties": { "bytes": { "$ref": "#/$defs/figure" }, "sequential_bytes": { "$ref": "#/$defs/figure" } },
                "additionalProperties": { "$ref": "#/$defs/distribution" }
              }
            },
            "commit_seconds": { "$ref": "#/$defs/distribution" },
            "written_bytes": { "$ref": "#/$defs/figures" },
            "spikes": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "properties": {
                  "excess_seconds": { "$ref": "#/$defs/figures" },
                  "pending_excess_seconds": { "$ref": "#/$defs/figure" },
                  "active_cause": { "$ref": "#/$defs/spike_cause" }
                }
              }
            },
            "discards": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figures" } },
            "path_ios": { "$ref": "#/$defs/figures" },
            "block_size_ranks": { "$ref": "#/$defs/figures" }
          },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      },
      "drives": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": {
            "warnings": { "$ref": "#/$defs/figures" },
            "endurance_groups": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figures" } }
          },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      },
      "mounts": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": { "discarded_bytes": { "$ref": "#/$defs/figures" } },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      }
    }
  },
  "figure": { "type": "number" },
  "figures": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figure" } },
  "distribution": { "description": "Of a histogram.", "type": "object", "properties": { "count": { "$ref": "#/$defs/figure" }, "sum": { "$ref": "#/$defs/figure" } } },
  "finding": {
    "description": "As ssdpulse doctor --json and ssdpulse audit --json have it.",
    "type": "object",
    "required": ["id", "verdict", "device", "title", "found", "why", "evidence", "change", "persistent", "undo", "risk", "source", "proof", "since", "excess_seconds_per_day", "wear_bytes_per_day", "observed_seconds", "observed_by"],
    "properties": {
      "id": { "type": "string", "minLength": 1 },
      "verdict": { "enum": ["danger", "advise", "unknown", "info", "ok", "not applicable"] },
      "device": { "type": "string" },
      "title": { "type": "string" },
      "found": { "type": "string", "minLength": 1 },
      "why": { "type": "string" },
      "evidence": { "type": "object", "additionalProperties": { "type": "number" } },
      "change": { "type": "string" },
      "persistent": { "type": "string" },
      "undo": { "type": "string" },
      "risk": { "type": "string" },
      "source": { "type": "string" },
      "proof": { "type": "string" },
      "since": { "type": ["number", "null"] },
      "excess_seconds_per_day": { "type": ["number", "null"] },
      "wear_bytes_per_day": { "type": ["number", "null"] },
      "observed_seconds": { "type": ["number", "null"] },
      "observed_by": { "enum": ["daemon", "history", "kernel"] }
    }
  }
})";

Json one_of_json(std::span<const std::string_view> values, bool nullable) {
  Json all = Json::array();
  for (const std::string_view value : values) {
    all.push_back(value);
  }
  if (nullable) {
    all.push_back(nullptr);
  }
  return {{"enum", std::move(all)}};
}

/// A value, or an entry of a list.
Json value_json(const Type& type, bool nullable) {
  constexpr auto kPrimitives = std::to_array<std::string_view>({"string", "number", "integer", "boolean"});
  if (!type.values.empty()) {
    return one_of_json(type.values, nullable);
  }
  if (std::find(kPrimitives.begin(), kPrimitives.end(), type.name) == kPrimitives.end()) {
    Json reference{{"$ref", fmt::format("#/$defs/{}", type.name)}};
    return nullable ? Json{{"anyOf", {std::move(reference), {{"type", "null"}}}}} : reference;
  }
  Json json{{"type", nullable ? Json{type.name, "null"} : Json(type.name)}};
  json.update(Json::parse(fmt::format("{{{}}}", type.limits)));
  return json;
}

Json type_json(const Type& type) {
  if (type.shape == Type::Shape::one) {
    return value_json(type, type.nullable);
  }
  const bool list = type.shape == Type::Shape::list;
  const std::string_view shape = list ? "array" : "object";
  Json json{{"type", type.nullable ? Json{shape, "null"} : Json(shape)}};
  json[list ? "items" : "additionalProperties"] = value_json(type, type.has_nulls);
  if (type.size > 0 || !type.empty) {
    json["minItems"] = std::max<std::size_t>(type.size, 1);
  }
  if (type.size > 0) {
    json["maxItems"] = type.size;
  }
  return json;
}

Json definition_json(const Definition& definition) {
  Json json = Json::object();
  if (!definition.help.empty()) {
    json["description"] = definition.help;
  }
  if (definition.has_head) {
    json["$ref"] = "#/$defs/head";
  }
  json["type"] = "object";
  json["required"] = Json::array();
  for (const Definition::Member& member : definition.members) {
    if (member.presence == Presence::always) {
      json["required"].push_back(member.name);
    }
    Json property = Json::object();
    if (!member.help.empty()) {
      property["description"] = member.help;
    }
    property.update(type_json(member.type));
    json["properties"][std::string(member.name)] = std::move(property);
  }
  return json;
}

/// The members of an object, a line each; the text has no end of line.
template <typename Write>
std::string by_line(const Json& object, std::string_view indent, Write write) {
  std::string text = "{\n";
  for (auto member = object.begin(); member != object.end(); ++member) {
    text += fmt::format("{}  {}: {}{}\n", indent, Json(member.key()).dump(), write(member.key(), member.value()),
                        std::next(member) == object.end() ? "" : ",");
  }
  return text + std::string(indent) + "}";
}

std::string definition_text(const Json& definition) {
  return by_line(definition, "    ", [](const std::string& key, const Json& value) {
    const auto plain = [](const std::string& /*key*/, const Json& one) { return one.dump(); };
    return key == "properties" ? by_line(value, "      ", plain) : value.dump();
  });
}

}  // namespace

std::string api_schema() {
  Json all{{"spike_cause", one_of_json(model::kSpikeCauseNames, false)},
           {"host_wait_cause", one_of_json(model::kHostWaitCauseNames, false)}};
  all.update(Json::parse(kOthers));
  for (const auto& definitions :
       {mark_definitions(), device_definitions(), day_definitions(), what_if_definitions(), live_definitions(),
        history_definitions(), tenant_definitions(), status_definitions()}) {
    for (const Definition& definition : definitions) {
      all[std::string(definition.name)] = definition_json(definition);
    }
  }
  const Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"$comment",
                     "SPDX-License-Identifier: Apache-2.0. Made from the tables of fields in exporters/page: "
                     "SSDPULSE_TEST_GOLDEN=write api_schema_test writes it."},
                    {"title", "Answers of ssdpulse below /api/v1"},
                    {"description", kDescription},
                    {"$defs", std::move(all)}};
  return by_line(schema, "",
                 [](const std::string& key, const Json& value) {
                   return key != "$defs" ? value.dump()
                                         : by_line(value, "  ", [](const std::string& /*key*/, const Json& one) {
                                             return one.contains("properties") ? definition_text(one) : one.dump();
                                           });
                 }) +
         "\n";
}

}  // namespace ssdpulse::page
