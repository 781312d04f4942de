#include "tools/files/static_forms.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tools/files/node_maker.h"
#include "tools/files/row_forms.h"

namespace reprise::cli {
namespace {

// f(x) for a value that is not selected goes away, so that it may be anything.
const std::set<std::string>& Elementwise() {
  static const auto* const names = new std::set<std::string>(
      {"Abs", "Add",      "Ceil", "Clip",       "Cos",  "Div",       "Elu",     "Erf",
       "Exp", "Floor",    "Gelu", "Identity",   "Log",  "LeakyRelu", "Max",     "Min",
       "Mul", "Neg",      "Pow",  "Reciprocal", "Relu", "Round",     "Sigmoid", "Sign",
       "Sin", "Softplus", "Sqrt", "Sub",        "Tanh"});
  return *names;
}

class Finder {
 public:
  explicit Finder(const onnx::GraphProto& graph) : graph_(graph) {
    for (int i = 0; i < graph.node_size(); ++i) {
      for (const std::string& input : graph.node(i).input()) users_[input].push_back(i);
    }
    for (const auto& output : graph.output()) outputs_.insert(output.name());
  }

  std::vector<StaticForm> Run() {
    std::vector<StaticForm> forms;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (auto form = FormOf(i)) forms.push_back(*std::move(form));
    }
    return forms;
  }

 private:
  const onnx::NodeProto& node(int i) const { return graph_.node(i); }

  // Returns the only node that reads `value`, or -1.
  int OnlyUser(const std::string& value) const {
    const auto it = users_.find(value);
    if (it == users_.end() || it->second.size() != 1 || outputs_.contains(value)) return -1;
    return it->second[0];
  }

  std::string Label(int i) const {
    const onnx::NodeProto& at = node(i);
    return absl::StrCat(at.op_type(), " '", at.name().empty() ? at.output(0) : at.name(), "'");
  }

  // Records the reader of `value` that no rewrite follows, and returns false.
  bool StopAt(StaticForm& form, const std::string& value) const {
    const auto it = users_.find(value);
    const size_t readers = it == users_.end() ? 0 : it->second.size();
    form.why_not = readers == 1 && !outputs_.contains(value)
                       ? absl::StrCat(Label(it->second[0]), " reads '", value, "'")
                   : readers == 0 ? absl::StrCat("'", value, "' is an output as it is")
                                  : absl::StrCat(readers + (outputs_.contains(value) ? 1 : 0),
                                                 " readers need '", value, "', ",
                                                 Label(it->second[0]), " among them");
    return false;
  }

  std::optional<StaticForm> FormOf(int i) const {
    const onnx::NodeProto& at = node(i);
    const std::string& op = at.op_type();
    if (!at.domain().empty() && at.domain() != "ai.onnx") return std::nullopt;
    StaticForm form = {.node = at.name().empty() ? at.output(0) : at.name(), .op = op};
    if (op == "NonZero") {
      if (!MatchNonZero(i, form)) {
        form.words =
            "Where with the mask, and zeros for the other elements; indices are then not needed";
      }
      return form;
    }
    if (op == "Compress") {
      MatchCompress(i, form);
      if (!form.known) form.words = "Where with the condition, in place of the selection";
      return form;
    }
    if (op == "NonMaxSuppression") {
      form.words = "a fixed max_output_boxes_per_class, and a mask of the rounds that found a box";
      form.has_rows = true;
      form.output = at.output(0);
      return form;
    }
    if (op == "TopK" && at.input_size() > 1 && HangsOnData(graph_, at.input(1))) {
      form.words = "TopK of all elements, and a mask of those beyond the real k";
      form.has_rows = true;
      form.output = at.output(0);
      return form;
    }
    if (op == "Unique") {
      form.words = "sorting, and a mask of the elements that differ from the one before";
      return form;
    }
    return std::nullopt;
  }

  // NonZero, then Transpose and GatherND; or for a mask of one dim Squeeze or Reshape and Gather.
  bool MatchNonZero(int i, StaticForm& form) const {
    form.mask = node(i).input(0);
    form.selection = {i};
    int next = OnlyUser(node(i).output(0));
    if (next < 0) return StopAt(form, node(i).output(0));
    const std::string& first = node(next).op_type();
    const bool turns = first == "Transpose";
    if (!turns && first != "Squeeze" && first != "Reshape" && first != "Flatten") {
      return StopAt(form, node(i).output(0));
    }
    form.selection.push_back(next);
    std::string places = node(next).output(0);
    int select = OnlyUser(places);
    // A list of places as one column: Transpose, then Squeeze.
    if (select >= 0 && turns &&
        (node(select).op_type() == "Squeeze" || node(select).op_type() == "Reshape")) {
      form.selection.push_back(select);
      places = node(select).output(0);
      select = OnlyUser(places);
      if (select < 0 || node(select).op_type() != "Gather") return StopAt(form, places);
    }
    if (select < 0) return StopAt(form, places);
    const onnx::NodeProto& selects = node(select);
    if (selects.input_size() < 2 || selects.input(1) != places) return StopAt(form, places);
    const bool by_places =
        selects.op_type() == "GatherND" && turns && IntAttribute(selects, "batch_dims", 0) == 0;
    const bool by_column = selects.op_type() == "Gather" && IntAttribute(selects, "axis", 0) == 0;
    if (!by_places && !by_column) return StopAt(form, places);
    form.selection.push_back(select);
    form.values = selects.input(0);
    return MatchRest(selects.output(0), form);
  }

