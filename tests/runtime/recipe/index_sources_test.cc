#include "runtime/recipe/index_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

// Returns the sources of the operands of the last node of `text`.
std::vector<IndexSource> SourcesOfLast(absl::string_view text) {
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
              ElementsAre(IndexSource{}, IndexSource{.input = 1}));
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
              ElementsAre(IndexSource{}, IndexSource{}));
}

TEST(IndexSourcesTest, ElementsThatAreOnlyMovedAreSaidToBeTheInputs) {
  EXPECT_THAT(SourcesOfLast(R"(graph {
    input %t: f32[8, 3]
    input %i: i32[2, 1]
    const %shape: i64[1] = {2}
    %a: i32[2] = Reshape(%i, %shape)
    %b: i64[2] = Cast(%a) {to = 7}
    %y: f32[2, 3] = Gather(%t, %b)
    output %y
  })"),
              ElementsAre(IndexSource{}, IndexSource{.input = 1, .moved = true}));
}

}  // namespace
}  // namespace reprise
