// SPDX-License-Identifier: Apache-2.0
// Can text that somebody else chose break out of any sink? Hostile text is planted into every source and every sink is
// read with parsers of the test's own: 10^4 plantings in CI, 10^6 in the long tier. SSDPULSE_TEST_SEED chooses them.
// tests/static/test_outside_text.py holds both lists against the code.
#include "daemon/base/outside_text.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/advice/measured.h"
#include "daemon/base/log_output.h"
#include "daemon/block/device_events.h"
#include "daemon/cli/api_client.h"
#include "daemon/discards/discard_stage.h"
#include "daemon/history/history.h"
#include "daemon/history/setting_changes.h"
#include "daemon/history/sqlite.h"
#include "daemon/host/settings_record.h"
#include "daemon/model/device_identity.h"
#include "daemon/spikes/host_wait_words.h"
#include "daemon/spikes/host_waits.h"
#include "daemon/spikes/past_spikes.h"
#include "daemon/tenants/tenant_names.h"
#include "exporters/page/history_json.h"
#include "exporters/page/page_json.h"
#include "exporters/page/status_json.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"
#include "exporters/report/report_forms.h"
#include "exporters/terminal/device_list.h"
#include "exporters/terminal/finding_text.h"
#include "metrics.pb.h"
#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/audit_facts.h"

namespace ssdpulse {
namespace {

using util::OutsideText;
using Json = nlohmann::json;

// What no sink takes: the compiler refuses it.
template <typename Text>
concept is_taken_by_a_string =
    std::is_convertible_v<Text, std::string> || std::is_convertible_v<Text, std::string_view>;
template <typename Text>
concept is_taken_by_a_stream = requires(std::ostream& out, const Text& text) {
  out << text;
};
template <typename Text>
concept is_taken_by_json = std::is_constructible_v<Json, const Text&>;
template <typename Text>
concept is_taken_by_a_label = requires(const Text& text) {
  exposition::Label{"name", text};
};
template <typename Text>
concept is_taken_by_the_history = requires(history::Statement& row, const Text& text) {
  row.with(text);
};
template <typename Text>
concept is_part_of_a_command = requires(const Text& text) {
  std::string("umount ") + text;
};
static_assert(!is_taken_by_a_string<OutsideText>);
static_assert(!is_taken_by_a_stream<OutsideText>);
static_assert(!is_taken_by_json<OutsideText>);
static_assert(!is_taken_by_a_label<OutsideText> && is_taken_by_a_label<std::string>);
static_assert(!is_taken_by_the_history<OutsideText> && is_taken_by_the_history<std::string>);
static_assert(!is_part_of_a_command<OutsideText> && is_part_of_a_command<std::string>);
static_assert(!fmt::is_formattable<OutsideText>::value, "neither a sentence nor a line of the log takes it");

/// Where a text is read. One function of outside_text.h each.
enum Sink : unsigned {
  for_log = 1U << 0U,
  for_json = 1U << 1U,
  for_label = 1U << 2U,
  for_history = 1U << 3U,
  for_terminal = 1U << 4U,
  for_html = 1U << 5U,
  for_markdown = 1U << 6U,
  for_shell = 1U << 7U,
};

struct Source {
  std::string_view member;  // of daemon/model, or what else brings text from outside
  unsigned sinks;           // in which the test must see it; 0: it is only compared, or becomes another one of the list
};

constexpr std::array kSources{
    Source{"Attributes.texts_", for_json | for_terminal | for_markdown | for_shell},
    Source{"BlockSample.frozen", 0},  // FrozenFilesystem.command
    Source{"CgroupPaths", for_label},
    Source{"CgroupPressure.cgroup", 0},
    Source{"Device.attachment", for_history},
    Source{"Device.firmware", for_label | for_json | for_terminal | for_markdown | for_log},
    Source{"Device.model", for_label | for_json | for_terminal | for_log | for_history},
    Source{"Device.serial", for_label | for_json | for_terminal | for_log | for_history},
    Source{"Device.subsystem", for_history},
    Source{"Device.wwid", for_label | for_terminal | for_history},
    Source{"DeviceIdentity.model", 0},  // as Device's, like the next three
    Source{"DeviceIdentity.serial", 0},
    Source{"DeviceIdentity.subsystem", 0},
    Source{"DeviceIdentity.wwid", 0},
    Source{"DiscardSubmissions.submitter", for_log},
    Source{"Filesystem.fstype", for_label | for_json | for_terminal},
    Source{"Filesystem.mountpoint", for_label | for_json | for_log | for_terminal},
    Source{"Filesystem.options", for_log | for_history},
    Source{"FilesystemDiscards.mountpoint", for_label},
    Source{"FilesystemRoom.mountpoint", for_label},
    Source{"Finding.device", for_label | for_json | for_terminal | for_markdown},
    Source{"FrozenFilesystem.command", for_log | for_history},
    Source{"FrozenFilesystem.mountpoint", for_log | for_history},
    Source{"HostFigures.filling_bytes_per_second", for_label},
    Source{"HostSettings.cgroup_limits", for_json | for_terminal | for_markdown},
    Source{"HostSettings.virtual_machines", for_json | for_terminal | for_markdown},
    Source{"HostWait.command", for_json},
    Source{"HostWait.subject", for_json},
    Source{"IoLimit.cgroup", 0},
    Source{"Layer.title", for_label | for_json | for_terminal},
    Source{"Mark.text", for_json | for_terminal | for_html | for_markdown | for_history},
    Source{"Membership.name", for_label | for_json},
    Source{"MountSettings.fstype", 0},  // as Filesystem's, like the next but one
    Source{"MountSettings.mountpoint", for_json | for_terminal | for_markdown | for_shell},
    Source{"MountSettings.options", 0},
    Source{"NvmeIdentity.firmware", for_label},
    Source{"NvmeIdentity.model", for_label},
    Source{"NvmeIdentity.serial", for_label},
    Source{"NvmeIdentity.subsystem_nqn", for_label},
    Source{"PastBurst.trigger", for_json},
    Source{"PastDevice.identity", 0},
    Source{"PastDevice.model", for_json | for_terminal | for_html | for_markdown},
    Source{"PastDevice.serial", for_json | for_terminal | for_html | for_markdown},
    Source{"PastSpike.cause", for_json},
    Source{"PastSpike.evidence", for_json},
    Source{"PastSpike.missing", for_json},
    Source{"PastSpike.operation", for_json},
    Source{"PastWait.cause", 0},
    Source{"PastWait.evidence", 0},  // HostWait.command is taken from it
    Source{"PastWait.file", 0},
    Source{"PastWait.subject", for_json | for_history},
    Source{"PastWear.source", for_json},
    Source{"RecordedSettings.values", for_log | for_history},
    Source{"SeenCgroup.leaf", 0},  // a part of CgroupPaths
    Source{"SettingChange.before", for_json | for_terminal | for_html | for_markdown},
    Source{"SettingChange.device", for_json | for_terminal | for_html | for_markdown},
    Source{"SettingChange.identity", 0},
    Source{"SettingChange.name", for_json | for_terminal | for_html | for_markdown},
    Source{"SettingChange.value", for_json | for_terminal | for_html | for_markdown},
    Source{"Stack.fstype", 0},  // as Filesystem's, like the next
    Source{"Stack.mountpoint", 0},
    Source{"Swap.name", for_json | for_terminal | for_markdown},
    Source{"Tenant.cgroup", for_label},
    Source{"TimerSettings.calendar", for_json | for_terminal | for_markdown},
    Source{"TimerSettings.delay", for_log | for_history},
    Source{"Worst.cause", for_json},
    Source{"Worst.operation", for_json},
    Source{"a server's answer", for_terminal},
    Source{"a field of a request", for_json},
};

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 10) : otherwise;
}
bool long_tier() { return number_of("SSDPULSE_TEST_LONG", 0) == 1; }

