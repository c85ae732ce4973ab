// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/key_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "daemon/config/keys.h"

namespace ssdpulse::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 120;

constexpr std::string_view kDefaultsHead = R"(# SPDX-License-Identifier: Apache-2.0
# The configuration of ssdpulse: every key with its built-in default. A key that is left out keeps its default.
# To check a change: `runuser -u ssdpulse -- ssdpulse check-config /etc/ssdpulse/ssdpulse.yaml` (the service's user must be able
# to read this file). To see what is in force with it: `ssdpulse print-config`.
# SIGHUP reloads the file; keys marked (restart) take effect at the next start.
# yaml-language-server: $schema=./schema.json
)";

constexpr std::string_view kSchemaHead = R"({

"$schema": "https://json-schema.org/draft/2020-12/schema",
"$comment": "SPDX-License-Identifier: Apache-2.0",
"title": "Configuration of ssdpulse",
"description": "A key that is left out keeps its default. The daemon checks more than a schema can express: see ssdpulse check-config.",
"type": ["object", "null"],
"additionalProperties": false
})";

constexpr std::string_view kDefinitions = R"({
  "size": {
    "type": "string",
    "description": "A whole number directly followed by B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB or TiB (powers of 1024).",
    "pattern": "^[0-9]+(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
  },
  "address": {
    "type": "string",
    "description": "HOST:PORT, [IPV6]:PORT, or :PORT for all addresses of the host.",
    "pattern": "^(\\[[0-9A-Fa-f:.]+\\]|[0-9A-Za-z_][0-9A-Za-z_.-]*)?:(0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))$"
  },
  "duration": {
    "type": "string",
    "description": "A whole number and a unit.",
    "pattern": "^[0-9]+(ns|us|ms|s|m|h|d)$"
  },
  "tenant_pattern": {
    "type": "object",
    "description": "A shell pattern on the path of a cgroup, where * matches slashes, too, and whose it is.",
    "additionalProperties": false,
    "required": ["match", "tenant"],
    "properties": {
      "match": { "type": "string", "pattern": "^[/*]" },
      "tenant": { "type": "string", "pattern": "^[!#-+.-~-]{1,128}$" }
    }
  },
  "pattern": {
    "type": "string",
    "description": "A shell pattern on the kernel's device name.",
    "minLength": 1,
    "pattern": "^[!-.0-~]+$"
  }
})";

constexpr std::string_view kManualHead = R"(.\" SPDX-License-Identifier: Apache-2.0
.\" Written by ssdpulse print-config --man.
.Dd November 27, 2026
.Dt SSDPULSE.YAML 5
.Os
.Sh NAME
.Nm ssdpulse.yaml
.Nd configuration of ssdpulse
.Sh DESCRIPTION
A YAML file with the keys below, in groups.
All of them are optional: a key, group or file that is left out or empty keeps the defaults.
An unknown key, or a key without a value, is an error.
.Li ssdpulse check-config
reports everything that is wrong with a file;
.Li ssdpulse print-config -c Ar file
prints the configuration in force with it.
.Pp
.Dv SIGHUP
.Pq Li systemctl reload ssdpulse
reloads the file.
Keys marked
.Em restart
take effect at the next start.
.Pp
A duration is a whole number with the unit
.Cm ns , us , ms , s , m , h
or
.Cm d .
.Bl -tag -width Ds
)";

constexpr std::string_view kManualTail = R"(.El
.Sh FILES
.Bl -tag -width Ds
.It Pa /etc/ssdpulse/ssdpulse.yaml
The configuration of the service.
The user ssdpulse must be able to read it: mode 0644, or 0640 with group ssdpulse.
.It Pa /usr/share/ssdpulse/config/ssdpulse.yaml
The defaults, with comments.
.It Pa /usr/share/ssdpulse/config/schema.json
A JSON schema, for editors.
.El
.Sh EXAMPLES
.Bd -literal -offset indent
web:
  listen_address: ["127.0.0.1:10936", "[::1]:10936"]
devices:
  include: ["nvme*"]
