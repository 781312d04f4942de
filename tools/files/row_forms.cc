#include "tools/files/row_forms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/op.h"
#include "tools/files/node_maker.h"
#include "tools/files/suppression_form.h"

namespace reprise::cli {
namespace {

using onnx::NodeProto;

// Rounds of NonMaxSuppression are some twenty nodes each.
constexpr int64_t kMostBoxes = 128;

// A value with all rows.
struct Rows {
  std::string name;  // the new value's
  int dim = 0;       // that the rows lie along
  int rank = 0;
  int64_t last = -1;  // size of the last dim; -1: not known
};

// Returns whether rows of results depend on the same rows of all operands.
bool IsElementwise(const std::string& op) {
  const OpRow* const row = FindOp(op);
  return op == "Cast" || op == "Identity" || (row != nullptr && row->Has(kElementwise));
}

absl::Status NoForm(const NodeProto& node, const std::string& why) {
  return absl::UnimplementedError(absl::StrCat("no rewrite is known where ", node.op_type(), " '",
                                               node.name().empty() ? node.output(0) : node.name(),
                                               "' ", why));
}

class RowRewriter {
 public:
  RowRewriter(const RowFormOptions& options, onnx::ModelProto& model)
      : options_(options), graph_(*model.mutable_graph()), maker_(model) {}

  absl::StatusOr<std::vector<MaskedOutput>> Run(const std::string& value) {
    for (int i = 0; i < graph_.node_size(); ++i) {
      const NodeProto& node = graph_.node(i);
      if (node.output_size() == 0 || node.output(0) != value) continue;
      maker_.SetPrefix(node.name().empty() ? value : node.name());
      RETURN_IF_ERROR(node.op_type() == "TopK" ? StartTopK(node) : StartSuppression(node));
      replaced_[i] = maker_.TakeNodes();
      for (int k = i + 1; k < graph_.node_size(); ++k) RETURN_IF_ERROR(Follow(k));
      RETURN_IF_ERROR(EndOutputs());
      Replace();
      return std::move(outputs_);
    }
    return absl::NotFoundError(absl::StrCat("no node makes '", value, "'"));
  }

 private:
  // ---- The two nodes that begin.

