#include "runtime/graph/text.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/verifier.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

std::string ParseError(absl::string_view text) {
  const auto graph = Parse(text);
  EXPECT_FALSE(graph.ok()) << text;
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(graph.status().message());
}

void ExpectRoundTrip(const Graph& graph) {
  const std::string text = Print(graph);
  const auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString() << "\n" << text;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(Print(*parsed, {.names = false}), Print(graph, {.names = false}));
}

TEST(TextTest, DocumentedExamplePrintsAsItWasWritten) {
  const std::string text = R"(graph {
  input %input_ids: i64[batch, sequence]
  param %w: f32[384, 384] = p0
  param %w2: f32[384, 384] = Transpose{perm = [1, 0]}(p1)
  const %c: i64[2] = {0, -1}
  %x: f32[2, 16, 384] = LayerNormalization(%input_ids, %w, _) {axis = -1, epsilon = 1e-05}
  %q: f32[2, 4], _, %k: ? = Split(%x, %c) {axis = -1} @split_qk
  output %x
  output %k
}
)";
  const auto graph = Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(Print(*graph), text);
  EXPECT_EQ(graph->node(0).inputs[2], kNone);
  EXPECT_EQ(graph->node(1).outputs[1], kNone);
  EXPECT_EQ(graph->node(1).name, "split_qk");
  EXPECT_FLOAT_EQ(graph->node(0).attributes.Float("epsilon", 0), 1e-5f);
}

TEST(TextTest, NamesThatAreNoIdentifiersAreQuoted) {
  Graph graph;
  const ValueId in = graph.AddInput("a/b \"c\"\n", DType::kFloat32, {{.symbol = "past + 1"}});
  const NodeId node = graph.AddNodeWithOutputs(
      "odd op", {in}, {{"odd key", std::string("\xff\x01")}}, {"1"}, "/layer.0/Gather");
  graph.AddOutput(graph.node(node).outputs[0]);
  ExpectRoundTrip(graph);
  EXPECT_THAT(Print(graph), HasSubstr("%\"a/b \\\"c\\\"\\n\": f32[\"past + 1\"]"));
}

TEST(TextTest, CanonicalTextIsEqualWhenNamesAloneDiffer) {
  const auto build = [](const std::string& prefix) {
    Graph graph;
    const ValueId in = graph.AddInput(prefix + "in", DType::kFloat32, {{.symbol = "batch"}});
    const ValueId one = graph.AddConstant(prefix + "one", Tensor::FloatScalar(1));
    const NodeId node =
        graph.AddNodeWithOutputs("Add", {in, one}, {}, {prefix + "out"}, prefix + "node");
    graph.AddOutput(graph.node(node).outputs[0]);
    return graph;
  };
  EXPECT_EQ(Print(build("a"), {.names = false}), Print(build("b"), {.names = false}));
  EXPECT_NE(Print(build("a")), Print(build("b")));
}

TEST(TextTest, CanonicalTextDiffersWhenAnEpsilonDiffers) {
  const auto build = [](float epsilon) {
    Graph graph;
    const ValueId in = graph.AddInput("in", DType::kFloat32, {{.size = 4}});
    graph.AddOutput(
        graph.node(graph.AddNode("LayerNormalization", {in}, {{"epsilon", epsilon}})).outputs[0]);
    return Print(graph, {.names = false});
  };
  EXPECT_NE(build(1e-5f), build(std::nextafter(1e-5f, 1.0f)));
}

