#include "tools/files/static_forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
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
      for (const std::string& output : graph.node(i).output()) producer_[output] = i;
    }
    for (const auto& output : graph.output()) outputs_.insert(output.name());
    for (const auto& tensor : graph.initializer()) initializers_[tensor.name()] = &tensor;
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

  bool IsConstant(const std::string& value) const {
    if (initializers_.contains(value)) return true;
    const auto it = producer_.find(value);
    return it != producer_.end() && node(it->second).op_type() == "Constant";
  }

  bool HasOneElement(const std::string& value) const {
    const onnx::TensorProto* tensor = nullptr;
    if (const auto it = initializers_.find(value); it != initializers_.end()) tensor = it->second;
    if (const auto it = producer_.find(value); tensor == nullptr && it != producer_.end()) {
      for (const auto& attribute : node(it->second).attribute()) {
        if (attribute.name() == "value") tensor = &attribute.t();
        if (attribute.name() == "value_float" || attribute.name() == "value_int") return true;
      }
    }
    if (tensor == nullptr) return false;
    return std::all_of(tensor->dims().begin(), tensor->dims().end(),
                       [](int64_t dim) { return dim == 1; });
  }

  // Returns the only node that reads `value`, or -1.
  int OnlyUser(const std::string& value) const {
    const auto it = users_.find(value);
    if (it == users_.end() || it->second.size() != 1 || outputs_.contains(value)) return -1;
    return it->second[0];
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

  static int64_t IntAttribute(const onnx::NodeProto& node, const char* name, int64_t fallback) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == name) return attribute.i();
    }
    return fallback;
  }

  // NonZero, then Transpose and GatherND; or for a mask of one dim Squeeze or Reshape and Gather.
  bool MatchNonZero(int i, StaticForm& form) const {
    form.mask = node(i).input(0);
    form.selection = {i};
    int next = OnlyUser(node(i).output(0));
    if (next < 0) return false;
    const std::string& first = node(next).op_type();
    const bool turns = first == "Transpose";
    if (!turns && first != "Squeeze" && first != "Reshape" && first != "Flatten") return false;
    form.selection.push_back(next);
    std::string places = node(next).output(0);
    int select = OnlyUser(places);
    // A list of places as one column: Transpose, then Squeeze.
    if (select >= 0 && turns &&
        (node(select).op_type() == "Squeeze" || node(select).op_type() == "Reshape")) {
      form.selection.push_back(select);
      places = node(select).output(0);
      select = OnlyUser(places);
      if (select < 0 || node(select).op_type() != "Gather") return false;
    }
    if (select < 0) return false;
    const onnx::NodeProto& selects = node(select);
    if (selects.input_size() < 2 || selects.input(1) != places) return false;
    const bool by_places =
        selects.op_type() == "GatherND" && turns && IntAttribute(selects, "batch_dims", 0) == 0;
    const bool by_column = selects.op_type() == "Gather" && IntAttribute(selects, "axis", 0) == 0;
    if (!by_places && !by_column) return false;
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
      if (form.axis < 0) return;  // its rank is not known here
    }
    MatchRest(node(i).output(0), form);
  }

  // From the selected values on: elementwise nodes, then a reduction or an output.
  bool MatchRest(std::string value, StaticForm& form) const {
    while (true) {
      if (outputs_.contains(value)) {
        const auto users = users_.find(value);
        if (users != users_.end() && !users->second.empty()) return false;
        form.reaches_output = form.known = true;
        form.output = value;
        form.words = "Where, with zeros for the other elements and the mask as a further output";
        return true;
      }
      const int next = OnlyUser(value);
      if (next < 0) return false;
      const onnx::NodeProto& at = node(next);
      if (NeutralOf(at.op_type()).has_value() && at.input(0) == value) {
        if (at.input_size() > 1 && !at.input(1).empty() && !IsConstant(at.input(1))) return false;
        form.known = true;
        form.reduction = next;
        form.output = at.output(0);
        form.words = absl::StrCat("Where and ", at.op_type());
        return true;
      }
      if (!Elementwise().contains(at.op_type()) || at.output_size() != 1) return false;
      for (const std::string& input : at.input()) {
        if (input != value && !input.empty() && !HasOneElement(input)) return false;
      }
      form.chain.push_back(next);
      value = at.output(0);
    }
  }

  const onnx::GraphProto& graph_;
  absl::flat_hash_map<std::string, std::vector<int>> users_;
  absl::flat_hash_map<std::string, int> producer_;
  absl::flat_hash_set<std::string> outputs_;
  absl::flat_hash_map<std::string, const onnx::TensorProto*> initializers_;
};