  absl::Status StartTopK(const NodeProto& node) {
    if (IntAttribute(node, "sorted", 1) == 0) return NoForm(node, "does not sort");
    ASSIGN_OR_RETURN(const int rank, options_.rank(node.input(0)));
    const int64_t given = IntAttribute(node, "axis", -1);
    const int axis = static_cast<int>(given < 0 ? given + rank : given);
    const std::string shape = maker_.Add("Shape", {node.input(0)});
    const std::string all = maker_.Add("Gather", {shape, maker_.Ints({axis})});
    const std::string values = maker_.Add("TopK", {node.input(0), all}, /*outputs=*/2);
    maker_.SetInt("axis", axis);
    maker_.SetInt("largest", IntAttribute(node, "largest", 1));
    const std::string count = maker_.Add("Reshape", {all, maker_.Ints({})});
    const std::string places = maker_.Range(count);
    mask_ = maker_.Add("Less", {places, node.input(1)});
    rows_[node.output(0)] = {.name = values, .dim = axis, .rank = rank};
    if (node.output_size() > 1) {
      rows_[node.output(1)] = {.name = maker_.OutputOf(values, 1), .dim = axis, .rank = rank};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> MostBoxes(const NodeProto& node) const {
    std::optional<std::vector<int64_t>> most;
    if (node.input_size() > 2 && !node.input(2).empty()) most = ReadInts(graph_, node.input(2));
    int64_t boxes = most.has_value() && most->size() == 1 ? (*most)[0] : 0;
    if (options_.most_boxes > 0) {
      boxes = boxes > 0 ? std::min(boxes, options_.most_boxes) : options_.most_boxes;
    }
    if (boxes <= 0) {
      return NoForm(node, "has no constant max_output_boxes_per_class (give one by --most-boxes)");
    }
    if (boxes > kMostBoxes) {
      return NoForm(node, absl::StrCat("may find ", boxes, " boxes, and forms are written for at ",
                                       "most ", kMostBoxes, " (fewer by --most-boxes)"));
    }
    return boxes;
  }

  absl::Status StartSuppression(const NodeProto& node) {
    ASSIGN_OR_RETURN(const int64_t rounds, MostBoxes(node));
    const FoundBoxes found = MakeSuppression(node, rounds, maker_);
    mask_ = found.mask;
    rows_[node.output(0)] = {.name = found.rows, .dim = 0, .rank = 2, .last = 3};
    return absl::OkStatus();
  }

  // ---- The nodes that read the rows.

  absl::Status Follow(int i) {
    const NodeProto& node = graph_.node(i);
    if (!absl::c_any_of(node.input(), [&](const auto& in) { return rows_.contains(in); })) {
      return absl::OkStatus();
    }
    const std::string& op = node.op_type();
    if (NeutralOf(op).has_value() && rows_.contains(node.input(0))) return FollowReduction(i);
    Rows result;
    if (IsElementwise(op)) {
      RETURN_IF_ERROR(FollowElementwise(node, result));
    } else if (op == "Gather") {
      RETURN_IF_ERROR(FollowGather(node, result));
    } else if (op == "GatherND") {
      RETURN_IF_ERROR(FollowGatherND(node, result));
    } else if (op == "MatMul" || op == "Gemm") {
      RETURN_IF_ERROR(FollowProduct(node, result));
    } else {
      RETURN_IF_ERROR(FollowView(node, result));
    }
    NodeProto copy = node;
    for (std::string& input : *copy.mutable_input()) {
      if (const auto it = rows_.find(input); it != rows_.end()) input = it->second.name;
    }
    for (std::string& output : *copy.mutable_output()) {
      if (output.empty()) continue;
      const std::string was = output;
      output = maker_.Unique(absl::StrCat(was, ".all"));
      result.name = output;
      rows_[was] = result;
    }
    replaced_[i] = {std::move(copy)};
    return absl::OkStatus();
  }

  absl::Status FollowElementwise(const NodeProto& node, Rows& result) const {
    bool first = true;
    for (const std::string& input : node.input()) {
      if (input.empty()) continue;
      const auto it = rows_.find(input);
      if (it == rows_.end()) {
        if (!HasOneElement(graph_, input)) return NoForm(node, "reads another value with the rows");
        continue;
      }
      if (!first && (it->second.dim != result.dim || it->second.rank != result.rank)) {
        return NoForm(node, "joins rows that lie along different dims");
      }
      const int64_t last = first ? it->second.last : -1;
      result = it->second;
      result.last = last;
      first = false;
    }
    return absl::OkStatus();
  }

  absl::Status FollowGather(const NodeProto& node, Rows& result) const {
    const auto data = rows_.find(node.input(0));
    const auto indices = rows_.find(node.input(1));
    int64_t axis = IntAttribute(node, "axis", 0);
    if (data != rows_.end()) {
      const std::optional<std::vector<int64_t>> picked = ReadInts(graph_, node.input(1));
      const std::optional<int> rank = RankOfConstant(graph_, node.input(1));
      if (!picked.has_value() || !rank.has_value())
        return NoForm(node, "picks by data from the rows");
      if (axis < 0) axis += data->second.rank;
      if (axis == data->second.dim) return NoForm(node, "picks some of the rows");
      result = data->second;
      result.rank += *rank - 1;
      if (result.dim > axis) result.dim += *rank - 1;
      if (axis == data->second.rank - 1) {
        result.last = *rank == 1 ? static_cast<int64_t>(picked->size()) : -1;
      }
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const int rank, options_.rank(node.input(0)));
    if (axis < 0) axis += rank;
    result = {.dim = static_cast<int>(axis) + indices->second.dim,
              .rank = rank - 1 + indices->second.rank};
    return absl::OkStatus();
  }

  absl::Status FollowGatherND(const NodeProto& node, Rows& result) const {
    const auto indices = rows_.find(node.input(1));
    if (indices == rows_.end() || rows_.contains(node.input(0)) ||
        IntAttribute(node, "batch_dims", 0) != 0 || indices->second.last < 0 ||
        indices->second.dim >= indices->second.rank - 1) {
      return NoForm(node, "looks the rows up in a way that is not known");
    }
    ASSIGN_OR_RETURN(const int rank, options_.rank(node.input(0)));
    result = {.dim = indices->second.dim,
              .rank = indices->second.rank - 1 + rank - static_cast<int>(indices->second.last)};
    return absl::OkStatus();
  }

  absl::Status FollowProduct(const NodeProto& node, Rows& result) const {
    const auto rows = rows_.find(node.input(0));
    const bool alone = absl::c_count_if(node.input(), [&](const auto& input) {
                         return rows_.contains(input);
                       }) == 1;
    if (rows == rows_.end() || !alone || rows->second.dim >= rows->second.rank - 1 ||
        IntAttribute(node, "transA", 0) != 0) {
      return NoForm(node, "multiplies along the rows");
    }
    ASSIGN_OR_RETURN(const int rank, options_.rank(node.input(1)));
    if (rank != 2) return NoForm(node, "multiplies by more than one matrix");
    for (int i = 2; i < node.input_size(); ++i) {
      ASSIGN_OR_RETURN(const int bias, options_.rank(node.input(i)));
      if (bias > 1) return NoForm(node, "adds a matrix");
    }
    result = rows->second;
    result.last = -1;
    return absl::OkStatus();
  }

  // Follows nodes that only name, cut or join dims other than the rows' dim.
  absl::Status FollowView(const NodeProto& node, Rows& result) const {
    const std::string& op = node.op_type();
    const auto it = rows_.find(node.input(0));
    if (it == rows_.end()) return NoForm(node, "reads the rows in a way that is not known");
    result = it->second;
    for (const std::string& input : node.input()) {
      if (op != "Concat" && input != node.input(0) && rows_.contains(input)) {
        return NoForm(node, "reads its sizes from the rows");
      }
    }
    if (op == "Transpose") {
      std::vector<int64_t> perm = IntsAttribute(node, "perm");
      for (int i = result.rank - 1; perm.empty() && i >= 0; --i) perm.push_back(i);
      if (static_cast<int>(perm.size()) != result.rank) return NoForm(node, "has another rank");
      result.dim = static_cast<int>(absl::c_find(perm, result.dim) - perm.begin());
      result.last = -1;
      return absl::OkStatus();
    }
    if (op == "Squeeze" || op == "Unsqueeze") return FollowSqueeze(node, result);
    if (op == "Reshape") return FollowReshape(node, result);
    if (op == "Slice" && node.input_size() > 3) {
      const auto axes = ReadInts(graph_, node.input(3));
      if (!axes.has_value()) return NoForm(node, "cuts along dims that data name");
      for (int64_t axis : *axes) {
        if ((axis < 0 ? axis + result.rank : axis) == result.dim)
          return NoForm(node, "cuts the rows");
      }
      result.last = -1;
      return absl::OkStatus();
    }
    if (op == "Split" || op == "Concat") {
      int64_t axis = IntAttribute(node, "axis", 0);
      if (axis < 0) axis += result.rank;
      if (axis == result.dim) return NoForm(node, "divides or joins the rows");
      for (const std::string& input : node.input()) {
        const auto other = rows_.find(input);
        if (op == "Split") break;
        if (other == rows_.end() || other->second.dim != result.dim ||
            other->second.rank != result.rank) {
          return NoForm(node, "joins the rows with something else");
        }
      }
      result.last = -1;
      return absl::OkStatus();
    }
    return NoForm(node, "reads the rows in a way that is not known");
  }

  absl::Status FollowSqueeze(const NodeProto& node, Rows& result) const {
    std::vector<int64_t> axes = IntsAttribute(node, "axes");
    if (node.input_size() > 1) {
      const auto read = ReadInts(graph_, node.input(1));
      if (read.has_value()) axes = *read;
    }
    if (axes.empty()) return NoForm(node, "names no dims");
    const bool adds = node.op_type() == "Unsqueeze";
    const int rank = result.rank + (adds ? static_cast<int>(axes.size()) : 0);
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
    absl::c_sort(axes);
    if (!adds && absl::c_linear_search(axes, result.dim)) return NoForm(node, "removes the rows");
    if (absl::c_linear_search(axes, rank - 1)) result.last = adds ? 1 : -1;
    for (const int64_t axis : axes) {
      if (adds && axis <= result.dim) ++result.dim;
    }
    if (!adds) {
      result.dim -=
          static_cast<int>(absl::c_count_if(axes, [&](int64_t axis) { return axis < result.dim; }));
    }
    result.rank = adds ? rank : result.rank - static_cast<int>(axes.size());
    return absl::OkStatus();
  }

  // Turns one column into a list, which stays one.
  absl::Status FollowReshape(const NodeProto& node, Rows& result) const {
    const auto shape = ReadInts(graph_, node.input(1));
    const bool column = result.dim == 0 && result.rank == 2 && result.last == 1;
    const bool list = result.dim == 0 && result.rank == 1;
    if (!shape.has_value() || shape->empty() || (*shape)[0] != -1 || !(column || list)) {
      return NoForm(node, "puts the rows into another shape");
    }
    if (absl::c_any_of(absl::MakeConstSpan(*shape).subspan(1),
                       [](int64_t size) { return size != 1; })) {
      return NoForm(node, "puts the rows into another shape");
    }
    result.rank = static_cast<int>(shape->size());
    result.last = result.rank > 1 ? 1 : -1;
    return absl::OkStatus();
  }

  absl::Status FollowReduction(int i) {
    const NodeProto& node = graph_.node(i);
    const Rows& rows = rows_.at(node.input(0));
    std::vector<int64_t> axes = IntsAttribute(node, "axes");
    if (node.input_size() > 1 && !node.input(1).empty()) {
      const auto read = ReadInts(graph_, node.input(1));
      if (!read.has_value()) return NoForm(node, "reduces along dims that data name");
      axes = *read;
    }
    if (axes.empty()) {
      if (IntAttribute(node, "noop_with_empty_axes", 0) != 0)
        return NoForm(node, "reduces nothing");
      for (int axis = 0; axis < rows.rank; ++axis) axes.push_back(axis);
    }
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rows.rank : axis;
    const bool keepdims = IntAttribute(node, "keepdims", 1) != 0;
    if (!absl::c_linear_search(axes, rows.dim)) {
      Rows result = rows;
      if (!keepdims) {
        result.dim -=
            static_cast<int>(absl::c_count_if(axes, [&](int64_t axis) { return axis < rows.dim; }));
        result.rank -= static_cast<int>(axes.size());
      }
      NodeProto copy = node;
      copy.set_input(0, rows.name);
      result.name = maker_.Unique(absl::StrCat(node.output(0), ".all"));
      result.last = -1;
      copy.set_output(0, result.name);
      rows_[node.output(0)] = result;
      replaced_[i] = {std::move(copy)};
      return absl::OkStatus();
    }
    maker_.SetPrefix(node.name().empty() ? node.output(0) : node.name());
    const auto number = [&](float value) { return maker_.Like(value, rows.name); };
    const std::string result =
        maker_.ReduceMasked(node.op_type(), rows.name, Widened(rows), axes, keepdims, number);
    maker_.Rename(result, node.output(0));
    replaced_[i] = maker_.TakeNodes();
    return absl::OkStatus();
  }

  // Returns the mask with ones after the dim of the rows.
  std::string Widened(const Rows& rows) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < rows.rank - rows.dim; ++axis) axes.push_back(axis);
    return axes.empty() ? mask_ : maker_.Unsqueeze(mask_, axes);
  }