TEST(TextTest, SpecialFloatsKeepTheirBits) {
  const std::vector<uint32_t> bits = {0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800000, 0xFF800000,
                                      0x80000000, 0x00000001, 0x3F800001, 0x7F7FFFFF};
  std::vector<float> floats;
  for (uint32_t b : bits) floats.push_back(std::bit_cast<float>(b));
  Graph graph;
  graph.AddOutput(graph.AddConstant(
      "c", Tensor::FromVector(DType::kFloat32, {static_cast<int64_t>(floats.size())}, floats)));
  const std::vector<uint16_t> halves = {0x7E00, 0x7E01, 0x7C00, 0xFC00, 0x8000, 0x0001, 0x3C01};
  graph.AddOutput(graph.AddConstant("h", Tensor::FromVector(DType::kFloat16, {7}, halves)));
  const std::vector<uint16_t> brains = {0x7FC0, 0x7FC1, 0x7F80, 0xFF80, 0x8000, 0x0001, 0x3F81};
  graph.AddOutput(graph.AddConstant("b", Tensor::FromVector(DType::kBFloat16, {7}, brains)));
  const std::vector<double> doubles = {std::numeric_limits<double>::quiet_NaN(), -0.0, 0.1,
                                       std::numeric_limits<double>::denorm_min(), -INFINITY};
  graph.AddOutput(graph.AddConstant("d", Tensor::FromVector(DType::kFloat64, {5}, doubles)));
  graph.AddNode("Op", {}, {{"list", floats}, {"one", floats[1]}, {"whole", 3.0f}}, 1);
  graph.AddOutput(graph.node(0).outputs[0]);

  const auto parsed = Parse(Print(graph));
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(Print(*parsed), Print(graph));
  for (absl::string_view name : {"c", "h", "b", "d"}) {
    EXPECT_EQ(*parsed->ConstantOf(parsed->FindValue(name)),
              *graph.ConstantOf(graph.FindValue(name)))
        << name;
  }
  const auto* list = parsed->node(0).attributes.Get<std::vector<float>>("list");
  ASSERT_NE(list, nullptr);
  for (size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>((*list)[i]), bits[i]);
  }
  EXPECT_NE(parsed->node(0).attributes.Get<float>("whole"), nullptr);
}

TEST(TextTest, ABoolThatIsNeitherTrueNorFalsePrintsAsHex) {
  Graph graph;
  graph.AddOutput(
      graph.AddConstant("b", Tensor::FromVector(DType::kBool, {3}, std::vector<uint8_t>{0, 1, 2})));
  EXPECT_THAT(Print(graph), HasSubstr("hex\"000102\""));
  ExpectRoundTrip(graph);
}

TEST(TextTest, NestedGraphsAndEmptyListsRoundTrip) {
  auto branch = std::make_shared<Graph>();
  branch->AddOutput(branch->AddConstant("one", Tensor::FloatScalar(1)));
  Graph graph;
  const ValueId condition = graph.AddInput("c", DType::kBool, {});
  graph.AddNode("If", {condition},
                {{"then_branch", std::shared_ptr<const Graph>(branch)},
                 {"a", std::vector<int64_t>()},
                 {"b", std::vector<float>()},
                 {"c", std::vector<std::string>()},
                 {"d", Tensor::Int64s({})},
                 {"e", std::vector<std::string>{"x", "y z"}}});
  graph.AddOutput(graph.node(0).outputs[0]);
  ExpectRoundTrip(graph);
}

TEST(TextTest, OverridableInitialisersStayOverridable) {
  Graph graph;
  const ValueId id = graph.AddConstant("c", Tensor::Int64Scalar(3));
  graph.value(id).overridable = true;
  graph.AddOutput(id);
  ExpectRoundTrip(graph);
  EXPECT_TRUE(Parse(Print(graph))->value(0).overridable);
}

TEST(TextTest, ParameterExpressionsRoundTrip) {
  const ParameterExprPtr a = ParameterExpr::Leaf(7, DType::kInt8, {16, 32});
  const ParameterExprPtr scale = ParameterExpr::Constant(Tensor::FloatScalar(0.5f));
  const ParameterExprPtr cast =
      ParameterExpr::Apply("Cast", {{"to", int64_t{1}}}, {a}, DType::kFloat32, {16, 32});
  const ParameterExprPtr mul =
      ParameterExpr::Apply("Mul", {}, {cast, scale, nullptr}, DType::kFloat32, {16, 32});
  Graph graph;
  graph.AddOutput(graph.AddParameter("w", mul));
  ExpectRoundTrip(graph);
  EXPECT_EQ(Parse(Print(graph))->value(0).parameter->text(),
            "Mul(Cast{to = 1}(p7), f32[]{0.5}, _)");
}

