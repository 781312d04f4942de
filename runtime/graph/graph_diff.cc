#include "runtime/graph/graph_diff.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

// Constants up to this number of elements are printed whole, larger ones by the first element that
// differs.
constexpr int64_t kMostElements = 8;

// Returns "0.5" of a scalar or of one element, else "{1, 2}"; without the type.
std::string Elements(const Tensor& tensor) {
  std::string text = PrintTensor(tensor);
  const size_t brace = text.find('{');
  if (brace == std::string::npos) return text;  // bytes that are not numbers
  const std::string body = text.substr(brace);
  return tensor.num_elements() == 1 ? body.substr(1, body.size() - 2) : body;
}

Tensor ElementOf(const Tensor& tensor, int64_t index) {
  const size_t bytes = DTypeSize(tensor.dtype());
  return Tensor::Make(tensor.dtype(), {}, [&](void* data) {
    std::memcpy(data, static_cast<const char*>(tensor.data()) + index * bytes, bytes);
  });
}

std::string TypeOf(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), ShapeToString(shape));
}

// Returns "0.5, was 0.7", or "f32[2], was f32[]", or "element 37 of i64[64]: 5, was 7 (12 differ)".
std::string ConstantWords(const Tensor& was, const Tensor& now) {
  if (was.dtype() != now.dtype() || was.shape() != now.shape()) {
    return absl::StrCat(": ", TypeOf(now.dtype(), now.shape()), ", was ",
                        TypeOf(was.dtype(), was.shape()));
  }
  if (now.num_elements() <= kMostElements) {
    return absl::StrCat(": ", Elements(now), ", was ", Elements(was));
  }
  const size_t bytes = DTypeSize(now.dtype());
  int64_t first = -1, differ = 0;
  for (int64_t i = 0; i < now.num_elements(); ++i) {
    if (std::memcmp(static_cast<const char*>(was.data()) + i * bytes,
                    static_cast<const char*>(now.data()) + i * bytes, bytes) == 0) {
      continue;
    }
    if (differ++ == 0) first = i;
  }
  return absl::StrCat(", element ", first, " of ", TypeOf(now.dtype(), now.shape()), ": ",
                      Elements(ElementOf(now, first)), ", was ", Elements(ElementOf(was, first)),
                      " (", differ, differ == 1 ? " differs)" : " differ)");
}

// Returns the ops that make a parameter, without the number of the initialiser: "Transpose(…)".
std::string MadeBy(const ParameterExpr& expression) {
  if (expression.is_leaf()) return "p";
  if (expression.is_constant()) return expression.text();
  return absl::StrCat(expression.op(), PrintAttributes(expression.attributes()), "(",
                      absl::StrJoin(expression.inputs(), ", ",
                                    [](std::string* out, const ParameterExprPtr& part) {
                                      absl::StrAppend(out, part == nullptr ? "_" : MadeBy(*part));
                                    }),
                      ")");
}

// Returns the type of a result or an input, as far as it is known.
std::string TypeText(const Value& value) {
  if (value.shape.has_value()) return TypeOf(value.dtype, *value.shape);
  std::vector<std::string> dims;
  for (const Dim& dim : value.dims) {
    dims.push_back(dim.is_constant() ? absl::StrCat(dim.size) : dim.symbol);
  }
  return absl::StrCat(DTypeName(value.dtype), "[", absl::StrJoin(dims, ", "), "]");
}

class Differ {
 public:
  Differ(const Graph& was, const Graph& now) : was_(was), now_(now) {}

  GraphDiff Run() {
    diff_.nodes = MatchNodes(was_, now_);
    diff_.differs.assign(diff_.nodes.size(), false);
    for (const NodePair& pair : diff_.nodes) {
      if (pair.was != kNone && pair.now != kNone) now_of_[pair.was] = pair.now;
    }
    CompareInputs();
    for (size_t i = 0; i < diff_.nodes.size(); ++i) {
      const size_t before = diff_.causes.size();
      ComparePair(i);
      diff_.differs[i] = diff_.causes.size() > before;
    }
    CompareOutputs();
    return std::move(diff_);
  }

 private:
  template <typename... Parts>
  void Say(const Parts&... parts) {
    diff_.causes.push_back(absl::StrCat(parts...));
  }

