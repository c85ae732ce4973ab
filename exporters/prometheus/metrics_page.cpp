// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/metrics_page.h"

#include <array>
#include <map>
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
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Body> body;
  };
  struct Selection {
    std::array<Slot, 3> plain;       // by Format
    std::array<Slot, 3> compressed;  // locked before its plain one, never the other way round
  };

  Renderings(std::shared_ptr<const model::Snapshot> snapshot, std::atomic<std::uint64_t>& count)
      : snapshot_(std::move(snapshot)), count_(count) {}

  [[nodiscard]] std::uint64_t number() const { return snapshot_->number; }

  // The pages of one selection of groups; null: too many selections.
  Selection* select(model::MetricGroups groups, model::MetricGroups usual) {
    const std::lock_guard lock(mutex_);
    const auto found = selections_.find(groups.to_ulong());
    if (found != selections_.end()) {
      return &found->second;
    }
    return selections_.size() >= kMostSelections && groups != usual ? nullptr : &selections_[groups.to_ulong()];
  }

  std::shared_ptr<const Body> plain(Selection& selection, model::MetricGroups groups, Format format) {
    return once(selection.plain[static_cast<std::size_t>(format)], [&] {
      const auto families = collect(*snapshot_, groups);
      if (format == Format::text) {
        return Body{kTextContentType, "", render_text(families)};
      }
      const auto buckets = format == Format::protobuf ? Buckets::native_and_classic : Buckets::native;
      return Body{kProtobufContentType, "", render_protobuf(families, buckets)};
    });
  }

  std::shared_ptr<const Body> compressed(Selection& selection, model::MetricGroups groups, Format format) {
    return once(selection.compressed[static_cast<std::size_t>(format)], [&] {
      const auto body = plain(selection, groups, format);
      auto bytes = coding::gzip(body->bytes);
      return bytes ? Body{body->content_type, "gzip", std::move(*bytes)} : *body;
    });
  }

 private:
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
  std::mutex mutex_;  // of the map alone; never held while rendering
  std::map<unsigned long, Selection> selections_;
};

MetricsPage::MetricsPage(model::MetricGroups usual) : usual_(usual) {}
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
                                             bool native_alone, model::MetricGroups groups) {
  const auto renderings = of(snapshot);
  const auto format = choose_format(accept, native_alone);
  Renderings::Selection* selection = renderings->select(groups, usual_);
  if (selection == nullptr) {
    return nullptr;
  }
  return coding::prefers_gzip(accept_encoding) ? renderings->compressed(*selection, groups, format)
                                               : renderings->plain(*selection, groups, format);
}

std::uint64_t MetricsPage::renderings() const { return count_; }

}  // namespace ssdpulse::exposition