// ---- The oracle. It shares nothing with what it judges.

/// The characters of a text; nothing if it is not UTF-8 (RFC 3629).
std::optional<std::u32string> characters(std::string_view text) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xc2 && byte < 0xe0 ? 2
                               : byte >= 0xe0 && byte < 0xf0 ? 3
                               : byte >= 0xf0 && byte < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) {
      return std::nullopt;
    }
    char32_t c = length == 1 ? byte : byte & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80) {
        return std::nullopt;
      }
      c = c << 6U | (next & 0x3fU);
    }
    if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10ffff)) || (c >= 0xd800 && c < 0xe000)) {
      return std::nullopt;
    }
    result += c;
    i += length;
  }
  return result;
}

/// Whether people see what there is: no control character, no change of direction, valid UTF-8.
bool is_calm(std::string_view text, std::u32string_view also = U"") {
  const auto all = characters(text);
  return all && std::none_of(all->begin(), all->end(), [&](char32_t c) {
           const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
           const bool direction = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                                  (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029 || c == 0xfeff;
           return (control || direction) && also.find(c) == std::u32string_view::npos;
         });
}

bool is_ascii_line(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

/// Whether a line is `form`, in which '?' stands for a value: without quotes, and without blanks if it is not quoted.
bool has_form(std::string_view line, std::string_view form) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '?') {
      if (at >= line.size() || line[at++] != form[i]) {
        return false;
      }
      continue;
    }
    const bool quoted = i > 0 && form[i - 1] == '"';
    while (at < line.size() && line[at] != '"' && (quoted || line[at] != ' ')) {
      ++at;
    }
  }
  return at == line.size();
}

void each_string(const Json& value, const std::function<void(const std::string&)>& use) {
  if (value.is_string()) {
    use(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (const auto& [name, part] : value.items()) {
      if (value.is_object()) {
        use(name);
      }
      each_string(part, use);
    }
  }
}

/// The words of a command as a POSIX shell would split them, operators apart; nothing if a quote is left open.
std::optional<std::vector<std::string>> shell_words(const std::string& command) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  const auto end = [&] {
    if (word) {
      words.push_back(*std::exchange(word, std::nullopt));
    }
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\'') {
      const std::size_t close = command.find('\'', i + 1);
      if (close == std::string::npos) {
        return std::nullopt;
      }
      word = word.value_or("") + command.substr(i + 1, close - i - 1);
      i = close;
    } else if (c == '\\' && i + 1 < command.size()) {
      word = word.value_or("") + command[++i];
    } else if (c == ' ' || c == '\n') {
      end();
    } else if (std::string_view(";&|<>()$`\"*?[]!~#").find(c) != std::string_view::npos && !(c == '#' && word)) {
      end();
      words.push_back(std::string("operator ") + c);
    } else {
      word = word.value_or("") + c;
    }
  }
  end();
  return words;
}

/// What Markdown and HTML would interpret, in order: the same whatever the names are.
std::string interpreted(const std::string& text, std::string_view special, bool escapes) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (special.find(text[i]) != std::string_view::npos) {
      result += text[i];
    }
  }
  return result;
}

// ---- The sources.