  void CompareInputs() {
    const size_t both = std::min(was_.inputs().size(), now_.inputs().size());
    for (size_t i = 0; i < both; ++i) {
      const Value& was = was_.value(was_.inputs()[i]);
      const Value& now = now_.value(now_.inputs()[i]);
      if (TypeText(was) == TypeText(now)) continue;
      Say("input '", now.name, "': ", TypeText(now), ", was ", TypeText(was));
    }
    for (size_t i = both; i < now_.inputs().size(); ++i) {
      const Value& now = now_.value(now_.inputs()[i]);
      Say("input '", now.name, "' is new: ", TypeText(now));
    }
    for (size_t i = both; i < was_.inputs().size(); ++i) {
      const Value& was = was_.value(was_.inputs()[i]);
      Say("input '", was.name, "' is gone (was ", TypeText(was), ")");
    }
  }

  // Returns " after Conv 'conv1'", or where the graph begins.
  std::string PlaceOf(size_t pair) const {
    while (pair-- > 0) {
      const NodePair& before = diff_.nodes[pair];
      if (before.now != kNone) return absl::StrCat(" after ", SourceLabel(now_.node(before.now)));
    }
    return " at the beginning";
  }

  void ComparePair(size_t i) {
    const NodePair& pair = diff_.nodes[i];
    if (pair.was == kNone) return Say(SourceLabel(now_.node(pair.now)), " is new,", PlaceOf(i));
    if (pair.now == kNone) {
      return Say(SourceLabel(was_.node(pair.was)), " is gone (was", PlaceOf(i), ")");
    }
    const Node& was = was_.node(pair.was);
    const Node& now = now_.node(pair.now);
    if (was.op != now.op) return Say(SourceLabel(now), " stands where ", SourceLabel(was), " was");
    CompareAttributes(was, now);
    const size_t operands = std::max(was.inputs.size(), now.inputs.size());
    for (size_t k = 0; k < operands; ++k) CompareOperand(was, now, k);
  }

  void CompareAttributes(const Node& was, const Node& now) {
    std::set<std::string> names;
    for (const auto& [name, value] : was.attributes) names.insert(name);
    for (const auto& [name, value] : now.attributes) names.insert(name);
    for (const std::string& name : names) {
      using SubGraph = std::shared_ptr<const Graph>;
      const auto* was_graph = was.attributes.Get<SubGraph>(name);
      const auto* now_graph = now.attributes.Get<SubGraph>(name);
      if (was_graph != nullptr && now_graph != nullptr) {
        for (const std::string& cause : DiffGraphs(**was_graph, **now_graph).causes) {
          Say("in ", name, " of ", SourceLabel(now), ": ", cause);
        }
        continue;
      }
      const std::string before = AttributeText(was.attributes, name);
      const std::string after = AttributeText(now.attributes, name);
      if (before != after)
        Say("attribute ", name, " of ", SourceLabel(now), ": ", after, ", was ", before);
    }
  }

  static std::string AttributeText(const Attributes& attributes, const std::string& name) {
    for (const auto& [key, value] : attributes) {
      if (key != name) continue;
      const std::string text = PrintAttributes(Attributes{{key, value}});
      // "{axis = 1}" without braces and name.
      const size_t equals = text.find(" = ");
      return text.substr(equals + 3, text.size() - equals - 4);
    }
    return "none";
  }

  void CompareOperand(const Node& was, const Node& now, size_t k) {
    const ValueId before = was.input(k), after = now.input(k);
    if (before == kNone && after == kNone) return;
    if (before == kNone || after == kNone) {
      const Graph& graph = before == kNone ? now_ : was_;
      const ValueId id = before == kNone ? after : before;
      return Say("input ", k, " of ", SourceLabel(now),
                 before == kNone ? " is new: " : " is gone: ", Origin(graph, id));
    }
    const Value& a = was_.value(before);
    const Value& b = now_.value(after);
    if (a.kind == Value::Kind::kConstant && b.kind == Value::Kind::kConstant) {
      if (a.constant == b.constant) return;
      return Say("constant ", k, " of ", SourceLabel(now), ConstantWords(a.constant, b.constant));
    }
    if (a.kind == Value::Kind::kParameter && b.kind == Value::Kind::kParameter) {
      return CompareParameters(now, k, a, b);
    }
    if (SameOrigin(before, after)) return;
    Say("input ", k, " of ", SourceLabel(now), ": ", Origin(now_, after), ", was ",
        Origin(was_, before));
  }