nvme:
  poll_interval: 1m
.Ed
.Sh SEE ALSO
.Xr ssdpulse 1 ,
.Xr ssdpulse-web 5
)";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string with_form(std::string_view text, const Key& key, const std::string& values) {
  const std::string with_range = replaced(replaced(std::string(text), "{min}", key.form.min), "{max}", key.form.max);
  return replaced(with_range, "{values}", values);
}

std::string help_of(const Key& key) { return with_form(key.texts.help, key, joined(key.form.values, ", ", " or ")); }

/// Marks the first sentence, or its part before a colon.
std::string marked(std::string help) {
  const auto end = std::min({help.find(": "), help.find(". "), help.size() - 1});
  return help.insert(end, " (restart)");
}

/// A comment of at most kColumns.
std::string comment(std::string_view text) {
  constexpr std::string_view kBegin = "  #";
  std::string lines;
  std::string line(kBegin);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = kBegin;
    }
    line.append(" ").append(word);
  }
  return lines + line + "\n";
}

/// Whether a scalar means the same to every reader without quotes.
bool is_plain(const std::string& text) {
  const auto is_usual = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_' || c == ':';
  };
  return !text.empty() && text.back() != ':' && std::all_of(text.begin(), text.end(), is_usual);
}

std::string shown(const Value& value) {
  if (value.kind == Value::Kind::scalar) {
    return value.plain || is_plain(value.text) ? value.text : Json(value.text).dump();
  }
  std::string items;
  for (const Value& item : value.items) {
    items += (items.empty() ? "" : ", ") + Json(item.text).dump();
  }
  return "[" + items + "]";
}

Json as_json(const Value& value) {
  if (value.kind == Value::Kind::list) {
    Json items = Json::array();
    for (const Value& item : value.items) {
      items.push_back(as_json(item));
    }
    return items;
  }
  const bool is_number =
      std::all_of(value.text.begin(), value.text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool is_word = value.text == "true" || value.text == "false";
  return value.plain && (is_number || is_word) ? Json::parse(value.text) : Json(value.text);
}

Json section_schema(std::string_view about) {
  return {{"description", std::string(about) + " Empty: the defaults."},
          {"type", {"object", "null"}},
          {"additionalProperties", false},
          {"properties", Json::object()}};
}

Json key_schema(const Key& key) {
  Json made{{"description", help_of(key) + (key.needs_restart ? " A change of this key needs a restart." : "")}};
  made.update(Json::parse("{" + key.form.schema + "}"));
  made["default"] = as_json(key.by_default);
  made["examples"] = Json::parse(key.texts.examples.view());
  return made;
}

}  // namespace

std::string commented_defaults() {
  std::string text(kDefaultsHead);
  std::string_view section;
  for (const Key& key : keys()) {
    if (key.section != section) {
      text += fmt::format("\n{}:\n", key.section);
      section = key.section;
    }
    text += comment(key.needs_restart ? marked(help_of(key)) : help_of(key));
    text += fmt::format("  {}: {}\n", key.name, shown(key.by_default));
  }
  return text;
}

std::string schema_json() {
  Json root = Json::parse(kSchemaHead);
  Json& all = root["properties"] = Json::object();
  for (const Section& section : sections()) {
    all[section.name.view()] = section_schema(section.about);
  }
  for (const Key& key : keys()) {
    all[key.section]["properties"][key.name] = key_schema(key);
  }
  root["$defs"] = Json::parse(kDefinitions);
  return root.dump(2) + "\n";
}

std::string manual_page() {
  std::string page(kManualHead);
  for (const Key& key : keys()) {
    page += fmt::format(".It Cm {}{}\n{}\nDefault:\n.Li {}\n", key.full_name(), key.needs_restart ? " Pq restart" : "",
                        with_form(key.texts.manual, key, ".Cm " + joined(key.form.values, " , ", "\nor\n.Cm ")),
                        replaced(shown(key.by_default), "\"", "\\(dq"));
  }
  return page.append(kManualTail);
}

}  // namespace ssdpulse::config
