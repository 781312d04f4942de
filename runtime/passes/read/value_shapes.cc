#include "runtime/passes/read/value_shapes.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::Status ValueShapes::MoveTo(const Sizes& axes) {
  Binding binding = base_;
  for (const auto& [symbol, size] : axes) binding.axes[symbol] = size;
  if (sizes_.has_value()) {
    sizes_->Move(binding.axes);
    if (sizes_->InRegion()) return absl::OkStatus();
  }
  sizes_.reset();
  ASSIGN_OR_RETURN(reading_, ReadSizes(graph_, binding));
  sizes_.emplace(*reading_->table, binding.axes);
  return absl::OkStatus();
}

absl::StatusOr<ValueShapes::Shapes> ValueShapes::At(const Sizes& axes) {
  RETURN_IF_ERROR(MoveTo(axes));
  Shapes shapes(reading_->values.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::optional<SizeList>& read = reading_->values[i].shape;
    if (!read.has_value()) continue;
    Shape& shape = shapes[i].emplace();
    for (const Size size : *read) {
      const std::optional<int64_t> number = sizes_->At(size);
      if (!number.has_value()) return absl::InvalidArgumentError("a size overflows");
      shape.push_back(*number);
    }
  }
  return shapes;
}

int64_t ValueShapes::BytesOf(ValueId id) {
  if (id == kNone || !Read(id).shape.has_value()) return 0;
  const Value::Kind kind = graph_.value(id).kind;
  if (kind == Value::Kind::kConstant || kind == Value::Kind::kParameter) return 0;
  auto bytes = static_cast<int64_t>(DTypeSize(Read(id).dtype));
  for (const Size size : *Read(id).shape) {
    bytes =
        SaturatingProduct(bytes, sizes_->At(size).value_or(std::numeric_limits<int64_t>::max()));
  }
  return bytes;
}

absl::Status ValueShapes::Takes(const Sizes& axes, const SpecializeOptions& options) {
  RETURN_IF_ERROR(MoveTo(axes));
  const auto check = [&](ValueId id, absl::string_view owner) {
    const int64_t limit = Read(id).determined
                              ? std::min(options.max_folded_bytes, options.max_value_bytes)
                              : options.max_value_bytes;
    const int64_t bytes = BytesOf(id);
    if (bytes <= limit) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(owner, ": value '", graph_.value(id).name,
                                                     "' needs ", bytes, " bytes, the limit is ",
                                                     limit));
  };
  for (const ValueId input : graph_.inputs()) RETURN_IF_ERROR(check(input, "input"));
  for (const NodeId id : graph_.NodeIds()) {
    const Node& node = graph_.node(id);
    for (const ValueId output : node.outputs) {
      if (output != kNone) RETURN_IF_ERROR(check(output, NodeLabel(node)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueShapes::Bytes> ValueShapes::BytesAt(const Sizes& axes) {
  RETURN_IF_ERROR(MoveTo(axes));
  Bytes bytes = {.reads_beyond = reading_->reads_beyond};
  const auto is_table = [&](ValueId id) { return id != kNone && Read(id).determined; };
  for (const ValueId input : graph_.inputs()) bytes.all = SaturatingSum(bytes.all, BytesOf(input));
  for (const NodeId id : graph_.NodeIds()) {
    int64_t together = 0;
    for (const ValueId output : graph_.node(id).outputs) {
      const int64_t own = BytesOf(output);
      if (is_table(output)) {
        bytes.largest_table = std::max(bytes.largest_table, own);
      } else {
        bytes.all = SaturatingSum(bytes.all, own);
        together = SaturatingSum(together, own);
      }
    }
    for (const ValueId input : graph_.node(id).inputs) {
      if (together > 0 && !is_table(input)) together = SaturatingSum(together, BytesOf(input));
    }
    bytes.largest_node = std::max(bytes.largest_node, together);
  }
  return bytes;
}

}  // namespace reprise
