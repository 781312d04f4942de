#include "runtime/graph/text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/hash64.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/node_text.h"
#include "runtime/graph/text_lexer.h"

namespace reprise {
namespace {

// Above this many elements a tensor prints as hex bytes.
constexpr int64_t kMaxPlainElements = 16;

std::string Quote(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

std::string IdentifierOrQuoted(absl::string_view text) {
  return IsTextIdentifier(text) ? std::string(text) : Quote(text);
}

// Returns the shortest decimal that parses back to `value`. `bits` are the element's own bits,
// `quiet_nan` the bits of the NaN that "nan" stands for; any other NaN prints with its bits.
template <typename T>
std::string PrintFloat(T value, uint64_t bits, uint64_t quiet_nan) {
  if (std::isnan(value)) {
    return bits == quiet_nan ? "nan" : absl::StrCat("nan(0x", absl::Hex(bits), ")");
  }
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

std::string PrintFloatAttribute(float value) {
  std::string text = PrintFloat(value, std::bit_cast<uint32_t>(value), 0x7FC00000);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string JoinElements(const Tensor& tensor) {
  return absl::StrJoin(tensor.span<T>(), ", ");
}

// Returns elements as text; empty when they do not fit plain text (a bool that is neither 0 nor 1).
std::string PrintElements(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return absl::StrJoin(tensor.span<float>(), ", ", [](std::string* out, float value) {
        absl::StrAppend(out, PrintFloat(value, std::bit_cast<uint32_t>(value), 0x7FC00000));
      });
    case DType::kFloat64:
      return absl::StrJoin(tensor.span<double>(), ", ", [](std::string* out, double value) {
        absl::StrAppend(out,
                        PrintFloat(value, std::bit_cast<uint64_t>(value), uint64_t{0x7FF8} << 48));
      });
    case DType::kFloat16:
      return absl::StrJoin(tensor.span<uint16_t>(), ", ", [](std::string* out, uint16_t bits) {
        absl::StrAppend(out, PrintFloat(HalfToFloat(bits), bits, 0x7E00));
      });
    case DType::kBFloat16:
      return absl::StrJoin(tensor.span<uint16_t>(), ", ", [](std::string* out, uint16_t bits) {
        absl::StrAppend(out, PrintFloat(BFloat16ToFloat(bits), bits, 0x7FC0));
      });
    case DType::kBool: {
      const auto bytes = tensor.span<uint8_t>();
      for (uint8_t byte : bytes) {
        if (byte > 1) return "";
      }
      return absl::StrJoin(bytes, ", ", [](std::string* out, uint8_t byte) {
        absl::StrAppend(out, byte != 0 ? "true" : "false");
      });
    }
    case DType::kUInt64:
      return JoinElements<uint64_t>(tensor);
    case DType::kUndefined:
      return "";
    default:
      return absl::StrJoin(*tensor.ToInt64s(), ", ");
  }
}

std::string PrintTensorBody(const Tensor& tensor, int64_t most_elements) {
  if (tensor.bytes() == 0) return "{}";
  const absl::string_view bytes(static_cast<const char*>(tensor.data()), tensor.bytes());
  if (most_elements >= 0 && tensor.num_elements() > most_elements) {
    return absl::StrCat("{", tensor.num_elements(), " elements, ", HexKey(Hash64(bytes)), "}");
  }
  if (tensor.num_elements() <= kMaxPlainElements) {
    const std::string elements = PrintElements(tensor);
    if (!elements.empty()) return absl::StrCat("{", elements, "}");
  }
  return absl::StrCat("hex\"", absl::BytesToHexString(bytes), "\"");
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, int indent,
          int64_t most_elements = kAllElements)
      : graph_(graph), options_(options), indent_(indent), most_elements_(most_elements) {}

  std::string Run() {
    if (!options_.names) NumberValues();
    std::string out = "graph {\n";
    for (ValueId id : graph_.inputs()) Line(out, ValueText(id));
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      const Value::Kind kind = graph_.value(id).kind;
      if (kind == Value::Kind::kParameter || kind == Value::Kind::kConstant) {
        Line(out, ValueText(id));
      }
    }
    for (NodeId id : graph_.NodeIds()) Line(out, NodeText(graph_.node(id)));
    for (ValueId id : graph_.outputs()) Line(out, "output ", Name(id));
    absl::StrAppend(&out, std::string(indent_, ' '), "}");
    return out;
  }

  // Returns the line of an input, a parameter or a constant; of a result its declaration alone.
  std::string ValueText(ValueId id) const {
    const Value& value = graph_.value(id);
    const absl::string_view suffix = value.overridable ? " overridable" : "";
    switch (value.kind) {
      case Value::Kind::kInput:
        return absl::StrCat("input ", Declaration(id));
      case Value::Kind::kParameter:
        return absl::StrCat("param ", Declaration(id), " = ", ExpressionText(*value.parameter),
                            suffix);
      case Value::Kind::kConstant:
        return absl::StrCat("const ", Declaration(id), " = ",
                            PrintTensorBody(value.constant, most_elements_), suffix);
      default:
        return Declaration(id);
    }
  }

  std::string NodeText(const Node& node) const {
    std::string out = absl::StrJoin(node.outputs, ", ", [this](std::string* text, ValueId id) {
      absl::StrAppend(text, id == kNone ? "_" : Declaration(id));
    });
    absl::StrAppend(
        &out, " = ", IdentifierOrQuoted(node.op), "(",
        absl::StrJoin(node.inputs, ", ",
                      [this](std::string* text, ValueId id) { absl::StrAppend(text, Name(id)); }),
        ")");
    if (!node.attributes.empty()) {
      absl::StrAppend(&out, " ", PrintAttributesIndented(node.attributes));
    }
    if (options_.names && !node.name.empty()) {
      absl::StrAppend(&out, " @", IdentifierOrQuoted(node.name));
    }
    return out;
  }

 private:
  template <typename... Parts>
  void Line(std::string& out, const Parts&... parts) const {
    absl::StrAppend(&out, std::string(indent_ + 2, ' '), parts..., "\n");
  }

  // Numbers inputs, then parameters and constants, then results as nodes define them.
  void NumberValues() {
    numbers_.assign(graph_.num_values(), -1);
    int next = 0;
    for (ValueId id : graph_.inputs()) numbers_[id] = next++;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
      const Value::Kind kind = graph_.value(id).kind;
      if (kind == Value::Kind::kParameter || kind == Value::Kind::kConstant) numbers_[id] = next++;
    }
    for (NodeId node : graph_.NodeIds()) {
      for (ValueId id : graph_.node(node).outputs) {
        if (id != kNone) numbers_[id] = next++;
      }
    }
  }

