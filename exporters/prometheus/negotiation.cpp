// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/negotiation.h"

#include "exporters/coding/accept.h"

namespace ssdpulse::exposition {
namespace {

using Item = coding::AcceptItem;

bool is_protobuf(const Item& item) {
  return item.name == "application/vnd.google.protobuf" &&
         item.parameter("proto") == "io.prometheus.client.MetricFamily" && item.parameter("encoding") == "delimited";
}

bool is_text(const Item& item) {
  const auto version = item.parameter("version");
  return item.name == "text/plain" && (version.empty() || version == "0.0.4");
}

}  // namespace

Format choose_format(std::string_view accept, bool native_alone) {
  const auto items = coding::parse_accept(accept);
  const auto protobuf = coding::quality_of(items, is_protobuf).value_or(0);
  // The most specific range that matches decides.
  auto text = coding::quality_of(items, is_text);
  if (!text) {
    text = coding::quality_of(items, coding::named("text/*"));
  }
  if (!text) {
    text = coding::quality_of(items, coding::named("*/*"));
  }
  if (protobuf <= 0 || protobuf < text.value_or(0)) {
    return Format::text;
  }
  return native_alone ? Format::native_protobuf : Format::protobuf;
}

}  // namespace ssdpulse::exposition
