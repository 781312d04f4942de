// Maps of registered ops: how a text becomes one, and which are refused.
#include "runtime/ops/custom/map_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/ops/custom/registered_op.h"
#include "runtime/ops/kit/host_op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// Returns the map that `text` makes of a node over inputs of these shapes; `out`: of its output.
std::optional<IndexMap> MapOf(absl::string_view text, const std::vector<Shape>& inputs, Shape out) {
  const auto map = MapText::Parse(text);
  EXPECT_TRUE(map.ok()) << map.status();
  Graph graph;
  std::vector<ValueId> ids;
  for (const Shape& shape : inputs) {
    std::vector<Dim> dims;
    for (const int64_t size : shape) dims.push_back({.size = size});
    ids.push_back(graph.AddInput("", DType::kFloat32, std::move(dims)));
    graph.value(ids.back()).shape = shape;
  }
  const NodeId id = graph.AddNode("maptest.Op", ids);
  graph.value(graph.node(id).outputs[0]).shape = std::move(out);
  MapContext context(graph, graph.node(id));
  map->Apply(context);
  return std::move(context).Take();
}

TEST(MapTextTest, LettersTellWhichDimsAreParallel) {
  const auto map = MapOf("bsh,h->bsh|h", {{2, 5, 4}, {4}}, {2, 5, 4});
  ASSERT_TRUE(map.has_value());
  EXPECT_TRUE(map->IsParallel(0));
  EXPECT_TRUE(map->IsParallel(1));
  EXPECT_FALSE(map->IsParallel(2));
  EXPECT_EQ(map->DimTo(1, 2), 0);
}

TEST(MapTextTest, LettersOfInputsAloneMeetAndThoseOfTheOutputAreNew) {
  const auto map = MapOf("abk,kc->acd", {{2, 5, 4}, {4, 3}}, {2, 3, 7});
  ASSERT_TRUE(map.has_value());
  EXPECT_TRUE(map->IsParallel(0));
  EXPECT_TRUE(map->IsParallel(1));
  EXPECT_FALSE(map->IsParallel(2));
  EXPECT_EQ(map->operands[0][1].link, Link::kReduced);
}

TEST(MapTextTest, DotsAreAnyDimsInFront) {
  for (const Shape& front : {Shape{}, Shape{3}, Shape{2, 3}}) {
    Shape x = front, y = front;
    x.insert(x.end(), {4, 6});
    y.push_back(4);
    const auto map = MapOf("...ab->...a", {x}, y);
    ASSERT_TRUE(map.has_value());
    for (int64_t to = 0; to < std::ssize(y); ++to) {
      EXPECT_TRUE(map->IsParallel(to));
      EXPECT_EQ(map->DimTo(0, to), to);
    }
  }
}

TEST(MapTextTest, OtherRanksAndSizesOfOneAreNotParallel) {
  EXPECT_FALSE(MapOf("ab->ab", {{2, 3, 4}}, {2, 3, 4}).has_value());
  const auto map = MapOf("ab,ab->ab", {{2, 3}, {1, 3}}, {2, 3});
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->DimTo(1, 0), -1);
  EXPECT_TRUE(map->IsParallel(0));
}

TEST(MapTextTest, TextsThatAreNoneAreRefusedWithTheReason) {
  const auto why = [](absl::string_view text) {
    return std::string(MapText::Parse(text).status().message());
  };
  EXPECT_THAT(why("ab"), HasSubstr("no single '->'"));
  EXPECT_THAT(why("ab->b->a"), HasSubstr("no single '->'"));
  EXPECT_THAT(why("aa->a"), HasSubstr("'a' twice"));
  EXPECT_THAT(why("a1->a"), HasSubstr("'a1' is no list of letters"));
  EXPECT_THAT(why("ab->a|b"), HasSubstr("'b' after the bar"));
  EXPECT_THAT(why("ab->ab|a|b"), HasSubstr("two '|'"));
  EXPECT_THAT(why("ab->...ab"), HasSubstr("for no input"));
}

RegisteredOp SumsColumns(const std::string& name, const std::string& map) {
  return {.domain = "maptest",
          .name = name,
          .map = map,
          .shape =
              [](InferContext& context) {
                context.SetOutput(0, context.dtype(0), {context.shape(0)[0].hint()});
                return absl::OkStatus();
              },
          .kernel = [](const KernelContext&) { return absl::OkStatus(); }};
}

TEST(MapTextTest, AnOpWithAMapStaysInRecipesAndItsSizesAreThoseOfItsInputs) {
  ASSERT_TRUE(RegisterOp(SumsColumns("Sums", "ab->a")).ok());
  const OpRow* row = FindOp("maptest.Sums");
  ASSERT_NE(row, nullptr);
  EXPECT_FALSE(row->Has(kHost));
  EXPECT_FALSE(row->Has(kElementwise));
  EXPECT_NE(FactsOf(*row).map, nullptr);
  ASSERT_TRUE(RegisterOp(SumsColumns("Lies", "ab->b")).ok());
  const Node node = {.op = "maptest.Lies", .name = "node", .inputs = {0}, .outputs = {1}};
  const auto lies = Evaluate(
      node, {Tensor::FromVector<float>(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})}, 1 << 20);
  EXPECT_THAT(lies.status().message(), HasSubstr("have 2 and 3 places"));
}

TEST(MapTextTest, AnOpIsRefusedForItsMap) {
  EXPECT_THAT(RegisterOp(SumsColumns("Bad", "ab")).message(),
              HasSubstr("op 'maptest.Bad': its map 'ab' has no single '->'"));
  RegisteredOp both = SumsColumns("Both", "ab->a");
  both.elementwise = true;
  EXPECT_THAT(RegisterOp(std::move(both)).message(), HasSubstr("is elementwise and has a map"));
}

}  // namespace
}  // namespace reprise
