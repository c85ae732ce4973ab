// SPDX-License-Identifier: Apache-2.0
// Do the audit, the alerts and their runbooks judge what a drive warns of as the one table does?
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "daemon/model/finding.h"
#include "tests/unit/audit_facts.h"

namespace ssdpulse::model {
namespace {

using model::Finding;

const std::string kDeploy = std::string(SSDPULSE_SOURCE_DIR) + "/deploy/";

std::string text_of(const std::string& file) {
  std::ifstream stream(kDeploy + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string without_line_ends(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string severity_of(Verdict verdict) { return verdict == Verdict::danger ? "critical" : "warning"; }

/// Of an alert: from its name to its annotations.
std::string alert(const std::string& name) {
  const std::string rules = text_of("prometheus/rules/alerts.yml");
  const auto at = rules.find("- alert: " + name + "\n");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? "" : rules.substr(at, rules.find("annotations:", at) - at);
}

std::string severity_of(const std::string& rule) {
  std::smatch severity;
  EXPECT_TRUE(std::regex_search(rule, severity, std::regex("severity: ([a-z]+)"))) << rule;
  return severity[1];
}

/// Whether the expression selects this value of `warning`.
bool selects(const std::string& rule, const std::string& warning) {
  std::smatch matcher;
  if (!std::regex_search(rule, matcher, std::regex(R"rx(critical_warning\{warning(!?=)"([a-z_]+)"\})rx"))) {
    return true;
  }
  return (matcher[1] == "=") == (matcher[2] == warning);
}

Finding n10(const std::function<void(tests::MadeUpHost&)>& change) {
  tests::MadeUpHost host;
  change(host);
  for (Finding& finding : advice::judge(host.facts)) {
    if (finding.id == "N10" && finding.device == "nvme0n1") {
      return finding;
    }
  }
  ADD_FAILURE() << "no N10";
  return {};
}

Finding warned_of(std::size_t warning) {
  return n10([&](tests::MadeUpHost& host) { host.measured_drive().warnings[warning] = 1; });
}

/// By its place in the table.
std::size_t number_of(std::string_view label) {
  const auto& names = advice::kDriveWarningNames;
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), label) - names.begin());
}

TEST(DriveWarnings, TheAuditSaysWhatTheTableSays) {
  for (const DriveWarning& warning : kDriveWarnings) {
    const std::string label(warning.label);
    const Finding finding = warned_of(number_of(label));
    EXPECT_EQ(finding.verdict, warning.condition.verdict) << label;
    EXPECT_EQ(finding.why, warning.condition.meaning);
    EXPECT_EQ(finding.change, warning.condition.advice);
  }
}

TEST(DriveWarnings, AGroupIsJudgedByItsOwnSpareAndLife) {
  const auto judged = [](std::optional<double> spare, double used) {
    return n10([&](tests::MadeUpHost& host) {
      host.measured_drive().endurance_groups = {{1, {1.0, 0.1, 0.1}}, {2, {spare, 0.1, used}}};
    });
  };
  EXPECT_EQ(judged(0.9, 0.1).verdict, Verdict::ok);
  EXPECT_EQ(judged(0.03, 0.1).verdict, Verdict::danger) << "the alert says so, too";
  EXPECT_EQ(judged(0.9, 1.1).verdict, model::kLifeUsedUp.verdict);
  EXPECT_EQ(judged({}, 1.1).verdict, model::kLifeUsedUp.verdict) << "also if it reports no spare";
}

TEST(DriveWarnings, HeatAloneDoesNotReplaceADrive) {
  const Finding finding = warned_of(number_of("temperature"));
  EXPECT_EQ(finding.verdict, Verdict::advise);
  EXPECT_EQ(finding.change.find("replace"), std::string::npos) << finding.change;
}

TEST(DriveWarnings, TheMostUrgentOfSeveralGivesTheAdvice) {
  const Finding finding = n10([](tests::MadeUpHost& host) {
    for (const char* warning : {"temperature", "read_only"}) {
      host.measured_drive().warnings[number_of(warning)] = 1;
    }
    host.measured_drive().media_errors = 3;
  });
  EXPECT_EQ(finding.verdict, Verdict::danger);
  EXPECT_EQ(finding.change, kDriveWarnings[3].condition.advice);
  for (const char* part : {"temperature", "accepts no more writes", "data errors"}) {
    EXPECT_NE(finding.why.find(part), std::string::npos) << part;
  }
}

void use_up(tests::MadeUpHost& host, double used, double spare) {
  host.measured_drive().percentage_used_ratio.reset();
  host.measured_drive().available_spare_ratio.reset();
  host.measured_drive().percentage_used_ratio = used;
  host.measured_drive().available_spare_ratio = spare;
}

TEST(DriveWarnings, AUsedUpLifeIsAgeUntilTheSpareIsGone) {
  const std::string severity = severity_of(kLifeUsedUp.verdict);
  for (const double used : {1.0, 1.5, 2.55}) {
    const Finding finding = n10([&](tests::MadeUpHost& host) { use_up(host, used, 1); });
    EXPECT_EQ(severity_of(finding.verdict), severity) << used;
    EXPECT_EQ(finding.change, kLifeUsedUp.advice);
  }
  EXPECT_EQ(n10([&](tests::MadeUpHost& host) { use_up(host, 1.2, 0.05); }).verdict, Verdict::danger);
  EXPECT_EQ(n10([&](tests::MadeUpHost& host) { use_up(host, 0.99, 1); }).verdict, Verdict::ok);
  EXPECT_EQ(severity_of(alert("SsdpulseDriveWornOut")), severity);
  const std::string page = without_line_ends(text_of("runbooks/SsdpulseDriveWornOut.md"));
  for (const std::string_view part : {kLifeUsedUp.meaning, kLifeUsedUp.advice, std::string_view("full spare")}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

TEST(DriveWarnings, EachBitHasOneAlertOfItsSeverityAndARunbookThatIsTheTable) {
  std::size_t rows = 0;
  for (const std::string name : {"SsdpulseCriticalWarning", "SsdpulseTemperatureWarning"}) {
    const std::string rule = alert(name);
    const std::string page = text_of("runbooks/" + name + ".md");
    for (const DriveWarning& warning : kDriveWarnings) {
      const auto& [verdict, meaning, advice, risk] = warning.condition;
      const std::string row = fmt::format("\n| `{}` | {} | {} |\n", warning.label, severity_of(verdict), meaning);
      const std::string step = fmt::format("\n- `{}`: {}.\n", warning.label, advice);
      const bool selected = selects(rule, std::string(warning.label));
      rows += selected ? 1 : 0;
      EXPECT_EQ(page.find(row) != std::string::npos, selected) << name << row;
      EXPECT_EQ(page.find(step) != std::string::npos, selected) << name << step;
      EXPECT_TRUE(!selected || severity_of(rule) == severity_of(verdict)) << name << " " << warning.label;
    }
  }
  EXPECT_EQ(rows, kDriveWarnings.size());
}

}  // namespace
}  // namespace ssdpulse::model