const std::array<std::string, 18> kHostile{"\"",
                                           "\n",
                                           "\r",
                                           "\x1b[2J\x1b]0;owned\x07",
                                           "\xe2\x80\xae",
                                           std::string(1, '\0'),
                                           "\xff",
                                           "\xfe\xed\xa0\x80",
                                           "\xc2\x9b"
                                           "31m",
                                           "\\",
                                           "'; reboot; '",
                                           "$(reboot) `reboot` && reboot",
                                           "</script><b onload=\"x\">&amp;",
                                           "|*_`[a](b)",
                                           " device=forged cause=\"forged\"",
                                           "{x=\"1\"} 7\nforged_total 1",
                                           "\xe2\x80\xa8\xc3\xa4",
                                           "\t\x7f "};

class Planter {
 public:
  explicit Planter(std::uint64_t seed) : chance_(seed) {}

  /// Hostile text that begins with the mark of its source. `plain`: printable ASCII, which commands may contain.
  OutsideText in(std::string_view member, std::string_view beginning = "") {
    const auto* const found =
        std::find_if(kSources.begin(), kSources.end(), [&](const Source& one) { return one.member == member; });
    EXPECT_NE(found, kSources.end()) << member << " is not in kSources";
    ++planted_;
    if (benign_) {
      return std::string(beginning) + mark_of(static_cast<std::size_t>(found - kSources.begin())) + "benign";
    }
    std::string text = std::string(beginning) + mark_of(static_cast<std::size_t>(found - kSources.begin()));
    for (std::size_t pieces = 1 + chance_() % 4; pieces > 0; --pieces) {
      const std::string& piece = kHostile.at(chance_() % kHostile.size());
      text += !plain_ || is_ascii_line(piece) ? piece : "x";
    }
    if (chance_() % 40 == 0) {
      text += std::string(10'240, static_cast<char>('A' + chance_() % 26));
    }
    return text;
  }
  static std::string mark_of(std::size_t number) { return fmt::format("q{:02}z", number); }
  bool plain() const { return plain_; }
  void next(bool benign = false) {
    benign_ = benign;
    plain_ = chance_() % 3 == 0;
  }
  std::uint64_t planted() const { return planted_; }

 private:
  std::mt19937_64 chance_;
  std::uint64_t planted_ = 0;
  bool benign_ = false;
  bool plain_ = false;
};

// ---- The sinks.

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : plant_(seed) {}

