#include "runtime/graph/held_graph.h"

#include <gtest/gtest.h>

#include <utility>

#include "runtime/graph/graph.h"

namespace reprise {
namespace {

Graph OneInput(const char* name) {
  Graph graph;
  graph.AddInput(name, DType::kFloat32, {});
  return graph;
}

TEST(HeldGraphTest, IsEmptyAtFirst) {
  const HeldGraph held;
  EXPECT_TRUE(held->inputs().empty());
}

TEST(HeldGraphTest, ACopyIsAGraphOfItsOwn) {
  HeldGraph held = OneInput("x");
  HeldGraph copy = held;
  copy->AddInput("y", DType::kFloat32, {});
  EXPECT_EQ(held->inputs().size(), 1u);
  EXPECT_EQ(copy->inputs().size(), 2u);
  held = copy;
  EXPECT_EQ(held->inputs().size(), 2u);
}

TEST(HeldGraphTest, ATakenOneMovesWithoutACopy) {
  HeldGraph held = OneInput("x");
  const Graph* const graph = &*held;
  HeldGraph taken = std::move(held);
  EXPECT_EQ(&*taken, graph);
  EXPECT_NE(taken->FindValue("x"), kNone);
}

}  // namespace
}  // namespace reprise