  std::string Name(ValueId id) const {
    if (id == kNone) return "_";
    if (!options_.names) return absl::StrCat("%", numbers_[id]);
    return absl::StrCat("%", IdentifierOrQuoted(graph_.value(id).name));
  }

  std::string Type(const Value& value) const {
    const absl::string_view dtype = value.dtype == DType::kUndefined ? "?" : DTypeName(value.dtype);
    if (value.shape.has_value()) return absl::StrCat(dtype, ShapeToString(*value.shape));
    if (value.kind != Value::Kind::kInput) return std::string(dtype);
    return absl::StrCat(dtype, "[",
                        absl::StrJoin(value.dims, ", ",
                                      [](std::string* out, const Dim& dim) {
                                        absl::StrAppend(out, dim.is_constant()
                                                                 ? absl::StrCat(dim.size)
                                                                 : IdentifierOrQuoted(dim.symbol));
                                      }),
                        "]");
  }

  std::string ExpressionText(const ParameterExpr& expression) const {
    if (!options_.part_types || expression.is_leaf() || expression.is_constant()) {
      return expression.text();
    }
    return absl::StrCat(expression.op(), PrintAttributesIndented(expression.attributes()), "(",
                        absl::StrJoin(expression.inputs(), ", ",
                                      [this](std::string* out, const ParameterExprPtr& part) {
                                        if (part == nullptr) {
                                          absl::StrAppend(out, "_");
                                        } else if (part->is_constant()) {
                                          absl::StrAppend(out, part->text());
                                        } else {
                                          absl::StrAppend(out, DTypeName(part->dtype()),
                                                          ShapeToString(part->shape()), " ",
                                                          ExpressionText(*part));
                                        }
                                      }),
                        ")");
  }