  void run(std::uint64_t plantings) {
    const auto directory = std::make_unique<tests::TemporaryTree>();
    history::Options options;
    options.directory = directory->path("history");
    options.now = [] { return kWall; };
    auto history = history::History::open(std::move(options));
    ASSERT_TRUE(history.has_value());
    plant_.next(true);
    benign_ = read_reports();
    benign_commands_ = read_commands();
    benign_names_ = names_;
    for (std::uint64_t round = 0; plant_.planted() < plantings && !::testing::Test::HasFailure(); ++round) {
      plant_.next();
      batch_ = {};
      read_lines();
      read_snapshot();
      read_past();
      read_terminal();
      const Reports reports = read_reports();
      EXPECT_EQ(reports.html, benign_.html);
      EXPECT_EQ(reports.markdown, benign_.markdown);
      compare_commands(read_commands());
      read_answer();
      if (round < 40) {  // it is on a disk
        batch_.at = kWall;
        (*history)->add(std::move(batch_));
      }
    }
    history->reset();
    read_history(directory->path("history") + "/" + history::kFileName);
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      EXPECT_EQ(seen_[i] & kSources.at(i).sinks, kSources.at(i).sinks)
          << kSources.at(i).member << " was not seen in all sinks that the list has";
    }
    if (::testing::Test::HasFailure()) {
      return;
    }
    fmt::print("{} plantings, {} sources\n", plant_.planted(), kSources.size());
  }

 private:
  struct Reports {
    std::string html;
    std::string markdown;
  };
  using Commands = std::vector<model::Finding>;
  static constexpr model::WallTime kWall{std::chrono::hours(484'000)};

  void saw(std::string_view text, Sink sink) {
    for (std::size_t i = 0; i < kSources.size(); ++i) {
      if ((kSources.at(i).sinks & sink) != 0 && (seen_[i] & sink) == 0 &&
          text.find(Planter::mark_of(i)) != std::string_view::npos) {
        seen_[i] |= sink;
      }
    }
  }

  // Log and journal.

  void line(const log::Line& written, const std::vector<std::string_view>& forms) {
    const std::string& text = written.text;
    saw(text, for_log);
    EXPECT_TRUE(is_ascii_line(text)) << text;
    const auto form =
        std::find_if(forms.begin(), forms.end(), [&](std::string_view one) { return has_form(text, one); });
    ASSERT_NE(form, forms.end()) << text;
    EXPECT_EQ(written.fields.size(), std::count(form->begin(), form->end(), '=')) << text;
    const auto json = Json::parse(log::json_line(kWall, "info", text, written.fields));
    EXPECT_FALSE(json.contains("fields") && json["fields"].value("device", "") == "forged") << text;
    EXPECT_FALSE(json.contains("fields") && json["fields"].value("cause", "") == "forged") << text;
    const std::string entry = log::journal_entry('6', text, written.fields);
    EXPECT_EQ(entry.find("=forged\n"), std::string::npos) << text;
    EXPECT_LT(text.size(), 16'384U) << "the journal would cut it";
  }

  model::Device device(const char* name) {
    model::Device one;
    one.name = name;
    one.model = plant_.in("Device.model");
    one.serial = plant_.in("Device.serial");
    one.firmware = plant_.in("Device.firmware");
    one.wwid = plant_.in("Device.wwid");
    one.subsystem = plant_.in("Device.subsystem");
    one.attachment = plant_.in("Device.attachment");
    one.paths = {{name, 1, 1, 1}};
    return one;
  }

  model::Filesystem filesystem(const char* on) {
    model::Filesystem one{on, plant_.in("Filesystem.mountpoint", "/"), plant_.in("Filesystem.fstype"), true, {on}};
    one.options = {"rw", plant_.in("Filesystem.options")};
    return one;
  }

  void read_lines() {
    auto inventory = std::make_shared<model::Inventory>();
    inventory->filesystems = {filesystem("sda")};
    inventory->volumes = {{"sda", 8, 0, "sda", false}};
    model::Tick tick;
    tick.inventory = inventory;
    tick.at = model::SteadyTime(std::chrono::hours(1));
    tick.wall = kWall;
    block::DeviceEvents events;
    events.observe(tick);
    auto io = std::make_shared<model::DeviceIo>();
    const auto add = [&](const model::Device& one) {
      tick.devices.emplace_back();
      tick.devices.back().block.device = std::make_shared<const model::Device>(one);
      tick.devices.back().block.io = io;
    };
    model::Device twin = device("sda");
    add(twin);
    twin.name = "sdb";  // of one identity
    add(twin);
    model::Findings came = events.observe(tick);
    EXPECT_GE(came.effects.lines.size(), 3U);
    for (const log::Line& one : came.effects.lines) {
      line(one, {"device came device=? model=\"?\" serial=\"?\" size_bytes=?", "devices identity=\"?\""});
    }
    read_settings(tick);
    read_discards(tick, *io);
    read_waits(tick);
    read_keys(tick);
  }

  void read_settings(model::Tick tick) {
    model::HistoryKeys keys;
    keys.set_history_keys(tick);
    history::SettingChanges changes;
    model::Attributes files;
    files.set("proc/sys/kernel/osrelease", plant_.in("Attributes.texts_"));
    model::DiskSettings disk;
    disk.device = *tick.devices[0].block.device;
    model::DiskSettings volume;
    volume.files.set("dm/name", plant_.in("Attributes.texts_"));
    volume.files.set("queue/read_ahead_kb", plant_.in("RecordedSettings.values"));
    for (int again = 0; again < 2; ++again) {
      model::RecordedSettings read = host::recorded(disk, {volume});
      read.device = "sda";
      read.values["scheduler"] = plant_.in("RecordedSettings.values");
      model::TimerSettings timer{true, plant_.in("TimerSettings.calendar"), plant_.in("TimerSettings.delay")};
      tick.settings_read = {read, host::recorded("fstrim.timer", timer), host::recorded(files)};
      model::Findings findings = changes.observe(tick);
      for (const log::Line& one : findings.effects.lines) {
        line(one, {"setting changed device=? setting=\"?\" before=\"?\" now=\"?\""});
      }
      take(std::move(findings.effects.rows));
      volume.files.set("queue/read_ahead_kb", plant_.in("RecordedSettings.values"));
      disk.device.firmware = plant_.in("Device.firmware");
      auto inventory = std::make_shared<model::Inventory>(*tick.inventory);
      inventory->filesystems[0].options = {plant_.in("Filesystem.options")};
      tick.inventory = inventory;
    }
  }

  void read_discards(model::Tick tick, model::DeviceIo& io) {
    discards::Discards discards;
    tick.settings.discard_gap = std::chrono::nanoseconds(0);
    auto& cell = tick.discards["sda"][static_cast<std::size_t>(model::DiscardSubmitter::fstrim)];
    discards.observe(tick);
    for (int again = 0; again < 3; ++again) {
      tick.at += std::chrono::milliseconds(1);
      if (again == 0) {
        cell.bytes = 128 << 20;
        cell.ranges = 1;
        cell.first_ns = cell.last_ns = static_cast<std::uint64_t>(tick.at.time_since_epoch().count());
        cell.submitter = plant_.in("DiscardSubmissions.submitter");
        auto& requests = io.operations[model::index(model::Operation::discard)];
        requests.issues = requests.completions = 1;
        requests.bytes = cell.bytes;
      }
      model::Findings findings = discards.observe(tick);
      for (const log::Line& one : findings.effects.lines) {
        line(one, {"discard burst device=? trigger=? begin=? end=? seconds=? bytes=? requests=? ranges=? comm=\"?\" "
                   "filesystem=\"?\" array=\"?\" suppressed=?",
                   "discard burst device=? trigger=? begin=? end=? seconds=? bytes=? requests=? comm=\"?\" "
                   "filesystem=\"?\" array=\"?\" suppressed=?",
                   "volume=? filesystem=\"?\" is mounted with discard and also trimmed by fstrim: use one of the two"});
      }
      take(std::move(findings.effects.rows));
    }
  }

  void read_waits(model::Tick tick) {
    spikes::HostWaitStage waits;
    model::HostSignals signals;
    signals.frozen = {{plant_.in("FrozenFilesystem.mountpoint", "/"), plant_.in("FrozenFilesystem.command"), {"sda"}}};
    for (int second = 0; second < 8; ++second) {
      tick.at += std::chrono::seconds(1);
      tick.wall += std::chrono::seconds(1);
      signals.frozen.resize(second < 3 ? 1 : 0);
      tick.host = std::make_shared<const model::HostSignals>(signals);
      model::Findings findings = waits.observe(tick);
      for (const log::Line& one : findings.effects.lines) {
        line(one, {"I/O held up cause=? subject=\"?\" device=? tenant=? begin=? evidence=\"?\" source=?",
                   "I/O held up until now cause=? subject=\"?\" device=? tenant=? begin=? seconds=? evidence=\"?\" "
                   "source=?"});
      }
      take(std::move(findings.effects.rows));
    }
  }

  void read_keys(model::Tick tick) {
    model::HistoryKeys keys;
    keys.set_history_keys(tick);
    const auto sda = std::find_if(tick.devices.begin(), tick.devices.end(),
                                  [](const model::DeviceTick& one) { return one.block.device->name == "sda"; });
    batch_.device_minutes.push_back({*sda->history_key, std::chrono::floor<std::chrono::minutes>(kWall), {}});
    batch_.device_minutes.back().load.measured_ms = 60'000;
  }

  void take(model::Batch rows) {
    rows.device_minutes.clear();
    model::append(batch_, std::move(rows));
  }

  // Labels and pages.

  void read_snapshot() {
    model::Snapshot snapshot;
    snapshot.number = 1;
    snapshot.taken_at = kWall;
    for (const char* name : {"nvme0n1", "sda"}) {
      snapshot.devices.emplace_back();
      snapshot.devices.back().device = std::make_shared<const model::Device>(device(name));
    }
    snapshot.memberships = {{"dm-0", "sda", "dm", plant_.in("Membership.name")}};
    snapshot.layers = {{"dm-0", plant_.in("Layer.title"), model::LayerKind::lvm, {"sda"}}};
    snapshot.filesystems = {filesystem("sda")};
    // Two that differ only in what is no text: their series must not be one.
    const std::string twin = "/twin" + std::string(plant_.plain() ? "" : "\n");
    for (const char* byte : {"\xfe", "\xff", "\xef\xbf\xbd",
                             "\xef\xbf\xbd"
                             "fe",
                             "?"}) {
      snapshot.filesystems.push_back({"sda", twin + byte, "ext4"});
    }
    model::HostSignals signals;
    signals.rooms = {{plant_.in("FilesystemRoom.mountpoint", "/"), 1 << 30, 1 << 20, 1, 1}};
    for (const char* byte : {"\xfe", "\xff", "\xef\xbf\xbd",
                             "\xef\xbf\xbd"
                             "fe",
                             "?"}) {
      signals.rooms.push_back({twin + byte, 1 << 30, 1 << 20, 1, 1});
    }
    signals.cgroups = {{plant_.in("CgroupPressure.cgroup"), "t", {}}};
    snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
    snapshot.host.filling_bytes_per_second = {{plant_.in("HostFigures.filling_bytes_per_second"), 1e6},
                                              {signals.rooms[0].mountpoint, 1e6}};
    model::HostWait wait{model::HostWaitCause::frozen, plant_.in("HostWait.subject"), "", "", kWall};
    wait.command = plant_.in("HostWait.command");
    snapshot.host.waits = {wait};
    snapshot.filesystem_discards = {{"sda", plant_.in("FilesystemDiscards.mountpoint", "/"), true, {1, 1}, kWall}};
    auto identity = std::make_shared<model::NvmeIdentity>();
    identity->controller = "nvme0";
    identity->model = plant_.in("NvmeIdentity.model");
    identity->serial = plant_.in("NvmeIdentity.serial");
    identity->firmware = plant_.in("NvmeIdentity.firmware");
    identity->subsystem_nqn = plant_.in("NvmeIdentity.subsystem_nqn");
    identity->namespaces = {{"nvme0n1", 1}};
    snapshot.nvme_drives.emplace_back();
    snapshot.nvme_drives.back().identity = identity;
    tenants::TenantNamer namer({}, std::nullopt);
    auto tenants = std::make_shared<model::DeviceTenants>();
    tenants->tenants = {{namer.tenant_of(plant_.in("CgroupPaths", "/")), {}, 1, kWall},
                        {{"other-tenant", model::TenantKind::cgroup, plant_.in("Tenant.cgroup", "/")}, {}, 1, kWall}};
    snapshot.devices[1].tenants = tenants;
    snapshot.devices[1].io = std::make_shared<const model::DeviceIo>();
    auto findings = std::make_shared<std::vector<model::Finding>>(1);
    findings->at(0).id = "F1";
    findings->at(0).verdict = model::Verdict::advise;
    findings->at(0).device = plant_.in("Finding.device", "/");
    snapshot.audit = findings;
    const std::vector<exposition::Family> families = exposition::collect(snapshot);
    labels(exposition::render_text(families));
    messages(exposition::render_protobuf(families));
    history::RecentPast past(1 << 20);
    past.observe(snapshot);
    json(advice::measured_json(advice::measure(snapshot)));
    json(page::devices_json(snapshot, past).dump());
    json(page::stacks_json(snapshot).dump());
    json(page::status_json(snapshot, past).dump());
    json(page::tenants_json(snapshot.devices[1], snapshot).dump());
    json(page::why_json(spikes::why(spikes::situation_of(snapshot, past)), {}).dump());
    json(page::wait_mark_json(wait, snapshot).dump());
    const auto words = spikes::host_wait_words(wait, snapshot, spikes::Tense::present);
    EXPECT_TRUE(is_calm(words.what)) << words.what;
    json(page::findings_json(*findings).dump());
    print(*findings);
  }

  void json(const std::string& text) {
    EXPECT_TRUE(is_calm(text, U"\n")) << text;
    const Json parsed = Json::parse(text, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << text;
    saw(text, for_json);
    each_string(parsed, [](const std::string& one) {
      EXPECT_TRUE(is_calm(one)) << one;
      EXPECT_LT(one.size(), 32'000U);
    });
  }

  void labels(const std::string& page) {
    saw(page, for_label);
    EXPECT_TRUE(is_calm(page, U"\n"));
    std::set<std::string> series;
    std::istringstream lines(page);
    for (std::string one; std::getline(lines, one);) {
      if (one.starts_with("# ")) {
        continue;
      }
      std::size_t at = one.find_first_of("{ ");
      ASSERT_NE(at, std::string::npos) << one;
      EXPECT_TRUE(one.starts_with("ssdpulse_") || one.starts_with("process_")) << one;
      EXPECT_FALSE(one.starts_with("forged")) << one;
      while (one[at] == '{' || one[at] == ',') {
        const std::size_t equals = one.find("=\"", at);
        ASSERT_NE(equals, std::string::npos) << one;
        const std::string name = one.substr(at + 1, equals - at - 1);
        EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) { return std::islower(c) || c == '_'; })) << one;
        for (at = equals + 2; at < one.size() && one[at] != '"'; ++at) {
          at += one[at] == '\\' ? 1 : 0;
        }
        ASSERT_LT(++at, one.size()) << one;
      }
      at += one[at] == '}' ? 1 : 0;
      EXPECT_EQ(one[at], ' ') << one;
      EXPECT_NE(one.find_first_of("0123456789NI+", at), std::string::npos) << one;
      EXPECT_EQ(one.find(' ', at + 1), std::string::npos) << one;
      EXPECT_TRUE(series.insert(one.substr(0, at)).second) << "twice: " << one;
    }
  }

  static void messages(const std::string& page) {
    google::protobuf::io::ArrayInputStream input(page.data(), static_cast<int>(page.size()));
    for (bool end = false; !end;) {
      io::prometheus::client::MetricFamily family;
      if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&family, &input, &end)) {
        EXPECT_TRUE(end);
        break;
      }
      std::set<std::string> series;
      for (const auto& metric : family.metric()) {
        std::string all;
        for (const auto& label : metric.label()) {
          EXPECT_TRUE(is_calm(label.value())) << label.value();
          all += label.name() + '\n' + label.value() + '\n';
        }
        EXPECT_TRUE(series.insert(all).second) << "twice: " << family.name() << ' ' << all;
      }
    }
  }

  // What the history file may hold: anything.

  void read_past() {
    const model::PastTime minute = std::chrono::floor<std::chrono::minutes>(kWall);
    const model::PastDevice known{"sda",  plant_.in("PastDevice.model"),   plant_.in("PastDevice.serial"), minute,
                                  minute, plant_.in("PastDevice.identity")};
    const model::Mark mark{kWall, plant_.in("Mark.text")};
    const model::SettingChange change = setting();
    json(page::history_list_json({known}, {change}, {mark}));
    const OutsideText request = plant_.in("a field of a request");
    if (page::is_printable(request.raw())) {
      EXPECT_TRUE(is_calm(request.raw()));
      json(page::history_list_json({}, {}, {{kWall, request}}));
    }
    model::Series series;
    series.device = known;
    series.window = {minute, minute + std::chrono::minutes(2)};
    series.settings = {change};
    series.marks = {mark};
    model::PastSpike spike;
    spike.begin = kWall;
    spike.device = "sda";
    spike.operation = plant_.in("PastSpike.operation");
    spike.cause = plant_.in("PastSpike.cause");
    spike.evidence = plant_.in("PastSpike.evidence", "heaviest=");
    spike.missing = plant_.in("PastSpike.missing");
    series.spikes = {spike};
    series.bursts = {{kWall, "sda", plant_.in("PastBurst.trigger"), 1, 1}};
    model::PastWait wait;
    wait.begin = kWall;
    wait.cause = "frozen";
    wait.subject = plant_.in("PastWait.subject");
    wait.device = "sda";
    wait.evidence = plant_.in("PastWait.evidence", "command=");
    wait.file = plant_.in("PastWait.file");
    series.waits = {wait};
    batch_.waits.push_back(wait);
    batch_.marks.push_back(mark);
    series.wear.emplace_back();
    series.wear.back().source = plant_.in("PastWear.source");
    json(page::history_json(series));
    read_rows(spike, wait);
    model::PastDay day;
    day.devices.emplace_back();
    day.devices.back().name = "sda";
    day.devices.back().slots[0].worst =
        model::PastDay::Worst{kWall, plant_.in("Worst.operation"), plant_.in("Worst.cause"), 1, 1, 1};
    json(page::day_json(&day, "").dump());
    wait.cause = plant_.in("PastWait.cause");
    series.waits = {wait};
    json(page::history_json(series));
  }

  /// What is taken apart again: each part is as harmless as the whole.
  static void read_rows(const model::PastSpike& spike, const model::PastWait& wait) {
    model::PastSpike with_tenants = spike;
    with_tenants.evidence = spike.evidence.raw() + ":1 " + spike.missing.raw() + "=1";
    const model::LatencySpike one = spikes::spike_of(with_tenants);
    for (const model::SpikeTenant& tenant : one.heaviest) {
      EXPECT_TRUE(is_calm(tenant.name)) << tenant.name;
    }
    for (const std::string& missing : one.missing) {
      EXPECT_TRUE(is_calm(missing)) << missing;
    }
    model::PastWait with_figures = wait;
    with_figures.evidence = wait.evidence.raw() + ' ' + wait.subject.raw() + "=1";
    if (const auto past = spikes::wait_of(with_figures)) {
      EXPECT_TRUE(is_calm(past->file)) << past->file;
      for (const auto& [name, value] : past->evidence) {
        EXPECT_TRUE(is_calm(name)) << name;
      }
    }
  }

  model::SettingChange setting() {
    return {kWall,
            plant_.in("SettingChange.device"),
            plant_.in("SettingChange.name"),
            plant_.in("SettingChange.before"),
            plant_.in("SettingChange.value"),
            plant_.in("SettingChange.identity")};
  }

  // Terminal and reports.

  void terminal(const std::string& text) {
    saw(text, for_terminal);
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c <= 0x7e); }))
        << text;
  }

  void read_terminal() {
    model::Inventory inventory;
    inventory.devices = {device("sda"), device("sdb")};
    inventory.devices.push_back(inventory.devices.back());
    inventory.devices.back().name = "sdc";
    inventory.layers = {{"dm-0", plant_.in("Layer.title"), model::LayerKind::lvm, {"sda"}}};
    inventory.filesystems = {filesystem("dm-0")};
    terminal::DriveList drives;
    drives.lines = {{"nvme0", {"nvme0n1"}, plant_.in("Device.firmware"), {"smart"}, "ocp", "", ""}};
    std::ostringstream out;
    terminal::print_devices(inventory, out);
    terminal::print_stacks(inventory, {}, out);
    terminal::print_drives(drives.lines, out);
    const std::string shown = out.str();
    terminal(shown);
    EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 20);
    json(terminal::devices_json(inventory, drives, {}));
  }

  void print(const std::vector<model::Finding>& all) {
    std::ostringstream text;
    terminal::print_findings(all, {.all = true, .verbose = true}, text);
    terminal(text.str());
    std::ostringstream markdown;
    terminal::print_findings_markdown(all, {.all = true}, markdown);
    const std::string shown = markdown.str();
    saw(shown, for_markdown);
    EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [](char c) { return c == '\n' || (c >= 0x20 && c <= 0x7e); }))
        << shown;
  }

  Reports read_reports() {
    const model::PastTime minute = std::chrono::floor<std::chrono::minutes>(kWall);
    report::Report report{"host", kWall, "a change", {{kWall, plant_.in("Mark.text")}}, {}};
    report.devices.emplace_back();
    auto& comparison = report.devices.back().comparison;
    comparison.device = {"sda", plant_.in("PastDevice.model"), plant_.in("PastDevice.serial"), minute, minute};
    comparison.before = comparison.after = model::Window{minute, minute};
    comparison.rows.resize(1);  // else the rest is left out
    comparison.rows[0].id = "read.p99";
    comparison.rows[0].what = "reads p99";
    comparison.differing = {setting()};
    std::array<std::ostringstream, 4> out;
    report::print_text(report, out[0]);
    terminal(out[0].str());
    report::print_markdown(report, out[1]);
    report::print_json(report, out[2]);
    json(out[2].str());
    report::print_html(report, out[3]);
    saw(out[1].str(), for_markdown);
    saw(out[3].str(), for_html);
    EXPECT_TRUE(is_calm(out[3].str(), U"\n")) << out[3].str();
    EXPECT_TRUE(is_calm(out[1].str(), U"\n")) << out[1].str();
    return {interpreted(out[3].str(), "<>\"'", false), interpreted(out[1].str(), "`*_[]<>|~\n", true)};
  }

  // Commands.

  Commands read_commands() {
    tests::MadeUpHost host;
    auto& settings = host.facts.settings;
    host.mount().mountpoint = plant_.in("MountSettings.mountpoint", "/");
    host.mount().options = {"discard", "nobarrier", "data=journal", plant_.in("MountSettings.options")};
    host.mount().volumes = {"md0"};
    host.array().device.name = "md0";
    host.array().files.set("dm/name", plant_.in("Attributes.texts_"));
    host.array().files.set("dm/uuid", "CRYPT-LUKS2-x");
    host.array().files.set("queue/discard_max_bytes", "0");
    host.array().files.set("md/sync_action", plant_.in("Attributes.texts_"));
    host.array().files.set("md/sync_speed_max", plant_.in("Attributes.texts_"));
    host.array().crypt_flags = std::set<std::string>{};
    host.disk().files.set("queue/write_cache", plant_.in("Attributes.texts_"));
    host.disk().device.model = plant_.in("Device.model");
    host.disk().device.firmware = plant_.in("Device.firmware");
    settings.fstrim.enabled = true;
    settings.fstrim.calendar = plant_.in("TimerSettings.calendar");
    settings.swaps = {{plant_.in("Swap.name", "/"), {}, false}};
    settings.virtual_machines = {"qemu-system-x86_64 -drive file=" +
                                 (plant_.in("HostSettings.virtual_machines", "/")).raw().substr(0, 60) + ",if=virtio"};
    settings.cgroup_limits = {{plant_.in("HostSettings.cgroup_limits"), "8:0 rbps=1"}};
    Commands all = advice::judge(host.facts);
    print(all);
    json(page::findings_json(all).dump());
    names_ = {host.mount().mountpoint.raw(), host.array().files.text("dm/name").raw()};
    return all;
  }

  static const model::Finding* find(const Commands& all, const model::Finding& like, bool of_mount) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const model::Finding& one) {
      return one.id == like.id && one.device.starts_with("/") == of_mount;
    });
    return found == all.end() ? nullptr : &*found;
  }

  /// With any name, a command has the words that it has with a harmless one, and the name as one of them; or there is
  /// none.
  void compare_commands(const Commands& all) {
    for (const model::Finding& like : benign_commands_) {
      if (like.device == "md0" ? like.id != "F5" : !like.device.starts_with("/")) {
        continue;
      }
      const model::Finding* one = find(all, like, like.device.starts_with("/"));
      ASSERT_NE(one, nullptr) << like.id;
      const std::array<std::pair<std::string, std::string>, 3> pairs{
          {{like.change, one->change}, {like.persistent, one->persistent}, {like.undo, one->undo}}};
      for (const auto& [benign, command] : pairs) {
        EXPECT_TRUE(is_ascii_line(command)) << command;
        if (command.empty() || command == "add it again") {
          continue;
        }
        auto wanted = shell_words(benign);
        const auto words = shell_words(command);
        if (!wanted) {
          EXPECT_EQ(command, benign) << "words, and no command";
          continue;
        }
        ASSERT_TRUE(words) << command;
        for (std::string& word : *wanted) {
          for (std::size_t i = 0; i < names_.size(); ++i) {
            word = word == benign_names_.at(i) ? names_[i] : word;
          }
        }
        EXPECT_EQ(*words, *wanted) << command;
        saw(command, for_shell);
      }
    }
  }

  // The client.

  void read_answer() {
    const std::string text = plant_.in("a server's answer").raw();
    Json answer{{"why", {{"sentence", text}, {text, {text, 1}}}}};
    cli::clean_strings(answer);
    each_string(answer, [](const std::string& one) { EXPECT_TRUE(is_calm(one)) << one; });
    const std::string first = cli::first_line_of(text);
    EXPECT_TRUE(is_calm(first)) << first;
    saw(first, for_terminal);
  }

  // The history.

  void read_history(const std::string& path) {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    for (const char* columns :
         {"identity || ' ' || model || ' ' || serial FROM device", "name FROM setting", "value FROM setting",
          "text FROM mark", "subject FROM host_wait", "evidence FROM host_wait"}) {
      sqlite3_stmt* rows = nullptr;
      ASSERT_EQ(sqlite3_prepare_v2(file, (std::string("SELECT ") + columns).c_str(), -1, &rows, nullptr), SQLITE_OK);
      while (sqlite3_step(rows) == SQLITE_ROW) {
        const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(rows, 0));
        const std::string text(reinterpret_cast<const char*>(sqlite3_column_text(rows, 0)), bytes);
        EXPECT_TRUE(is_calm(text)) << columns << ": " << text;
        saw(text, for_history);
      }
      sqlite3_finalize(rows);
    }
    sqlite3_close(file);
  }

  Planter plant_;
  Reports benign_;
  Commands benign_commands_;
  std::vector<std::string> names_;
  std::vector<std::string> benign_names_;
  model::Batch batch_;
  std::array<unsigned, kSources.size()> seen_{};
};

