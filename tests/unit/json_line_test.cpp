// SPDX-License-Identifier: Apache-2.0
// Is a log line one JSON object with separate fields, whatever bytes it holds?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/base/log_output.h"

namespace ssdpulse {
namespace {

using namespace std::chrono_literals;

const std::chrono::system_clock::time_point kTime(1'700'000'000'007ms);

TEST(JsonLine, FieldsAreApart) {
  EXPECT_EQ(log::json_line(kTime, "warning", "device=sda went reason=\"no answer\" device=other",
                           {log::field("device", "sda"), log::quoted("reason", "no answer")}),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"warning",)"
            R"("message":"device=sda went reason=\"no answer\" device=other",)"
            R"("fields":{"device":"sda","reason":"no answer"}})");
  EXPECT_EQ(log::json_line(kTime, "info", "a=b", {}),
            R"({"time":"2023-11-14T22:13:20.007Z","level":"info","message":"a=b"})");
}

TEST(JsonLine, BytesThatAreNotText) {
  const auto line = nlohmann::json::parse(log::json_line(kTime, "info", "a\xff\n\"b", {log::field("comm", "\xff")}));
  EXPECT_EQ(line["message"], "a\xef\xbf\xbd\n\"b");
  EXPECT_EQ(line["fields"]["comm"], "\xef\xbf\xbd");
}

RC_GTEST_PROP(JsonLine, AnyMessageIsOneLine, (const std::string& message, const std::string& value)) {
  const std::string line = log::json_line(kTime, "info", message, {log::field("one", value)});
  RC_ASSERT(line.find('\n') == std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  RC_ASSERT(parsed.at("level") == "info");
  RC_ASSERT(parsed.at("message").is_string());
  RC_ASSERT(parsed.at("fields").size() == 1U);
}

}  // namespace
}  // namespace ssdpulse
