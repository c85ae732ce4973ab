// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config.h"

#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/config/keys.h"

namespace ssdpulse::config {
namespace {

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    names.emplace_back(section.name.view());
  }
  return names;
}

/// The full names of the keys that `wanted` is true of.
template <typename Predicate>
std::vector<std::string> names_of_keys(Predicate wanted) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (wanted(key)) {
      names.push_back(key.full_name());
    }
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
  if (!Field{section, report}.expect(Value::Kind::mapping, value, "keys below it (" + joined(names) + ")")) {
    return;
  }
  visit_entries(value, names, report, [&](const std::string& name, const Value& key_value) {
    const Key& key = *by_name.at(name);
    const Field field{key.full_name(), report};
    if (key_value.kind == Value::Kind::null) {
      field.wrong(key_value, "has no value; set one, or remove the line for the default");
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

ParseOutcome load(const std::string& path) { return parse_file(path, parse); }

std::string print(const Config& config) {
  Value root(Value::Kind::mapping);
  for (const Key& key : keys()) {  // the keys of a section are neighbours
    if (root.entries.empty() || root.entries.back().key.text != key.section) {
      root.entries.push_back({make_scalar(key.section, /*plain=*/true), Value(Value::Kind::mapping)});
    }
    Value& section = root.entries.back().value;
    section.entries.push_back({make_scalar(key.name, /*plain=*/true), key.write(config)});
  }
  return write_document(root);
}

std::vector<std::string> known_keys() {
  return names_of_keys([](const Key&) { return true; });
}

std::vector<std::string> keys_requiring_restart(const Config& running, const Config& wanted) {
  return names_of_keys([&](const Key& key) { return key.needs_restart && !key.equal(running, wanted); });
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