  void CompareParameters(const Node& now, size_t k, const Value& was_value,
                         const Value& now_value) {
    const Shape& before = *was_value.shape;
    const Shape& after = *now_value.shape;
    if (was_value.dtype == now_value.dtype && before == after) {
      const std::string was_made = MadeBy(*was_value.parameter);
      const std::string now_made = MadeBy(*now_value.parameter);
      if (was_made == now_made) return;
      return Say("parameter ", k, " of ", SourceLabel(now), ": ", now_made, ", was ", was_made);
    }
    const bool product =
        now.op == "MatMul" || now.op == "Gemm" || absl::StartsWith(now.op, "reprise.Linear");
    if (product && k == 1 && was_value.dtype == now_value.dtype && before.size() == 2 &&
        after.size() == 2) {
      const size_t columns = now.attributes.Int("transB", 0) != 0 ? 0 : 1;
      if (before[columns] != after[columns]) {
        Say(SourceLabel(now), " has ", after[columns], " columns, was ", before[columns]);
      }
      if (before[1 - columns] != after[1 - columns]) {
        Say(SourceLabel(now), " has ", after[1 - columns], " rows of weights, was ",
            before[1 - columns]);
      }
      return;
    }
    Say("parameter ", k, " of ", SourceLabel(now), ": ", TypeOf(now_value.dtype, after), ", was ",
        TypeOf(was_value.dtype, before));
  }

  // Returns whether both values come from the same place: the same input, or the same result of
  // nodes that stand for each other.
  bool SameOrigin(ValueId before, ValueId after) const {
    const Value& a = was_.value(before);
    const Value& b = now_.value(after);
    if (a.kind != b.kind) return false;
    if (a.kind == Value::Kind::kInput) {
      const auto place = [](const std::vector<ValueId>& inputs, ValueId id) {
        return std::find(inputs.begin(), inputs.end(), id) - inputs.begin();
      };
      return place(was_.inputs(), before) == place(now_.inputs(), after);
    }
    if (a.producer == kNone || b.producer == kNone) return a.producer == b.producer;
    const auto it = now_of_.find(a.producer);
    if (it == now_of_.end()) {
      // Its producer is removed or new, which was reported already.
      return true;
    }
    return it->second == b.producer ? OutputOf(was_, before) == OutputOf(now_, after)
                                    : IsNew(b.producer);
  }

  bool IsNew(NodeId node) const {
    return std::none_of(diff_.nodes.begin(), diff_.nodes.end(), [&](const NodePair& pair) {
      return pair.now == node && pair.was != kNone;
    });
  }

  static std::ptrdiff_t OutputOf(const Graph& graph, ValueId id) {
    const std::vector<ValueId>& outputs = graph.node(graph.value(id).producer).outputs;
    return std::find(outputs.begin(), outputs.end(), id) - outputs.begin();
  }

  // Returns a value in words.
  static std::string Origin(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    switch (value.kind) {
      case Value::Kind::kInput:
        return absl::StrCat("the input '", value.name, "'");
      case Value::Kind::kConstant:
        return value.constant.num_elements() <= kMostElements
                   ? absl::StrCat("a constant, ", Elements(value.constant))
                   : absl::StrCat("a constant ", TypeOf(value.dtype, *value.shape));
      case Value::Kind::kParameter:
        return absl::StrCat("a parameter ", TypeOf(value.dtype, *value.shape));
      default:
        return value.producer == kNone
                   ? absl::StrCat("'", value.name, "'")
                   : absl::StrCat("the result of ", SourceLabel(graph.node(value.producer)));
    }
  }

  void CompareOutputs() {
    if (was_.outputs().size() != now_.outputs().size()) {
      return Say("the graph has ", now_.outputs().size(), " outputs, was ", was_.outputs().size());
    }
    for (size_t i = 0; i < now_.outputs().size(); ++i) {
      const ValueId before = was_.outputs()[i], after = now_.outputs()[i];
      if (was_.value(before).kind == Value::Kind::kConstant &&
          now_.value(after).kind == Value::Kind::kConstant) {
        const Tensor& a = was_.value(before).constant;
        const Tensor& b = now_.value(after).constant;
        if (!(a == b)) Say("output ", i, ", a constant", ConstantWords(a, b));
        continue;
      }
      if (SameOrigin(before, after)) continue;
      Say("output ", i, " is ", Origin(now_, after), ", was ", Origin(was_, before));
    }
  }

  const Graph& was_;
  const Graph& now_;
  GraphDiff diff_;
  absl::flat_hash_map<NodeId, NodeId> now_of_;
};

}  // namespace

GraphDiff DiffGraphs(const Graph& was, const Graph& now) { return Differ(was, now).Run(); }

std::string FirstCause(const std::vector<std::string>& causes) {
  if (causes.empty()) return "";
  if (causes.size() == 1) return causes[0];
  return absl::StrCat(causes[0], ", and ", causes.size() - 1,
                      causes.size() == 2 ? " more difference" : " more differences");
}

}  // namespace reprise