  std::string Declaration(ValueId id) const {
    return absl::StrCat(Name(id), ": ", Type(graph_.value(id)));
  }

  std::string PrintAttributesIndented(const Attributes& attributes) const;

  const Graph& graph_;
  const PrintOptions& options_;
  const int indent_;
  const int64_t most_elements_;
  std::vector<int> numbers_;  // keyed by value id; only where names are left out
};

struct AttributePrinter {
  const PrintOptions& options;
  int indent;
  int64_t most_elements = kAllElements;

  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(float value) const { return PrintFloatAttribute(value); }
  std::string operator()(const std::string& value) const { return Quote(value); }
  std::string operator()(const Tensor& value) const {
    return absl::StrCat(DTypeName(value.dtype()), ShapeToString(value.shape()),
                        PrintTensorBody(value, most_elements));
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return values.empty() ? "ints[]" : absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }
  std::string operator()(const std::vector<float>& values) const {
    if (values.empty()) return "floats[]";
    return absl::StrCat("[",
                        absl::StrJoin(values, ", ",
                                      [](std::string* out, float value) {
                                        absl::StrAppend(out, PrintFloatAttribute(value));
                                      }),
                        "]");
  }
  std::string operator()(const std::vector<std::string>& values) const {
    if (values.empty()) return "strings[]";
    return absl::StrCat("[",
                        absl::StrJoin(values, ", ",
                                      [](std::string* out, const std::string& value) {
                                        absl::StrAppend(out, Quote(value));
                                      }),
                        "]");
  }
  std::string operator()(const std::shared_ptr<const Graph>& graph) const {
    return Printer(*graph, options, indent + 2, most_elements).Run();
  }
};

std::string PrintAttributesWith(const Attributes& attributes, const PrintOptions& options,
                                int indent, int64_t most_elements = kAllElements) {
  if (attributes.empty()) return "";
  const AttributePrinter printer{options, indent, most_elements};
  return absl::StrCat("{",
                      absl::StrJoin(attributes, ", ",
                                    [&](std::string* out, const auto& item) {
                                      absl::StrAppend(out, IdentifierOrQuoted(item.first), " = ",
                                                      std::visit(printer, item.second));
                                    }),
                      "}");
}

std::string Printer::PrintAttributesIndented(const Attributes& attributes) const {
  return PrintAttributesWith(attributes, options_, indent_, most_elements_);
}

}  // namespace

std::string Print(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options, 0).Run() + "\n";
}

std::string PrintAttributes(const Attributes& attributes) {
  return PrintAttributesWith(attributes, PrintOptions(), 0);
}

std::string PrintTensor(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype()), ShapeToString(tensor.shape()),
                      PrintTensorBody(tensor, kAllElements));
}

std::string PrintNode(const Graph& graph, NodeId node, int64_t most_elements) {
  const PrintOptions options;
  return Printer(graph, options, 0, most_elements).NodeText(graph.node(node));
}

std::string PrintValue(const Graph& graph, ValueId value, int64_t most_elements) {
  const PrintOptions options;
  return Printer(graph, options, 0, most_elements).ValueText(value);
}

}  // namespace reprise