TEST(OutsideText, BreaksOutOfNoSink) {
  Fuzzer(number_of("SSDPULSE_TEST_SEED", 1)).run(long_tier() ? 1'000'000 : 10'000);
}

TEST(OutsideText, IsComparedButNotShown) {
  const OutsideText text("a\n\xff");
  EXPECT_EQ(text, "a\n\xff");
  EXPECT_NE(text, OutsideText("a"));
  EXPECT_TRUE(std::set<OutsideText>{text}.contains("a\n\xff"));
  EXPECT_EQ(text.raw().size(), 3U);
}

TEST(OutsideText, OfOneByteIsNeverAnothersAsALabel) {
  std::set<std::string> labels;
  std::set<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) {
    texts.insert(std::string(1, static_cast<char>(byte)));
    texts.insert("\xef\xbf\xbd" + fmt::format("{:02x}", byte));
    texts.insert("\xef\xbf\xbd" + std::string(1, static_cast<char>(byte)));
  }
  for (const std::string& text : texts) {
    labels.insert(util::for_label(text));
    EXPECT_TRUE(is_calm(util::for_label(text)));
    EXPECT_EQ(util::for_history(text), util::for_label(text));
  }
  EXPECT_EQ(labels.size(), texts.size());
}

TEST(OutsideText, PaddingIsOnlyAtTheEnds) {
  EXPECT_EQ(util::without_padding(""), "");
  EXPECT_EQ(util::without_padding("   "), "");
  EXPECT_EQ(util::without_padding(std::string_view("\0\0 \t\n", 5)), "");
  EXPECT_EQ(util::without_padding(std::string_view(" a b \0\0", 7)), "a b");
  EXPECT_EQ(util::without_padding(std::string_view("a\0b", 3)), std::string_view("a\0b", 3));
}

