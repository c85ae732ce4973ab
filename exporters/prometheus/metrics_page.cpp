// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/metrics_page.h"

#include <array>
#include <utility>

#include "exporters/coding/accept.h"
#include "exporters/coding/gzip.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/negotiation.h"
#include "exporters/prometheus/protobuf_format.h"
#include "exporters/prometheus/text_format.h"

namespace ssdpulse::exposition {

// The pages of one Snapshot.
class MetricsPage::Renderings {
 public:
  Renderings(std::shared_ptr<const model::Snapshot> snapshot, std::atomic<std::uint64_t>& count)
      : snapshot_(std::move(snapshot)), count_(count) {}

  [[nodiscard]] std::uint64_t number() const { return snapshot_->number; }

  std::shared_ptr<const Body> plain(Format format) {
    return once(plain_[static_cast<std::size_t>(format)], [&] {
      const auto families = collect(*snapshot_);
      if (format == Format::text) {
        return Body{kTextContentType, "", render_text(families)};
      }
      const auto buckets = format == Format::protobuf ? Buckets::native_and_classic : Buckets::native;
      return Body{kProtobufContentType, "", render_protobuf(families, buckets)};
    });
  }

  std::shared_ptr<const Body> compressed(Format format) {
    return once(compressed_[static_cast<std::size_t>(format)], [&] {
      const auto body = plain(format);
      auto bytes = coding::gzip(body->bytes);
      return bytes ? Body{body->content_type, "gzip", std::move(*bytes)} : *body;
    });
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Body> body;
  };

  template <typename Render>
  std::shared_ptr<const Body> once(Slot& slot, Render render) {
    const std::lock_guard lock(slot.mutex);
    if (!slot.body) {
      slot.body = std::make_shared<const Body>(render());
      ++count_;
    }
    return slot.body;
  }

  const std::shared_ptr<const model::Snapshot> snapshot_;
  std::atomic<std::uint64_t>& count_;
  std::array<Slot, 3> plain_;       // by Format
  std::array<Slot, 3> compressed_;  // locked before its plain one, never the other way round
};

MetricsPage::MetricsPage() = default;
MetricsPage::~MetricsPage() = default;

std::shared_ptr<MetricsPage::Renderings> MetricsPage::of(const std::shared_ptr<const model::Snapshot>& snapshot) {
  const std::lock_guard lock(mutex_);
  if (!current_ || current_->number() < snapshot->number) {
    current_ = std::make_shared<Renderings>(snapshot, count_);
  }
  return current_;
}

std::shared_ptr<const Body> MetricsPage::get(const std::shared_ptr<const model::Snapshot>& snapshot,
                                             std::string_view accept, std::string_view accept_encoding,
                                             bool native_alone) {
  const auto renderings = of(snapshot);
  const auto format = choose_format(accept, native_alone);
  return coding::prefers_gzip(accept_encoding) ? renderings->compressed(format) : renderings->plain(format);
}

std::uint64_t MetricsPage::renderings() const { return count_; }

}  // namespace ssdpulse::exposition