TEST(TextTest, ErrorsNameLineAndColumn) {
  EXPECT_THAT(ParseError("graph {\n  input %x: f33[2]\n}"), HasSubstr("line 2, column 13"));
  EXPECT_THAT(ParseError("graph {\n  input %x: f33[2]\n}"), HasSubstr("'f33' is not a dtype"));
  EXPECT_THAT(ParseError("graph {\n  %y: ? = Relu(%x)\n}"),
              HasSubstr("line 2, column 16: value 'x' is not defined"));
  EXPECT_THAT(ParseError("graph {\n output %y\n}"), HasSubstr("value 'y' is not defined"));
  EXPECT_THAT(ParseError("graph {\n  input %x: f32[2]\n  input %x: f32[2]\n}"),
              HasSubstr("line 3, column 9: value 'x' is defined twice"));
  EXPECT_THAT(ParseError("graph {"), HasSubstr("found the end"));
  EXPECT_THAT(ParseError("graph { } x"), HasSubstr("expected the end"));
  EXPECT_THAT(ParseError("graph { const %c: i8[1] = {128} }"), HasSubstr("not an integer"));
  EXPECT_THAT(ParseError("graph { const %c: i8[2] = {1} }"), HasSubstr("needs 2 elements, got 1"));
  EXPECT_THAT(ParseError("graph { const %c: i8[1] = hex\"0g\" }"), HasSubstr("hex digits"));
  EXPECT_THAT(ParseError("graph { %a: ? = Op() {k = 1, k = 2} }"), HasSubstr("set twice"));
  EXPECT_THAT(ParseError("graph { %a: ?, %a: ? = Op() }"), HasSubstr("defined twice"));
  EXPECT_THAT(ParseError("graph { %a: ? = Op() {k = \"x }"), HasSubstr("string without an end"));
}

TEST(TextTest, ShapesThatClaimTooMuchAreRefused) {
  ParseError("graph { const %c: f32[4611686018427387904, 4] = {} }");
  ParseError("graph { const %c: f32[4611686018427387904] = {1} }");
  ParseError("graph { const %c: f32[-1] = {1} }");
  ParseError("graph { input %c: f32[-1] }");
}

