#include "runtime/recipe/index_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

// Returns the sources of the operands of the last node of `text`.
std::vector<int> SourcesOfLast(absl::string_view text) {
  absl::StatusOr<Graph> graph = Parse(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.status();
    return {};
  }
  return IndexSources(*graph, graph->node(graph->NodeIds().back()));
}

TEST(IndexSourcesTest, AnInputThatIsReadInTwoWaysIsNamed) {
  EXPECT_THAT(SourcesOfLast(R"(graph {
    input %t: f32[8, 3]
    input %i: i64[2]
    const %two: i64[] = {2}
    %a: i64[2] = Mul(%i, %two)
    %b: i64[2] = Add(%a, %i)
    %y: f32[2, 3] = Gather(%t, %b)
    output %y
  })"),
              ElementsAre(-1, 1));
}

TEST(IndexSourcesTest, OfTwoInputsNeitherIs) {
  EXPECT_THAT(SourcesOfLast(R"(graph {
    input %t: f32[8, 3]
    input %i: i64[2]
    input %j: i64[2]
    %b: i64[2] = Add(%i, %j)
    %y: f32[2, 3] = Gather(%t, %b)
    output %y
  })"),
              ElementsAre(-1, -1));
}

}  // namespace
}  // namespace reprise