  void MatchCompress(int i, StaticForm& form) const {
    form.values = node(i).input(0);
    form.mask = node(i).input(1);
    form.selection = {i};
    form.flattens = true;
    for (const auto& attribute : node(i).attribute()) {
      if (attribute.name() != "axis") continue;
      form.flattens = false;
      form.axis = static_cast<int>(attribute.i());
      if (form.axis < 0) {
        form.why_not = "it counts its axis from the end";
        return;
      }
    }
    MatchRest(node(i).output(0), form);
  }

  // From the selected values on: elementwise nodes, then a reduction or an output.
  bool MatchRest(std::string value, StaticForm& form) const {
    while (true) {
      if (outputs_.contains(value)) {
        const auto users = users_.find(value);
        if (users != users_.end() && !users->second.empty()) return StopAt(form, value);
        form.reaches_output = form.known = true;
        form.output = value;
        form.words = "Where, with zeros for the other elements and the mask as a further output";
        return true;
      }
      const int next = OnlyUser(value);
      if (next < 0) return StopAt(form, value);
      const onnx::NodeProto& at = node(next);
      if (NeutralOf(at.op_type()).has_value() && at.input(0) == value) {
        if (at.input_size() > 1 && !at.input(1).empty() &&
            !RankOfConstant(graph_, at.input(1)).has_value()) {
          return StopAt(form, value);
        }
        form.known = true;
        form.reduction = next;
        form.output = at.output(0);
        form.words = absl::StrCat("Where and ", at.op_type());
        return true;
      }
      if (!Elementwise().contains(at.op_type()) || at.output_size() != 1) {
        return StopAt(form, value);
      }
      for (const std::string& input : at.input()) {
        if (input == value || input.empty() || HasOneElement(graph_, input)) continue;
        form.why_not = absl::StrCat(Label(next), " reads '", input, "' with the selected elements");
        return false;
      }
      form.chain.push_back(next);
      value = at.output(0);
    }
  }

  const onnx::GraphProto& graph_;
  absl::flat_hash_map<std::string, std::vector<int>> users_;
  absl::flat_hash_set<std::string> outputs_;
};

class Rewriter {
 public:
  Rewriter(const StaticForm& form, const FormFacts& facts, onnx::ModelProto& model)
      : form_(form), facts_(facts), graph_(*model.mutable_graph()), maker_(model) {
    maker_.SetPrefix(form.node);
  }

  absl::Status Run() {
    if (facts_.dtype != onnx::TensorProto::FLOAT && facts_.dtype != onnx::TensorProto::DOUBLE) {
      return absl::UnimplementedError("only float and double values are rewritten");
    }
    const onnx::NodeProto reduction =
        form_.reduction < 0 ? onnx::NodeProto() : graph_.node(form_.reduction);
    const std::optional<std::vector<int64_t>> axes = ReducedAxes(reduction);
    if (form_.reduction >= 0 && !axes.has_value()) {
      return absl::UnimplementedError(
          absl::StrCat(reduction.op_type(), " '", reduction.name(),
                       "' reduces along other dims than those that are selected"));
    }
    std::string values = form_.values;
    std::string mask = maker_.Add("Cast", {form_.mask});
    maker_.SetInt("to", onnx::TensorProto::BOOL);
    if (form_.flattens) {
      values = maker_.Add("Reshape", {values, maker_.Ints({-1})});
    } else {
      mask = Widen(mask);
    }
    for (const int i : form_.chain) {
      onnx::NodeProto next = graph_.node(i);
      const std::string before = i == form_.chain.front()
                                     ? graph_.node(form_.selection.back()).output(0)
                                     : Renamed(graph_.node(i), form_.chain);
      for (std::string& input : *next.mutable_input()) {
        if (input == before) input = values;
      }
      values = maker_.Unique(absl::StrCat(next.output(0), ".all"));
      next.set_output(0, values);
      maker_.AddCopy(next);
    }
    const auto number = [&](float value) { return maker_.Float(value, facts_.dtype); };
    if (form_.reduction < 0) {
      maker_.Rename(maker_.Add("Where", {mask, values, number(0)}), form_.output);
      maker_.AddMaskOutput(form_.output, mask);
    } else {
      std::string result =
          maker_.ReduceMasked(reduction.op_type(), values, mask, *axes, keepdims_, number);
      if (restores_one_) result = maker_.Add("Reshape", {result, maker_.Ints({1})});
      maker_.Rename(result, form_.output);
    }
    Replace();
    return absl::OkStatus();
  }