TEST(TextTest, DeepNestingIsRefused) {
  std::string text = "graph { param %w: f32[2] = ";
  for (int i = 0; i < 100000; ++i) text += "F(";
  EXPECT_THAT(ParseError(text), HasSubstr("too deep"));
  text.clear();
  for (int i = 0; i < 100000; ++i) text += "graph { %a: ? = If() {b = ";
  EXPECT_THAT(ParseError(text), HasSubstr("too deep"));
}

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  Graph Make(int depth = 0) {
    Graph graph;
    std::vector<ValueId> values;
    for (int i = Pick(3); i-- > 0;) {
      std::vector<Dim> dims;
      for (int d = Pick(4); d-- > 0;) {
        dims.push_back(Pick(2) ? Dim{.size = Pick(5)} : Dim{.symbol = Word()});
      }
      values.push_back(graph.AddInput(Word(), RandomDType(), dims));
    }
    for (int i = Pick(4); i-- > 0;) values.push_back(graph.AddConstant(Word(), RandomTensor()));
    for (int i = Pick(3); i-- > 0;) {
      values.push_back(graph.AddParameter(
          Word(), ParameterExpr::Apply("Concat", RandomAttributes(2),
                                       {ParameterExpr::Leaf(i, DType::kFloat32, {300}),
                                        ParameterExpr::Constant(RandomTensor())},
                                       DType::kFloat32, {300, 2})));
    }
    for (int i = Pick(6); i-- > 0;) {
      std::vector<ValueId> inputs;
      for (int k = Pick(4); k-- > 0;) {
        inputs.push_back(values.empty() || Pick(5) == 0 ? kNone : values[Pick(values.size())]);
      }
      std::vector<std::string> outputs;
      for (int k = Pick(3); k >= 0; --k) outputs.push_back(Pick(4) == 0 ? "" : Word());
      const NodeId node = graph.AddNodeWithOutputs("Op" + Word(), inputs, RandomAttributes(depth),
                                                   outputs, Pick(2) ? Word() : "");
      for (ValueId output : graph.node(node).outputs) {
        if (output == kNone) continue;
        if (Pick(2)) graph.value(output).dtype = RandomDType();
        if (Pick(2)) graph.value(output).shape = RandomShape();
        values.push_back(output);
      }
    }
    for (ValueId value : values) {
      if (Pick(3) == 0) graph.AddOutput(value);
    }
    return graph;
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  std::string Word() {
    static constexpr absl::string_view kLetters = "ab_0.9Z/ \"\\:\n\t%@[]{}\xc3\xa9";
    std::string word;
    for (int i = Pick(5); i >= 0; --i) word += kLetters[Pick(kLetters.size())];
    return word;
  }

  DType RandomDType() { return static_cast<DType>(1 + Pick(13)); }

  Shape RandomShape() {
    Shape shape;
    for (int i = Pick(4); i-- > 0;) shape.push_back(Pick(4));
    return shape;
  }

  Tensor RandomTensor() {
    const DType dtype = RandomDType();
    const Shape shape = RandomShape();
    const size_t bytes = NumElements(shape) * DTypeSize(dtype);
    return Tensor::Make(dtype, shape, [&](void* data) {
      for (size_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(data)[i] = random_();
    });
  }

  Attributes RandomAttributes(int depth) {
    Attributes attributes;
    for (int i = Pick(4); i-- > 0;) attributes.Set(Word(), RandomAttribute(depth));
    return attributes;
  }

  Attribute RandomAttribute(int depth) {
    switch (Pick(8)) {
      case 0:
        return static_cast<int64_t>(random_()) - (int64_t{1} << 31);
      case 1:
        return std::bit_cast<float>(static_cast<uint32_t>(random_()));
      case 2:
        return Word();
      case 3:
        return std::vector<int64_t>(Pick(3), Pick(100) - 50);
      case 4:
        return std::vector<float>(Pick(3), std::bit_cast<float>(static_cast<uint32_t>(random_())));
      case 5:
        return std::vector<std::string>(Pick(3), Word());
      case 6:
        return RandomTensor();
      default:
        if (depth >= 2) return int64_t{0};
        return std::make_shared<const Graph>(Make(depth + 1));
    }
  }

  std::mt19937 random_;
};

TEST(TextTest, RandomGraphsRoundTrip) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const Graph graph = RandomGraph(seed).Make();
    EXPECT_TRUE(Verify(graph, false).ok()) << Verify(graph, false).ToString();
    ExpectRoundTrip(graph);
    if (HasFailure()) FAIL() << "seed " << seed << "\n" << Print(graph);
  }
}

TEST(TextTest, DamagedTextNeverCrashes) {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::string text = Print(RandomGraph(seed).Make());
    for (int i = 0; i < 5; ++i) {
      const size_t at = random() % text.size();
      if (random() % 2) {
        text[at] = static_cast<char>(random());
      } else {
        text.erase(at, random() % 4);
      }
      const auto graph = Parse(text);
      if (!graph.ok()) continue;
      EXPECT_EQ(Print(*Parse(Print(*graph))), Print(*graph));
    }
  }
}

TEST(TextTest, PartsOfExpressionsKeepTheirTypesWhereTheyArePrinted) {
  Graph graph;
  const ParameterExprPtr leaf = ParameterExpr::Leaf(3, DType::kInt8, {2, 3});
  const ParameterExprPtr scale =
      ParameterExpr::Constant(Tensor::Make(DType::kFloat32, {}, [](void* data) {
        const float one = 1;
        std::memcpy(data, &one, sizeof(one));
      }));
  const ParameterExprPtr wide = ParameterExpr::Apply("Cast", {}, {leaf}, DType::kFloat32, {2, 3});
  graph.AddParameter(
      "w", ParameterExpr::Apply("Mul", {}, {wide, scale, nullptr}, DType::kFloat32, {2, 3}));
  const std::string text = Print(graph, {.part_types = true});
  EXPECT_THAT(text, testing::HasSubstr("Mul(f32[2, 3] Cast(i8[2, 3] p3), f32[]{1}, _)"));
  const auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed, {.part_types = true}), text);
  EXPECT_EQ(Print(*parsed), Print(graph));
  const ParameterExpr& cast = *parsed->value(0).parameter->inputs()[0];
  EXPECT_EQ(cast.shape(), (Shape{2, 3}));
  EXPECT_EQ(cast.inputs()[0]->dtype(), DType::kInt8);
}

}  // namespace
}  // namespace reprise
