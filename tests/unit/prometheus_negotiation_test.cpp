// SPDX-License-Identifier: Apache-2.0
// Does every client get the format and encoding that it prefers?
#include <gtest/gtest.h>

#include "exporters/coding/content_coding.h"
#include "exporters/prometheus/metric_formats.h"

namespace ssdpulse::exposition {
namespace {

#define PROTOBUF "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

struct AcceptCase {
  const char* accept;
  Format expected;
};

TEST(ChooseFormat, Table) {
  const AcceptCase cases[] = {
      {"", Format::text},
      {"*/*", Format::text},
      {"text/plain", Format::text},
      {"text/html,application/xhtml+xml,*/*;q=0.8", Format::text},
      {"application/json", Format::text},
      {"*/*;q=0", Format::text},
      // What Prometheus sends with native histograms on, and what it sends without.
      {PROTOBUF ";q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
                "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
                "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       Format::protobuf},
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       Format::text},
      // Prometheus 2.42.
      {PROTOBUF ",application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
                "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       Format::protobuf},
      {PROTOBUF, Format::protobuf},
      {PROTOBUF ";q=0", Format::text},
      {PROTOBUF ";q=0,*/*", Format::text},
      {PROTOBUF ";q=0.3,text/plain;q=0.4", Format::text},
      {PROTOBUF ";q=0.4,text/plain;q=0.3", Format::protobuf},
      {PROTOBUF ";q=0.4,text/plain;q=0.4", Format::protobuf},
      {PROTOBUF ";q=0.1,text/plain;q=0", Format::protobuf},
      // The most specific range decides for text: the wildcard does not overrule q=0.2.
      {PROTOBUF ";q=0.5,text/plain;version=0.0.4;q=0.2,*/*", Format::protobuf},
      {PROTOBUF ";q=0.5,text/*;q=0.9", Format::text},
      {PROTOBUF ";q=0.5,text/*;q=0.3,*/*;q=0.9", Format::protobuf},
      // Another text version is not what we write.
      {PROTOBUF ";q=0.5,text/plain;version=1.0.0;q=0.9", Format::protobuf},
      // Not the protobuf that we write.
      {"application/vnd.google.protobuf", Format::text},
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", Format::text},
      {"application/vnd.google.protobuf;proto=other.Message;encoding=delimited", Format::text},
      {"application/*", Format::text},
      // Spelling.
      {"Application/VND.google.protobuf ; Proto=\"io.prometheus.client.MetricFamily\" ;\tEncoding=delimited ; Q=0.9",
       Format::protobuf},
      {" , ,," PROTOBUF " , ", Format::protobuf},
      {"text/plain;note=\"a,b;q=0\"," PROTOBUF ";q=0.9", Format::text},
      // An invalid quality drops its element.
      {PROTOBUF ";q=high", Format::text},
      {PROTOBUF ";q=1.5,*/*;q=0.1", Format::text},
      {PROTOBUF ";q=-1", Format::text},
      {PROTOBUF ";q=nan", Format::text},
      {PROTOBUF ";q=", Format::text},
      {PROTOBUF ";q", Format::text},
  };
  for (const auto& [accept, expected] : cases) {
    EXPECT_EQ(choose_format(accept), expected) << accept;
  }
}

TEST(PrefersGzip, Table) {
  const std::pair<const char*, bool> cases[] = {
      {"", false},
      {"gzip", true},
      {"GZIP", true},
      {"x-gzip", true},
      {"gzip;q=0", false},
      {"gzip;q=0.001", true},
      {"deflate, gzip;q=1.0, *;q=0.5", true},
      {"deflate, br", false},
      {"identity", false},
      {"*", true},
      {"*;q=0", false},
      {"gzip;q=0,*", false},
      {"identity;q=1, gzip;q=0.5", false},
      {"identity;q=0.5, gzip", true},
      {"gzip, identity", true},
      {"gzip;q=oops", false},
  };
  for (const auto& [header, expected] : cases) {
    EXPECT_EQ(coding::prefers_gzip(header), expected) << header;
  }
}

}  // namespace
}  // namespace ssdpulse::exposition
