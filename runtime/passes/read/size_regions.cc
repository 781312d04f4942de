#include "runtime/passes/read/size_regions.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/extent.h"

namespace reprise {

absl::StatusOr<SizeRegions::Region*> SizeRegions::At(const std::map<std::string, int64_t>& axes) {
  Binding binding = base_;
  for (const auto& [symbol, size] : axes) binding.axes[symbol] = size;
  for (auto region = regions_.begin(); region != regions_.end(); ++region) {
    (*region)->sizes.Move(binding.axes);
    if (!(*region)->sizes.InRegion()) continue;
    std::rotate(regions_.begin(), region, region + 1);
    return regions_.front().get();
  }
  if (num_read_ >= most_) {
    too_many_ = absl::StrCat("sizes decide among more than ", most_, " graphs");
  } else if (evaluated_ > kMostEvaluated) {
    too_many_ = "sizes decide by large tables that no term says";
  }
  if (has_too_many()) return absl::ResourceExhaustedError(too_many_);
  SizeReading reading{.table = std::make_unique<SizeTable>()};
  if (absl::Status read = ReadSizes(graph_, binding, reading); !read.ok()) {
    if (!absl::IsResourceExhausted(read)) Refuse(std::move(reading.table), binding);
    return read;
  }
  ++num_read_;
  evaluated_ += reading.evaluated;
  if (on_read_ != nullptr) on_read_(reading);
  absl::Status status;
  if (reading.reads_beyond) {
    status = absl::InvalidArgumentError(
        absl::StrCat("the model reads at a known place that is not there at ", binding.ToString()));
  }
  std::vector<Output> outputs;
  for (const ValueId id : reading.outputs) {
    SizeReading::Value& value = reading.values[static_cast<size_t>(id)];
    outputs.push_back({.dtype = value.dtype, .shape = *value.shape});
  }
  std::unique_ptr<const SizeTable> table = std::move(reading.table);
  SizeEvaluator sizes(*table, binding.axes);
  if (regions_.size() == kMost) regions_.pop_back();
  regions_.insert(regions_.begin(), std::make_unique<Region>(Region{.status = std::move(status),
                                                                    .table = std::move(table),
                                                                    .outputs = std::move(outputs),
                                                                    .sizes = std::move(sizes)}));
  return regions_.front().get();
}

void SizeRegions::Refuse(std::unique_ptr<const SizeTable> table, const Binding& binding) {
  SizeEvaluator sizes(*table, binding.axes);
  if (refused_.size() == kMost) refused_.pop_front();
  refused_.push_back({.table = std::move(table), .sizes = std::move(sizes)});
}

SizeRegions::Refused* SizeRegions::RefusedAt(const Binding& binding) {
  for (auto refused = refused_.rbegin(); refused != refused_.rend(); ++refused) {
    refused->sizes.Move(binding.axes);
    if (refused->sizes.InRegion()) return &*refused;
  }
  return nullptr;
}

bool SizeRegions::IsRefused(const std::map<std::string, int64_t>& axes) {
  Binding binding = base_;
  for (const auto& [symbol, size] : axes) binding.axes[symbol] = size;
  return RefusedAt(binding) != nullptr;
}

int64_t SizeRegions::EndAlong(const std::string& symbol, int64_t size, int64_t largest,
                              int64_t step) {
  Binding binding = base_;
  binding.axes[symbol] = size;
  SizeEvaluator* sizes = nullptr;
  if (!regions_.empty()) {
    SizeEvaluator& latest = regions_.front()->sizes;
    latest.Move(binding.axes);
    if (latest.InRegion()) sizes = &latest;
  }
  if (sizes == nullptr) {
    if (Refused* refused = RefusedAt(binding); refused != nullptr) sizes = &refused->sizes;
  }
  const int64_t end = sizes == nullptr ? size + 1 : sizes->EndAlong(symbol);
  if (end <= size + step) return After(symbol, size, largest, step);
  return end > largest ? largest + 1 : RoundUpTo(end, step);
}

absl::Status SizeRegions::Takes(const std::map<std::string, int64_t>& axes) {
  absl::Status status = At(axes).status();
  if (!has_too_many() || !absl::IsResourceExhausted(status)) return status;
  Binding binding = base_;
  for (const auto& [symbol, size] : axes) binding.axes[symbol] = size;
  return ReadSizes(graph_, binding).status();
}

absl::StatusOr<std::vector<Shape>> SizeRegions::ShapesAt(
    const std::map<std::string, int64_t>& axes) {
  ASSIGN_OR_RETURN(Region* const region, At(axes));
  RETURN_IF_ERROR(region->status);
  std::vector<Shape> shapes;
  for (const Output& output : region->outputs) {
    Shape& shape = shapes.emplace_back();
    for (const Size size : output.shape) {
      const std::optional<int64_t> number = region->sizes.At(size);
      if (!number.has_value()) return absl::InvalidArgumentError("a size of an output overflows");
      shape.push_back(*number);
    }
  }
  return shapes;
}

std::vector<SizeRegions::Boundary> SizeRegions::BoundariesAlong(const std::string& symbol,
                                                                int64_t smallest, int64_t largest,
                                                                int64_t step, size_t most) {
  std::vector<Boundary> boundaries;
  const Region* before = nullptr;
  for (int64_t size = smallest; size <= largest && boundaries.size() < most;
       size = EndAlong(symbol, size, largest, step)) {
    if (IsRefused({{symbol, size}})) {
      before = nullptr;
      continue;
    }
    const absl::StatusOr<Region*> here = At({{symbol, size}});
    if (!here.ok()) {
      if (has_too_many()) break;
      before = nullptr;
      continue;
    }
    const bool is_other = before != nullptr && *here != before;
    if (is_other) boundaries.push_back({.from = size, .node = NodeThatEnds(*before, symbol, size)});
    before = *here;
  }
  return boundaries;
}

NodeId SizeRegions::NodeThatEnds(const Region& region, const std::string& symbol,
                                 int64_t size) const {
  Binding binding = base_;
  binding.axes[symbol] = size;
  SizeEvaluator sizes(*region.table, binding.axes);
  for (const Guard& guard : region.table->guards()) {
    const std::optional<int64_t> number = sizes.At(guard.form);
    if (!number.has_value() || !guard.HoldsFor(*number)) return static_cast<NodeId>(guard.origin);
  }
  return kNone;
}

int64_t SizeRegions::After(const std::string& symbol, int64_t size, int64_t largest,
                           int64_t step) const {
  if (size < kMostWalked) return size + step;
  int64_t next = RoundUpTo(size + size / 8, step);
  if (size < largest && next > largest) next = RoundUpTo(largest, step);
  for (const auto& region : regions_) {
    for (const Guard& guard : region->table->guards()) {
      // Where each size has a region of its own, they would lead to all of them.
      if (guard.relation == Guard::Relation::kEqual) continue;
      const Term& form = *guard.form.term();
      if (form.kind != TermKind::kSymbol ||
          region->table->symbols()[static_cast<size_t>(form.number)] != symbol) {
        continue;
      }
      for (const int64_t end : {guard.number, guard.number + 1}) {
        const int64_t there = RoundUpTo(end, step);
        if (there > size && there < next) next = there;
      }
    }
  }
  return next;
}

}  // namespace reprise