TEST(OutsideText, OrdinaryTextStaysAsItIs) {
  const OutsideText name("/srv/Größe a-b_c.d@e:f%+=");
  EXPECT_EQ(util::for_json(name), name.raw());
  EXPECT_EQ(util::for_label(name), name.raw());
  EXPECT_EQ(util::for_history(name), name.raw());
  EXPECT_EQ(util::for_html("a & <b>"), "a &amp; &lt;b&gt;");
  EXPECT_EQ(util::for_markdown("a_b|c"), "a\\_b\\|c");
  EXPECT_EQ(util::for_terminal("a\\b \"c\""), "a\\b \"c\"");
  EXPECT_EQ(util::for_log("  a \"b\"\\ "), "a ?b??");
  EXPECT_EQ(util::for_json(std::string(200, 'a')), std::string(128, 'a') + "…");
  EXPECT_EQ(util::for_log(std::string(200, 'a')), std::string(125, 'a') + "...");
  EXPECT_TRUE(util::is_plain_name("nvme0n1"));
  EXPECT_TRUE(util::is_plain_name("cciss!c0d0"));
  EXPECT_TRUE(util::is_plain_name("foo\\x2dbar.service"));
  for (const char* bad : {"", "a b", "a\"b", "a`b", "a'b", "a\n", "\xc3\xa4", "a\x7f"}) {
    EXPECT_FALSE(util::is_plain_name(bad)) << bad;
  }
}

}  // namespace
}  // namespace ssdpulse
