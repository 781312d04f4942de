#include "server/requests/shape_columns.h"

#include <map>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// Several values are told apart by a number made of all of them.
constexpr uint64_t kValuesMask = (uint64_t{1} << 31) - 1;

}  // namespace

std::vector<std::string> ShapeColumns(const Model& model) {
  std::vector<std::string> names;
  for (const ModelAxis& axis : model.axes()) names.push_back(axis.label);
  if (model.has_shape_inputs()) names.push_back("values of shape inputs");
  return names;
}

std::vector<int64_t> ShapeOf(const Model& model, const RequestShape& shape) {
  std::vector<int64_t> columns = shape.sizes;
  if (!model.has_shape_inputs()) return columns;
  const std::map<std::string, Tensor>& values = shape.shape_inputs;
  if (values.size() == 1 && values.begin()->second.num_elements() == 1) {
    const absl::StatusOr<std::vector<int64_t>> one = values.begin()->second.ToInt64s();
    if (one.ok()) {
      columns.push_back(one->front());
      return columns;
    }
  }
  uint64_t hash = 0;
  for (const auto& [name, value] : values) {
    const absl::string_view bytes(static_cast<const char*>(value.data()), value.bytes());
    hash = absl::HashOf(hash, name, value.shape(), bytes);
  }
  columns.push_back(static_cast<int64_t>(hash & kValuesMask));
  return columns;
}

std::string InputShapeText(const Model& model, const ModelIo& input,
                           const std::vector<int64_t>& columns) {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < model.axes().size(); ++i) sizes[model.axes()[i].symbol] = columns[i];
  if (input.dims.empty()) return "scalar";
  return absl::StrJoin(input.dims, "x", [&](std::string* out, const Dim& dim) {
    const absl::StatusOr<int64_t> size = DimSize(dim, sizes);
    absl::StrAppend(out, size.ok() ? absl::StrCat(*size) : dim.symbol);
  });
}

ShapeService ServiceOf(const Response& response) {
  // A failed precondition: no recipe was ready, and none might be captured.
  if (absl::IsFailedPrecondition(response.status)) return ShapeService::kOutside;
  if (!response.status.ok()) return ShapeService::kReady;
  switch (response.info.capture) {
    case CaptureOutcome::kReplayed:
      return ShapeService::kReady;
    case CaptureOutcome::kLarger:
      return ShapeService::kLarger;
    case CaptureOutcome::kCaptured:
    case CaptureOutcome::kWaited:
    case CaptureOutcome::kEager:
      return ShapeService::kOutside;
  }
  return ShapeService::kReady;
}

}  // namespace reprise