  // ---- The end.

  absl::Status EndOutputs() {
    std::vector<std::string> changed;
    for (const auto& output : graph_.output()) {
      if (rows_.contains(output.name())) changed.push_back(output.name());
    }
    if (!changed.empty() && !options_.allow_output_change) {
      return absl::FailedPreconditionError(
          absl::StrCat("its size is the size of output '", changed[0],
                       "', which would change: allow it with --allow-output-change"));
    }
    for (const std::string& name : changed) {
      const Rows& rows = rows_.at(name);
      maker_.SetPrefix(name);
      int dtype = onnx::TensorProto::FLOAT;
      for (const auto& output : graph_.output()) {
        if (output.name() == name) dtype = output.type().tensor_type().elem_type();
      }
      maker_.Rename(maker_.Add("Where", {Widened(rows), rows.name, maker_.Float(0, dtype)}), name);
      const std::string mask = maker_.AddMaskOutput(name, mask_);
      outputs_.push_back({.name = name, .mask = mask, .dim = rows.dim});
    }
    last_ = maker_.TakeNodes();
    return absl::OkStatus();
  }

  void Replace() {
    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const auto it = replaced_.find(i);
      if (it == replaced_.end()) {
        *nodes.Add() = graph_.node(i);
        continue;
      }
      for (const NodeProto& node : it->second) *nodes.Add() = node;
    }
    for (const NodeProto& node : last_) *nodes.Add() = node;
    *graph_.mutable_node() = std::move(nodes);
    auto& infos = *graph_.mutable_value_info();
    infos.erase(std::remove_if(infos.begin(), infos.end(),
                               [&](const auto& info) { return rows_.contains(info.name()); }),
                infos.end());
  }