 private:
  // Returns which output of the chain node `at` reads: the output of the one before it.
  std::string Renamed(const onnx::NodeProto& at, const std::vector<int>& chain) const {
    for (const int i : chain) {
      for (const std::string& input : at.input()) {
        if (input == graph_.node(i).output(0)) return input;
      }
    }
    return "";
  }

  // Returns the dims of x that a reduction of the selection reduces; nullopt where these are not
  // the ones that the mask covers, at least.
  std::optional<std::vector<int64_t>> ReducedAxes(const onnx::NodeProto& reduction) const {
    if (form_.reduction < 0) return std::vector<int64_t>();
    const bool along = form_.axis >= 0 && !form_.flattens;
    const int rank = form_.flattens ? 1 : facts_.value_rank;
    const int covered = form_.flattens || along ? 1 : facts_.mask_rank;
    const int selected_rank = along ? rank : rank - covered + 1;
    std::vector<int64_t> given = IntsAttribute(reduction, "axes");
    if (reduction.input_size() > 1 && !reduction.input(1).empty()) {
      const std::optional<std::vector<int64_t>> read = ReadInts(graph_, reduction.input(1));
      if (!read.has_value()) return std::nullopt;
      given = *read;
    }
    const bool all = given.empty();
    keepdims_ = IntAttribute(reduction, "keepdims", 1) != 0;
    if (all && IntAttribute(reduction, "noop_with_empty_axes", 0) != 0) return std::nullopt;
    std::set<int64_t> axes;
    if (all) {
      for (int i = 0; i < rank; ++i) axes.insert(i);
    } else {
      const int dynamic = along ? form_.axis : 0;
      bool reduces_selection = false;
      for (int64_t axis : given) {
        if (axis < 0) axis += selected_rank;
        if (axis == dynamic) {
          reduces_selection = true;
          for (int i = 0; i < covered; ++i) axes.insert(dynamic + i);
        } else {
          axes.insert(along || axis < dynamic ? axis : axis + covered - 1);
        }
      }
      if (!reduces_selection) return std::nullopt;
    }
    // With kept dims the selection has one where x has several.
    restores_one_ = keepdims_ && covered > 1;
    if (restores_one_ && static_cast<int>(axes.size()) != rank) return std::nullopt;
    return std::vector<int64_t>(axes.begin(), axes.end());
  }

  // Returns the mask with the rank of the values: ones after its own dims, and before.
  std::string Widen(const std::string& mask) {
    std::vector<int64_t> axes;
    if (form_.axis >= 0) {
      for (int i = 0; i < facts_.value_rank; ++i) {
        if (i != form_.axis) axes.push_back(i);
      }
    } else {
      for (int i = facts_.mask_rank; i < facts_.value_rank; ++i) axes.push_back(i);
    }
    return axes.empty() ? mask : maker_.Unsqueeze(mask, axes);
  }

  // Puts the new nodes where the last of the removed ones was.
  void Replace() {
    std::set<int> gone(form_.selection.begin(), form_.selection.end());
    gone.insert(form_.chain.begin(), form_.chain.end());
    if (form_.reduction >= 0) gone.insert(form_.reduction);
    const int last = *gone.rbegin();
    const std::vector<onnx::NodeProto> added = maker_.TakeNodes();
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (!gone.contains(i)) *nodes.Add() = graph_.node(i);
      if (i != last) continue;
      for (const onnx::NodeProto& node : added) *nodes.Add() = node;
    }
    *graph_.mutable_node() = std::move(nodes);
    // Types of values that are removed, or have other shapes now.
    auto& infos = *graph_.mutable_value_info();
    infos.erase(std::remove_if(infos.begin(), infos.end(),
                               [&](const auto& info) {
                                 return info.name() == form_.output || IsGone(info.name());
                               }),
                infos.end());
  }

  bool IsGone(const std::string& value) const {
    return std::none_of(graph_.node().begin(), graph_.node().end(), [&](const auto& node) {
      return std::find(node.output().begin(), node.output().end(), value) != node.output().end();
    });
  }

  const StaticForm& form_;
  const FormFacts& facts_;
  onnx::GraphProto& graph_;
  NodeMaker maker_;
  mutable bool keepdims_ = true;
  mutable bool restores_one_ = false;
};

}  // namespace

std::vector<StaticForm> FindStaticForms(const onnx::GraphProto& graph) {
  return Finder(graph).Run();
}

absl::Status ApplyStaticForm(const StaticForm& form, const FormFacts& facts,
                             const RewriteOptions& options, onnx::ModelProto& model) {
  if (!form.known) {
    const std::string where = form.why_not.empty() ? "" : absl::StrCat(" where ", form.why_not);
    return absl::UnimplementedError(
        absl::StrCat("no rewrite is known", where, "; this would do: ", form.words));
  }
  if (form.reaches_output && !options.allow_output_change) {
    return absl::FailedPreconditionError(
        absl::StrCat("its size is the size of output '", form.output,
                     "', which would change: allow it with --allow-output-change"));
  }
  return Rewriter(form, facts, model).Run();
}

}  // namespace reprise::cli
