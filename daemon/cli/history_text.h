// SPDX-License-Identifier: Apache-2.0
// Functions that format the history, for people and for spreadsheets. Pure: answers of /api/v1/history in, text out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ssdpulse::cli {

/// A table of points, then what happened; local time. What was not measured is "-", never 0.
std::string history_text(const nlohmann::json& answer);
/// What each tenant did in each point of time; and the same with exact figures, one line per tenant and point.
std::string history_by_tenant_text(const nlohmann::json& answer);
std::string history_by_tenant_csv(const nlohmann::json& answer);
/// The list of devices, settings that changed, marks.
std::string history_list_text(const nlohmann::json& answer);
/// One line per point, or per device of a list, under a line of names (RFC 4180, but with LF); empty fields were not
/// measured. Times in seconds since the epoch. A text that looks like a formula gets an apostrophe in front.
std::string history_csv(const nlohmann::json& answer);

}  // namespace ssdpulse::cli