  const RowFormOptions& options_;
  onnx::GraphProto& graph_;
  NodeMaker maker_;
  std::string mask_;                                // [rows]
  std::map<std::string, Rows> rows_;                // keyed by the names of values that have them
  std::map<int, std::vector<NodeProto>> replaced_;  // keyed by positions of nodes that go
  std::vector<NodeProto> last_;                     // placed after all others
  std::vector<MaskedOutput> outputs_;
};

}  // namespace

bool HangsOnData(const onnx::GraphProto& graph, const std::string& value) {
  std::map<std::string, const NodeProto*> producers;
  for (const NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) producers[output] = &node;
  }
  std::set<std::string> constants;
  for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<std::string> left = {value};
  std::set<std::string> seen;
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (name.empty() || constants.contains(name) || !seen.insert(name).second) continue;
    const auto it = producers.find(name);
    if (it == producers.end()) return true;  // an input
    const std::string& op = it->second->op_type();
    if (op == "Shape" || op == "Size") continue;
    left.insert(left.end(), it->second->input().begin(), it->second->input().end());
  }
  return false;
}

absl::StatusOr<std::vector<MaskedOutput>> ApplyRowForm(const std::string& value,
                                                       const RowFormOptions& options,
                                                       onnx::ModelProto& model) {
  onnx::ModelProto changed = model;
  ASSIGN_OR_RETURN(std::vector<MaskedOutput> outputs, RowRewriter(options, changed).Run(value));
  model = std::move(changed);
  return outputs;
}

}  // namespace reprise::cli
