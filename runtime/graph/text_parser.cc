#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/graph/text_lexer.h"
#include "runtime/graph/text_literals.h"

namespace reprise {
namespace {

// Graphs nest in attributes, expressions in each other: a deeper text is refused.
constexpr int kMaxDepth = 64;

struct Type {
  DType dtype = DType::kUndefined;
  bool has_dims = false;
  std::vector<Dim> dims;
};

// A node as read; values are bound by name once all are known.
struct ParsedNode {
  std::vector<std::string> outputs;  // empty: left out
  std::vector<Type> types;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<size_t> input_positions;
  Attributes attributes;
  std::string name;
};

class Parser {
 public:
  explicit Parser(absl::string_view text) : lexer_(text) {}

  absl::StatusOr<Graph> Run() {
    ASSIGN_OR_RETURN(Graph graph, ParseGraph(0));
    if (!lexer_.AtEnd()) return lexer_.Error("expected the end");
    return graph;
  }

 private:
  absl::StatusOr<Graph> ParseGraph(int depth);
  absl::Status ParseInput(Graph& graph);
  absl::Status ParseParameter(Graph& graph);
  absl::Status ParseConstant(Graph& graph, int depth);
  absl::StatusOr<ParsedNode> ParseNode(int depth);
  absl::Status BuildNodes(Graph& graph, const std::vector<ParsedNode>& nodes);

  absl::StatusOr<std::string> NewValueName(const Graph& graph);
  absl::StatusOr<std::string> ValueName();
  absl::StatusOr<Type> ParseType();
  absl::StatusOr<Shape> ConstantShape(const Type& type);
  absl::StatusOr<ParameterExprPtr> ParseExpr(const Type& type, int depth);
  absl::StatusOr<Attributes> ParseAttributes(int depth);
  absl::StatusOr<Attribute> ParseAttribute(int depth);