class Rewriter {
 public:
  Rewriter(const StaticForm& form, const FormFacts& facts, onnx::ModelProto& model)
      : form_(form), facts_(facts), model_(model), graph_(*model.mutable_graph()) {
    for (const auto& opset : model.opset_import()) {
      if (opset.domain().empty() || opset.domain() == "ai.onnx") opset_ = opset.version();
    }
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
    std::string mask = New("Cast", {form_.mask}, "mask");
    SetInt("to", onnx::TensorProto::BOOL);
    if (form_.flattens) {
      values = New("Reshape", {values, Ints("flat", {-1})}, "flat");
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
      values = Unique(absl::StrCat(next.output(0), ".all"));
      next.set_output(0, values);
      added_.push_back(next);
    }
    const double neutral = form_.reduction < 0 ? 0 : *NeutralOf(reduction.op_type());
    const std::string kept = New("Where", {mask, values, Number("neutral", neutral)}, "kept");
    if (form_.reduction < 0) {
      added_.back().set_output(0, form_.output);
      ChangeOutput(mask);
    } else {
      Reduce(reduction, *axes, kept, mask, values);
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
    std::vector<int64_t> given;
    bool all = true;
    for (const auto& attribute : reduction.attribute()) {
      if (attribute.name() != "axes") continue;
      given.assign(attribute.ints().begin(), attribute.ints().end());
      all = false;
    }
    if (reduction.input_size() > 1 && !reduction.input(1).empty()) {
      const std::optional<std::vector<int64_t>> read = ReadInts(reduction.input(1));
      if (!read.has_value()) return std::nullopt;
      given = *read;
      all = given.empty();
    }
    keepdims_ = true;
    for (const auto& attribute : reduction.attribute()) {
      if (attribute.name() == "keepdims") keepdims_ = attribute.i() != 0;
      if (attribute.name() == "noop_with_empty_axes" && attribute.i() != 0 && all) {
        return std::nullopt;
      }
    }
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

  std::optional<std::vector<int64_t>> ReadInts(const std::string& name) const {
    const auto read = [](const onnx::TensorProto& tensor) {
      std::vector<int64_t> values(tensor.int64_data().begin(), tensor.int64_data().end());
      if (values.empty() && tensor.raw_data().size() % 8 == 0) {
        values.resize(tensor.raw_data().size() / 8);
        std::copy(tensor.raw_data().begin(), tensor.raw_data().end(),
                  reinterpret_cast<char*>(values.data()));
      }
      return values;
    };
    for (const auto& tensor : graph_.initializer()) {
      if (tensor.name() == name) return read(tensor);
    }
    for (const auto& node : graph_.node()) {
      if (node.op_type() != "Constant" || node.output(0) != name) continue;
      for (const auto& attribute : node.attribute()) {
        if (attribute.name() == "value") return read(attribute.t());
        if (attribute.name() == "value_ints") {
          return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
        }
      }
    }
    return std::nullopt;
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
    if (axes.empty()) return mask;
    if (opset_ >= 13) return New("Unsqueeze", {mask, Ints("dims", axes)}, "wide_mask");
    const std::string wide = New("Unsqueeze", {mask}, "wide_mask");
    SetInts("axes", axes);
    return wide;
  }

  void AddReduction(const std::string& op, const std::string& value,
                    const std::vector<int64_t>& axes, const std::string& name) {
    const bool as_input = opset_ >= 18 || (op == "ReduceSum" && opset_ >= 13);
    std::vector<std::string> inputs = {value};
    if (as_input) inputs.push_back(Ints("axes", axes));
    New(op, inputs, name);
    if (!as_input) SetInts("axes", axes);
    SetInt("keepdims", keepdims_ ? 1 : 0);
  }

  void Reduce(const onnx::NodeProto& reduction, const std::vector<int64_t>& axes,
              const std::string& kept, const std::string& mask, const std::string& values) {
    const bool mean = reduction.op_type() == "ReduceMean";
    AddReduction(mean ? "ReduceSum" : reduction.op_type(), kept, axes, "reduced");
    std::string result = added_.back().output(0);
    if (mean) {
      const std::string ones = New("Cast", {mask}, "ones");
      SetInt("to", facts_.dtype);
      const std::string shape = New("Shape", {values}, "shape");
      const std::string all = New("Expand", {ones, shape}, "all_ones");
      AddReduction("ReduceSum", all, axes, "count");
      const std::string count = added_.back().output(0);
      result = New("Div", {result, count}, "mean");
    }
    if (restores_one_) result = New("Reshape", {result, Ints("one", {1})}, "one");
    added_.back().set_output(0, form_.output);
    added_.back().set_name(reduction.name());
  }

  void ChangeOutput(const std::string& mask) {
    for (auto& output : *graph_.mutable_output()) {
      if (output.name() != form_.output) continue;
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
    const std::string name = Unique(absl::StrCat(form_.output, ".mask"));
    onnx::NodeProto& same = added_.emplace_back();
    same.set_op_type("Identity");
    same.set_name(absl::StrCat(form_.node, "/mask_output"));
    same.add_input(mask);
    same.add_output(name);
    onnx::ValueInfoProto& output = *graph_.add_output();
    output.set_name(name);
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  }

  // The new nodes are placed where the last of the removed ones was.
  void Replace() {
    std::set<int> gone(form_.selection.begin(), form_.selection.end());
    gone.insert(form_.chain.begin(), form_.chain.end());
    if (form_.reduction >= 0) gone.insert(form_.reduction);
    const int last = *gone.rbegin();
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (!gone.contains(i)) *nodes.Add() = graph_.node(i);
      if (i != last) continue;
      for (const onnx::NodeProto& node : added_) *nodes.Add() = node;
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

  std::string Unique(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; IsTaken(name); ++i) name = absl::StrCat(wanted, "_", i);
    taken_.insert(name);
    return name;
  }
  bool IsTaken(const std::string& name) const {
    if (taken_.contains(name)) return true;
    for (const auto& node : graph_.node()) {
      if (std::find(node.output().begin(), node.output().end(), name) != node.output().end()) {
        return true;
      }
    }
    for (const auto& tensor : graph_.initializer()) {
      if (tensor.name() == name) return true;
    }
    return std::any_of(graph_.input().begin(), graph_.input().end(),
                       [&](const auto& input) { return input.name() == name; });
  }

  std::string New(const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& name) {
    onnx::NodeProto& node = added_.emplace_back();
    node.set_op_type(op);
    node.set_name(absl::StrCat(form_.node, "/", name));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(Unique(absl::StrCat(form_.node, "/", name, "_output")));
    return node.output(0);
  }
  // Attributes of the node that New made last.
  void SetInt(const char* name, int64_t value) {
    auto& attribute = *added_.back().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void SetInts(const char* name, const std::vector<int64_t>& values) {
    auto& attribute = *added_.back().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }

  std::string Ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(Unique(absl::StrCat(form_.node, "/", name)));
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }
  std::string Number(const std::string& name, double value) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(Unique(absl::StrCat(form_.node, "/", name)));
    tensor.set_data_type(facts_.dtype);
    if (facts_.dtype == onnx::TensorProto::DOUBLE) {
      tensor.add_double_data(value);
    } else {
      tensor.add_float_data(static_cast<float>(value));
    }
    return tensor.name();
  }

  const StaticForm& form_;
  const FormFacts& facts_;
  onnx::ModelProto& model_;
  onnx::GraphProto& graph_;
  int64_t opset_ = 0;
  std::vector<onnx::NodeProto> added_;
  std::set<std::string> taken_;
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
    return absl::UnimplementedError(
        absl::StrCat("no rewrite is known; this would do: ", form.words));
  }
  if (form.reaches_output && !options.allow_output_change) {
    return absl::FailedPreconditionError(
        absl::StrCat("its size is the size of output '", form.output,
                     "', which would change: allow it with --allow-output-change"));
  }
  return Rewriter(form, facts, model).Run();
}

}  // namespace reprise::cli
