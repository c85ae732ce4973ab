// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config.h"

#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/base/result.h"
#include "daemon/config/keys.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

// Checks the document against the table of keys: unknown and duplicate keys are found here, in the same way for all.

namespace {

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    names.emplace_back(section.name.view());
  }
  return names;
}

void read_section(const std::string& section, const Value& value, Report& report, Config& config) {
  if (value.kind == Value::Kind::null) {
    return;
  }
  std::map<std::string, const Key*> by_name;
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.section == section) {
      by_name[std::string(key.name)] = &key;
      names.emplace_back(key.name);
    }
  }
  if (value.kind != Value::Kind::mapping) {
    report.add(value.at,
               section + ": expected keys below it (" + joined(names) + "), got " + std::string(describe(value.kind)));
    return;
  }
  visit_entries(value, names, report, [&](const std::string& name, const Value& key_value) {
    const Key& key = *by_name.at(name);
    const std::string full_name = key.full_name();
    const Field field{full_name, report};
    if (key_value.kind == Value::Kind::null) {
      field.wrong(key_value.at, "has no value; set one, or remove the line for the default");
      return;
    }
    key.read(key_value, field, config);
  });
}

}  // namespace

ParseOutcome parse(std::string_view text, std::string_view file_name) {
  Report report(file_name);
  Config config;
  if (const std::optional<Value> root = read_document(text, report)) {
    if (root->kind == Value::Kind::mapping) {
      visit_entries(*root, section_names(), report, [&](const std::string& section, const Value& value) {
        read_section(section, value, report, config);
      });
    } else if (root->kind != Value::Kind::null) {
      report.add(root->at,
                 "expected sections (" + joined(section_names()) + "), got " + std::string(describe(root->kind)));
    }
  }
  if (!report.empty()) {
    return tl::unexpected(report.take());
  }
  return config;
}

ParseOutcome load(const std::string& path) {
  const auto text = read_regular_file(path);
  if (!text) {
    return tl::unexpected(std::vector<Problem>{{path, 0, 0, text.error().message}});
  }
  return parse(*text, path);
}

std::string print(const Config& config) {
  Value root;
  root.kind = Value::Kind::mapping;
  for (const Key& key : keys()) {  // the keys of a section are neighbours
    if (root.entries.empty() || root.entries.back().key.text != key.section) {
      root.entries.push_back({make_scalar(key.section, /*plain=*/true), {}});
      root.entries.back().value.kind = Value::Kind::mapping;
    }
    Value& section = root.entries.back().value;
    section.entries.push_back({make_scalar(key.name, /*plain=*/true), key.write(config)});
  }
  return write_document(root);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    names.push_back(key.full_name());
  }
  return names;
}

std::vector<std::string> keys_requiring_restart(const Config& running, const Config& wanted) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.needs_restart && !key.equal(running, wanted)) {
      names.push_back(key.full_name());
    }
  }
  return names;
}

// The thread is detached: stopping the daemon must not wait for a disk that hangs.
void ConfigurationReader::begin() {
  std::packaged_task<Configured()> task(configure_);
  reading_ = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error& error) {
    std::promise<Configured> failed;
    reading_ = failed.get_future();
    failed.set_value(
        tl::make_unexpected(std::vector<std::string>{std::string("cannot start a thread: ") + error.what()}));
  }
}

void ConfigurationReader::ask() {
  if (reading_.valid()) {
    asked_again_ = true;
  } else {
    begin();
  }
}

std::optional<Configured> ConfigurationReader::answer() {
  if (!reading_.valid() || reading_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return std::nullopt;
  }
  try {
    auto configured = reading_.get();
    if (!std::exchange(asked_again_, false)) {
      return configured;
    }
    begin();  // the file may have changed by now
    return std::nullopt;
  } catch (const std::exception& error) {  // out of memory, mostly
    return tl::make_unexpected(std::vector<std::string>{error.what()});
  }
}

}  // namespace ssdpulse::config