  TextLexer lexer_;
};

absl::StatusOr<Graph> Parser::ParseGraph(int depth) {
  if (depth > kMaxDepth) return lexer_.Error("graphs nested too deep");
  if (!lexer_.TryWord("graph")) return lexer_.Error("expected 'graph'");
  RETURN_IF_ERROR(lexer_.Expect('{'));
  Graph graph;
  std::vector<ParsedNode> nodes;
  std::vector<std::pair<std::string, size_t>> outputs;
  while (!lexer_.TryChar('}')) {
    if (lexer_.TryWord("input")) {
      RETURN_IF_ERROR(ParseInput(graph));
    } else if (lexer_.TryWord("param")) {
      RETURN_IF_ERROR(ParseParameter(graph));
    } else if (lexer_.TryWord("const")) {
      RETURN_IF_ERROR(ParseConstant(graph, depth));
    } else if (lexer_.TryWord("output")) {
      lexer_.Peek();
      const size_t position = lexer_.position();
      ASSIGN_OR_RETURN(std::string name, ValueName());
      outputs.emplace_back(std::move(name), position);
    } else {
      ASSIGN_OR_RETURN(ParsedNode node, ParseNode(depth));
      nodes.push_back(std::move(node));
    }
  }
  const size_t end = lexer_.position();
  RETURN_IF_ERROR(BuildNodes(graph, nodes));
  for (const auto& [name, position] : outputs) {
    const ValueId id = graph.FindValue(name);
    if (id == kNone)
      return lexer_.ErrorAt(position, absl::StrCat("value '", name, "' is not defined"));
    graph.AddOutput(id);
  }
  lexer_.set_position(end);
  return graph;
}

absl::StatusOr<std::string> Parser::ValueName() {
  RETURN_IF_ERROR(lexer_.Expect('%'));
  const size_t position = lexer_.position();
  ASSIGN_OR_RETURN(std::string name, lexer_.Name());
  if (name.empty()) return lexer_.ErrorAt(position, "a value needs a name");
  return name;
}

absl::StatusOr<std::string> Parser::NewValueName(const Graph& graph) {
  lexer_.Peek();
  const size_t position = lexer_.position();
  ASSIGN_OR_RETURN(std::string name, ValueName());
  if (graph.FindValue(name) != kNone) {
    return lexer_.ErrorAt(position, absl::StrCat("value '", name, "' is defined twice"));
  }
  return name;
}

absl::StatusOr<Type> Parser::ParseType() {
  Type type;
  if (!lexer_.TryChar('?')) {
    const size_t position = lexer_.position();
    ASSIGN_OR_RETURN(const std::string name, lexer_.Name());
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype.has_value()) {
      return lexer_.ErrorAt(position, absl::StrCat("'", name, "' is not a dtype"));
    }
    type.dtype = *dtype;
  }
  if (!lexer_.TryChar('[')) return type;
  type.has_dims = true;
  if (lexer_.TryChar(']')) return type;
  do {
    const char next = lexer_.Peek();
    if (next == '-' || (next >= '0' && next <= '9')) {
      ASSIGN_OR_RETURN(const int64_t size, ReadInteger(lexer_));
      type.dims.push_back({.size = size});
    } else {
      ASSIGN_OR_RETURN(std::string symbol, lexer_.Name());
      if (symbol.empty()) return lexer_.Error("a symbol needs a name");
      type.dims.push_back({.size = -1, .symbol = std::move(symbol)});
    }
  } while (lexer_.TryChar(','));
  RETURN_IF_ERROR(lexer_.Expect(']'));
  return type;
}

absl::StatusOr<Shape> Parser::ConstantShape(const Type& type) {
  if (!type.has_dims) return lexer_.Error("expected a shape");
  Shape shape;
  for (const Dim& dim : type.dims) {
    if (!dim.is_constant()) {
      return lexer_.Error(absl::StrCat("only an input may have the symbol '", dim.symbol, "'"));
    }
    shape.push_back(dim.size);
  }
  const auto elements = CheckedNumElements(shape);
  if (!elements.ok()) return lexer_.Error(elements.status().message());
  return shape;
}

absl::Status Parser::ParseInput(Graph& graph) {
  ASSIGN_OR_RETURN(const std::string name, NewValueName(graph));
  RETURN_IF_ERROR(lexer_.Expect(':'));
  ASSIGN_OR_RETURN(Type type, ParseType());
  if (!type.has_dims) return lexer_.Error("an input needs dims");
  for (const Dim& dim : type.dims) {
    if (dim.is_constant() && dim.size < 0) {
      return lexer_.Error(absl::StrCat("input '", name, "' has the negative dim ", dim.size));
    }
  }
  graph.AddInput(name, type.dtype, std::move(type.dims));
  return absl::OkStatus();
}

absl::Status Parser::ParseParameter(Graph& graph) {
  ASSIGN_OR_RETURN(const std::string name, NewValueName(graph));
  RETURN_IF_ERROR(lexer_.Expect(':'));
  ASSIGN_OR_RETURN(const Type type, ParseType());
  RETURN_IF_ERROR(ConstantShape(type).status());
  RETURN_IF_ERROR(lexer_.Expect('='));
  ASSIGN_OR_RETURN(ParameterExprPtr expr, ParseExpr(type, 0));
  if (expr == nullptr) return lexer_.Error("a parameter needs an expression");
  const ValueId id = graph.AddParameter(name, std::move(expr));
  graph.value(id).overridable = lexer_.TryWord("overridable");
  return absl::OkStatus();
}

absl::Status Parser::ParseConstant(Graph& graph, int depth) {
  ASSIGN_OR_RETURN(const std::string name, NewValueName(graph));
  RETURN_IF_ERROR(lexer_.Expect(':'));
  ASSIGN_OR_RETURN(const Type type, ParseType());
  ASSIGN_OR_RETURN(Shape shape, ConstantShape(type));
  RETURN_IF_ERROR(lexer_.Expect('='));
  ASSIGN_OR_RETURN(Tensor tensor, ReadTensorBody(lexer_, type.dtype, std::move(shape)));
  const ValueId id = graph.AddConstant(name, std::move(tensor));
  graph.value(id).overridable = lexer_.TryWord("overridable");
  return absl::OkStatus();
}

// Parses an expression of the type that the text gives; parts of it may have one of their own.
absl::StatusOr<ParameterExprPtr> Parser::ParseExpr(const Type& type, int depth) {
  if (depth > kMaxDepth) return lexer_.Error("expressions nested too deep");
  if (lexer_.TryWord("_")) return ParameterExprPtr();
  Shape shape;
  if (type.has_dims) {
    ASSIGN_OR_RETURN(shape, ConstantShape(type));
  }
  const size_t position = lexer_.position();
  ASSIGN_OR_RETURN(std::string op, lexer_.Name());
  absl::string_view leaf = op;
  int index = 0;
  if (absl::ConsumePrefix(&leaf, "p") && absl::SimpleAtoi(leaf, &index) && index >= 0) {
    return ParameterExpr::Leaf(index, type.dtype, std::move(shape));
  }
  if (ParseDType(op).has_value() && lexer_.Peek() == '[') {
    lexer_.set_position(position);
    ASSIGN_OR_RETURN(const Type own, ParseType());
    ASSIGN_OR_RETURN(Shape own_shape, ConstantShape(own));
    const char next = lexer_.Peek();
    const size_t body = lexer_.position();
    const bool is_hex = lexer_.TryWord("hex");
    lexer_.set_position(body);
    if (next != '{' && !is_hex) return ParseExpr(own, depth + 1);
    ASSIGN_OR_RETURN(Tensor tensor, ReadTensorBody(lexer_, own.dtype, std::move(own_shape)));
    return ParameterExpr::Constant(std::move(tensor));
  }
  ASSIGN_OR_RETURN(Attributes attributes, ParseAttributes(depth));
  RETURN_IF_ERROR(lexer_.Expect('('));
  std::vector<ParameterExprPtr> inputs;
  if (!lexer_.TryChar(')')) {
    do {
      ASSIGN_OR_RETURN(ParameterExprPtr input, ParseExpr(Type(), depth + 1));
      inputs.push_back(std::move(input));
    } while (lexer_.TryChar(','));
    RETURN_IF_ERROR(lexer_.Expect(')'));
  }
  return ParameterExpr::Apply(std::move(op), std::move(attributes), std::move(inputs), type.dtype,
                              std::move(shape));
}

absl::StatusOr<ParsedNode> Parser::ParseNode(int depth) {
  ParsedNode node;
  if (lexer_.Peek() != '=') {
    do {
      if (lexer_.TryWord("_")) {
        node.outputs.emplace_back();
        node.types.emplace_back();
        continue;
      }
      ASSIGN_OR_RETURN(std::string name, ValueName());
      RETURN_IF_ERROR(lexer_.Expect(':'));
      ASSIGN_OR_RETURN(Type type, ParseType());
      if (type.has_dims) RETURN_IF_ERROR(ConstantShape(type).status());
      node.outputs.push_back(std::move(name));
      node.types.push_back(std::move(type));
    } while (lexer_.TryChar(','));
  }
  RETURN_IF_ERROR(lexer_.Expect('='));
  ASSIGN_OR_RETURN(node.op, lexer_.Name());
  RETURN_IF_ERROR(lexer_.Expect('('));
  if (!lexer_.TryChar(')')) {
    do {
      std::string name;
      lexer_.Peek();
      node.input_positions.push_back(lexer_.position());
      if (!lexer_.TryWord("_")) {
        ASSIGN_OR_RETURN(name, ValueName());
      }
      node.inputs.push_back(std::move(name));
    } while (lexer_.TryChar(','));
    RETURN_IF_ERROR(lexer_.Expect(')'));
  }
  ASSIGN_OR_RETURN(node.attributes, ParseAttributes(depth));
  if (lexer_.TryChar('@')) {
    ASSIGN_OR_RETURN(node.name, lexer_.Name());
  }
  return node;
}

// Nodes may use values that later nodes define: only Compact() sorts a graph.
absl::Status Parser::BuildNodes(Graph& graph, const std::vector<ParsedNode>& nodes) {
  std::vector<NodeId> ids;
  for (const ParsedNode& node : nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& name = node.outputs[i];
      if (name.empty()) continue;
      if (graph.FindValue(name) != kNone ||
          std::count(node.outputs.begin(), node.outputs.end(), name) > 1) {
        return lexer_.Error(absl::StrCat("value '", name, "' is defined twice"));
      }
    }
    const NodeId id =
        graph.AddNodeWithOutputs(node.op, std::vector<ValueId>(node.inputs.size(), kNone),
                                 node.attributes, node.outputs, node.name);
    ids.push_back(id);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      Value& value = graph.value(graph.node(id).outputs[i]);
      value.dtype = node.types[i].dtype;
      if (!node.types[i].has_dims) continue;
      value.shape.emplace();
      for (const Dim& dim : node.types[i].dims) value.shape->push_back(dim.size);
    }
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t i = 0; i < nodes[n].inputs.size(); ++i) {
      const std::string& name = nodes[n].inputs[i];
      if (name.empty()) continue;
      const ValueId id = graph.FindValue(name);
      if (id == kNone) {
        return lexer_.ErrorAt(nodes[n].input_positions[i],
                              absl::StrCat("value '", name, "' is not defined"));
      }
      graph.SetInput(ids[n], i, id);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Attributes> Parser::ParseAttributes(int depth) {
  Attributes attributes;
  if (!lexer_.TryChar('{')) return attributes;
  if (lexer_.TryChar('}')) return attributes;
  do {
    ASSIGN_OR_RETURN(const std::string name, lexer_.Name());
    if (attributes.Has(name)) {
      return lexer_.Error(absl::StrCat("attribute '", name, "' is set twice"));
    }
    RETURN_IF_ERROR(lexer_.Expect('='));
    ASSIGN_OR_RETURN(Attribute value, ParseAttribute(depth));
    attributes.Set(name, std::move(value));
  } while (lexer_.TryChar(','));
  RETURN_IF_ERROR(lexer_.Expect('}'));
  return attributes;
}

absl::StatusOr<Attribute> Parser::ParseAttribute(int depth) {
  const char next = lexer_.Peek();
  const size_t begin = lexer_.position();
  if (next == '"') return lexer_.Quoted();
  if (next == '[') return ReadList(lexer_);
  if (lexer_.TryWord("graph")) {
    lexer_.set_position(begin);
    ASSIGN_OR_RETURN(Graph graph, ParseGraph(depth + 1));
    return std::make_shared<const Graph>(std::move(graph));
  }
  for (absl::string_view kind : {"ints", "floats", "strings"}) {
    if (!lexer_.TryWord(kind)) continue;
    RETURN_IF_ERROR(lexer_.Expect('['));
    RETURN_IF_ERROR(lexer_.Expect(']'));
    if (kind == "ints") return std::vector<int64_t>();
    if (kind == "floats") return std::vector<float>();
    return std::vector<std::string>();
  }
  ASSIGN_OR_RETURN(const std::string text, lexer_.Number());
  if (ParseDType(text).has_value() && lexer_.Peek() == '[') {
    lexer_.set_position(begin);
    ASSIGN_OR_RETURN(const Type type, ParseType());
    ASSIGN_OR_RETURN(Shape shape, ConstantShape(type));
    return ReadTensorBody(lexer_, type.dtype, std::move(shape));
  }
  return ToNumber(lexer_, text, begin);
}

}  // namespace

absl::StatusOr<Graph> Parse(absl::string_view text) { return Parser(text).Run(); }

}  // namespace reprise
