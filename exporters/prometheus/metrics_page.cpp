// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/metrics_page.h"

#include <array>
#include <map>
#include <utility>

#include "exporters/coding/content_coding.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"

namespace ssdpulse::exposition {

// The pages of one Snapshot.
class MetricsPage::Renderings {
 public:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Body> body;
  };
  struct Selection {
    model::MetricGroups groups;
    bool counted = false;            // its bodies count as held
    std::array<Slot, 3> plain;       // by Format
    std::array<Slot, 3> compressed;  // locked before its plain one, never the other way round
  };

  Renderings(std::shared_ptr<const model::Snapshot> snapshot, std::atomic<std::uint64_t>& count, Held held)
      : snapshot_(std::move(snapshot)), count_(count), held_(std::move(held)) {}

  [[nodiscard]] std::uint64_t number() const { return snapshot_->number; }

  // The pages of one selection of groups; null: too many selections, or they hold too much.
  Selection* select(model::MetricGroups groups, model::MetricGroups usual) {
    const std::lock_guard lock(mutex_);
    const auto found = selections_.find(groups.to_ulong());
    if (found != selections_.end()) {
      return &found->second;
    }
    const bool counted = groups != usual && groups != model::all_metric_groups();
    if (counted && (counted_ == kMaxSelections || *held_ > kMaxBytes)) {
      return nullptr;
    }
    counted_ += counted ? 1 : 0;
    Selection& selection = selections_[groups.to_ulong()];
    selection.groups = groups;
    selection.counted = counted;
    return &selection;
  }

  std::shared_ptr<const Body> plain(Selection& selection, Format format) {
    return once(selection, selection.plain[static_cast<std::size_t>(format)], [&] {
      const auto families = collect(*snapshot_, selection.groups);
      if (format == Format::text) {
        return Body{kTextContentType, "", render_text(families)};
      }
      const auto buckets = format == Format::protobuf ? Buckets::native_and_classic : Buckets::native;
      return Body{kProtobufContentType, "", render_protobuf(families, buckets)};
    });
  }

  std::shared_ptr<const Body> compressed(Selection& selection, Format format) {
    return once(selection, selection.compressed[static_cast<std::size_t>(format)], [&] {
      const auto body = plain(selection, format);
      auto bytes = coding::gzip(body->bytes);
      return bytes ? Body{body->content_type, "gzip", std::move(*bytes)} : *body;
    });
  }

 private:
  template <typename Render>
  std::shared_ptr<const Body> once(const Selection& selection, Slot& slot, Render render) {
    const std::lock_guard lock(slot.mutex);
    if (!slot.body) {
      slot.body = selection.counted ? counted(render()) : std::make_shared<const Body>(render());
      ++count_;
    }
    return slot.body;
  }

  // Its bytes count until the last client has received them.
  std::shared_ptr<const Body> counted(Body body) {
    const std::size_t bytes = body.bytes.size();
    *held_ += bytes;
    return {new Body(std::move(body)), [held = held_, bytes](const Body* gone) {
              delete gone;
              *held -= bytes;
            }};
  }

  const std::shared_ptr<const model::Snapshot> snapshot_;
  std::atomic<std::uint64_t>& count_;
  const Held held_;
  std::mutex mutex_;  // protects the two below; never held while rendering
  std::size_t counted_ = 0;
  std::map<unsigned long, Selection> selections_;
};

MetricsPage::MetricsPage(model::MetricGroups usual) : usual_(usual) {}
MetricsPage::~MetricsPage() = default;

std::shared_ptr<MetricsPage::Renderings> MetricsPage::of(const std::shared_ptr<const model::Snapshot>& snapshot) {
  const std::lock_guard lock(mutex_);
  if (!current_ || current_->number() < snapshot->number) {
    current_ = std::make_shared<Renderings>(snapshot, count_, held_);
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
  return coding::prefers_gzip(accept_encoding) ? renderings->compressed(*selection, format)
                                               : renderings->plain(*selection, format);
}

std::uint64_t MetricsPage::renderings() const { return count_; }

}  // namespace ssdpulse::exposition
