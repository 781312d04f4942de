#include "runtime/memory/lifetime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/graph/graph.h"
#include "runtime/memory/planner.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using Home = Buffer::Home;

// Adds a node whose results all have shape [elements].
std::vector<ValueId> Apply(Graph& graph, std::vector<ValueId> inputs, int64_t elements = 100,
                           size_t num_outputs = 1) {
  const NodeId node = graph.AddNode("Op", std::move(inputs), {}, num_outputs);
  const std::vector<ValueId> outputs = graph.node(node).outputs;
  for (ValueId output : outputs) {
    graph.value(output).dtype = DType::kFloat32;
    graph.value(output).shape = Shape{elements};
  }
  return outputs;
}

ValueId Input(Graph& graph, int64_t elements = 100) {
  return graph.AddInput("", DType::kFloat32, {Dim{.size = elements}});
}

const Buffer& BufferOf(const Lifetimes& lifetimes, ValueId value) {
  return lifetimes.buffers[lifetimes.buffer_of_value[value]];
}

TEST(LifetimeTest, EachHomeHoldsItsValues) {
  Graph graph;
  const ValueId unused = Input(graph);
  const ValueId x = Input(graph);
  const ValueId constant = graph.AddConstant("c", Tensor::Int64s({1, 2, 3}));
  const ValueId parameter =
      graph.AddParameter("p", ParameterExpr::Leaf(0, DType::kFloat32, Shape{400}));
  const ValueId y = Apply(graph, {x, constant, parameter})[0];
  const ValueId z = Apply(graph, {y})[0];
  graph.AddOutput(z);

  auto lifetimes = AnalyzeLifetimes(graph, std::vector<NodeMemory>(2));
  ASSERT_TRUE(lifetimes.ok()) << lifetimes.status();
  EXPECT_EQ(BufferOf(*lifetimes, unused).home, Home::kInput);
  EXPECT_EQ(BufferOf(*lifetimes, unused).index, 0);
  EXPECT_EQ(BufferOf(*lifetimes, x).home, Home::kInput);
  EXPECT_EQ(BufferOf(*lifetimes, x).index, 1);
  EXPECT_EQ(BufferOf(*lifetimes, x).bytes, 400u);
  EXPECT_EQ(BufferOf(*lifetimes, constant).home, Home::kConstant);
  EXPECT_EQ(BufferOf(*lifetimes, constant).index, constant);
  EXPECT_EQ(BufferOf(*lifetimes, constant).bytes, 24u);
  EXPECT_EQ(BufferOf(*lifetimes, parameter).home, Home::kParameter);
  EXPECT_EQ(BufferOf(*lifetimes, parameter).index, parameter);
  EXPECT_EQ(BufferOf(*lifetimes, y).home, Home::kArena);
  EXPECT_EQ(BufferOf(*lifetimes, y).first, 0);
  EXPECT_EQ(BufferOf(*lifetimes, y).last, 1);
  EXPECT_EQ(BufferOf(*lifetimes, z).home, Home::kOutput);
  EXPECT_EQ(BufferOf(*lifetimes, z).index, 0);
}

TEST(LifetimeTest, AViewKeepsItsInputAlive) {
  Graph graph;
  const ValueId x = Input(graph);
  const ValueId a = Apply(graph, {x})[0];     // 0
  const ValueId view = Apply(graph, {a})[0];  // 1
  const ValueId b = Apply(graph, {x})[0];     // 2
  const ValueId c = Apply(graph, {view, b})[0];
  graph.AddOutput(c);
  std::vector<NodeMemory> nodes(4);
  nodes[1].view = true;
  auto lifetimes = AnalyzeLifetimes(graph, nodes);
  ASSERT_TRUE(lifetimes.ok());
  EXPECT_EQ(lifetimes->buffer_of_value[a], lifetimes->buffer_of_value[view]);
  EXPECT_EQ(BufferOf(*lifetimes, a).first, 0);
  EXPECT_EQ(BufferOf(*lifetimes, a).last, 3);
}

TEST(LifetimeTest, AViewThatIsAnOutputPutsItsRootIntoTheOutputSpace) {
  Graph graph;
  const ValueId a = Apply(graph, {Input(graph)})[0];
  const ValueId view = Apply(graph, {a})[0];
  const ValueId late = Apply(graph, {a})[0];
  graph.AddOutput(late);
  graph.AddOutput(view);
  std::vector<NodeMemory> nodes(3);
  nodes[1].view = true;
  nodes[2].in_place = 0;  // would overwrite the output
  auto lifetimes = AnalyzeLifetimes(graph, nodes);
  ASSERT_TRUE(lifetimes.ok());
  EXPECT_EQ(BufferOf(*lifetimes, a).home, Home::kOutput);
  EXPECT_EQ(BufferOf(*lifetimes, a).index, 1);
  EXPECT_EQ(BufferOf(*lifetimes, late).index, 0);
  EXPECT_NE(lifetimes->buffer_of_value[late], lifetimes->buffer_of_value[a]);
}

TEST(LifetimeTest, AnOutputThatIsAnInputOrViewOfOneIsRefused) {
  for (bool view : {false, true}) {
    Graph graph;
    const ValueId x = Input(graph);
    const ValueId y = Apply(graph, {x})[0];
    graph.AddOutput(y);
    graph.AddOutput(view ? y : x);
    std::vector<NodeMemory> nodes(1);
    nodes[0].view = view;
    auto lifetimes = AnalyzeLifetimes(graph, nodes);
    EXPECT_EQ(lifetimes.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(lifetimes.status().message()), HasSubstr("needs an Identity"));
  }
}

TEST(LifetimeTest, TwoOutputsThatShareBytesAreRefused) {
  Graph graph;
  const ValueId a = Apply(graph, {Input(graph)})[0];
  graph.AddOutput(a);
  graph.AddOutput(a);
  auto lifetimes = AnalyzeLifetimes(graph, std::vector<NodeMemory>(1));
  EXPECT_EQ(lifetimes.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(lifetimes.status().message()), HasSubstr("output 0"));
}

struct InPlaceCase {
  const char* name;
  bool taken;
  // Builds the graph and returns {input, output} of the node with the offer, which is node 1.
  std::pair<ValueId, ValueId> (*build)(Graph&);
};

class InPlaceTest : public testing::TestWithParam<InPlaceCase> {};

TEST_P(InPlaceTest, OfferIsTakenOnlyWhereSafe) {
  Graph graph;
  const auto [input, output] = GetParam().build(graph);
  std::vector<NodeMemory> nodes(graph.num_nodes());
  nodes[1].in_place = 0;
  auto lifetimes = AnalyzeLifetimes(graph, nodes);
  ASSERT_TRUE(lifetimes.ok()) << lifetimes.status();
  EXPECT_EQ(lifetimes->buffer_of_value[input] == lifetimes->buffer_of_value[output],
            GetParam().taken);
}

std::pair<ValueId, ValueId> Finish(Graph& graph, ValueId input, ValueId output,
                                   std::vector<ValueId> last_inputs) {
  graph.AddOutput(Apply(graph, std::move(last_inputs))[0]);
  return {input, output};
}

INSTANTIATE_TEST_SUITE_P(
    Cases, InPlaceTest,
    testing::Values(InPlaceCase{"DeadInput", true,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)})[0];
                                  const ValueId b = Apply(graph, {a})[0];
                                  return Finish(graph, a, b, {b});
                                }},
                    InPlaceCase{"InputUsedLater", false,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)})[0];
                                  const ValueId b = Apply(graph, {a})[0];
                                  return Finish(graph, a, b, {a, b});
                                }},
                    InPlaceCase{"InputUsedTwiceByTheNode", false,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)})[0];
                                  const ValueId b = Apply(graph, {a, a})[0];
                                  return Finish(graph, a, b, {b});
                                }},
                    InPlaceCase{"InputTooSmall", false,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)}, 10)[0];
                                  const ValueId b = Apply(graph, {a}, 11)[0];
                                  return Finish(graph, a, b, {b});
                                }},
                    InPlaceCase{"InputLarger", true,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)}, 11)[0];
                                  const ValueId b = Apply(graph, {a}, 10)[0];
                                  return Finish(graph, a, b, {b});
                                }},
                    InPlaceCase{"InputOfTheGraph", false,
                                [](Graph& graph) {
                                  const ValueId x = Input(graph);
                                  const ValueId a = Apply(graph, {x})[0];
                                  const ValueId b = Apply(graph, {x})[0];
                                  return Finish(graph, x, b, {a, b});
                                }},
                    InPlaceCase{"ResultIsAnOutput", false,
                                [](Graph& graph) {
                                  const ValueId a = Apply(graph, {Input(graph)})[0];
                                  const ValueId b = Apply(graph, {a})[0];
                                  graph.AddOutput(b);
                                  return std::pair{a, b};
                                }}),
    [](const auto& info) { return info.param.name; });

TEST(LifetimeTest, AWorkspaceLivesAtItsNodeAlone) {
  Graph graph;
  const ValueId a = Apply(graph, {Input(graph)})[0];
  graph.AddOutput(Apply(graph, {a})[0]);
  std::vector<NodeMemory> nodes(2);
  nodes[1].workspace_bytes = 77;
  auto lifetimes = AnalyzeLifetimes(graph, nodes);
  ASSERT_TRUE(lifetimes.ok());
  EXPECT_EQ(lifetimes->workspace_of_node[0], -1);
  const Buffer& buffer = lifetimes->buffers[lifetimes->workspace_of_node[1]];
  EXPECT_EQ(buffer.home, Home::kArena);
  EXPECT_EQ(buffer.bytes, 77u);
  EXPECT_EQ(buffer.first, 1);
  EXPECT_EQ(buffer.last, 1);
}

TEST(LifetimeTest, AGraphThatIsNotCompactedIsRefused) {
  Graph graph;
  const ValueId a = Apply(graph, {Input(graph)})[0];
  const ValueId dead = Apply(graph, {a})[0];
  graph.AddOutput(a);
  graph.RemoveNode(graph.value(dead).producer);
  EXPECT_EQ(AnalyzeLifetimes(graph, std::vector<NodeMemory>(2)).status().code(),
            absl::StatusCode::kInternal);
}

// Runs a graph over tagged bytes: every result writes its own id into each of its bytes, every
// use checks that its input's bytes still hold the tag of the value that was written there last
// on the way to it. A buffer that overlaps by mistake is overwritten before it is read.
class Replay {
 public:
  Replay(const Graph& graph, const std::vector<NodeMemory>& nodes, const Lifetimes& lifetimes)
      : graph_(graph), nodes_(nodes), lifetimes_(lifetimes) {
    std::vector<BufferRequest> requests;
    for (const Buffer& buffer : lifetimes.buffers) {
      if (buffer.home == Home::kArena) {
        requests.push_back({buffer.bytes, buffer.first, buffer.last});
      }
    }
    const MemoryPlan plan = PlanMemory(requests);
    size_t next = 0;
    size_t end = plan.bytes;  // other homes lie after the arena
    for (const Buffer& buffer : lifetimes.buffers) {
      if (buffer.home == Home::kArena) {
        place_.push_back(plan.offsets[next++]);
      } else {
        place_.push_back(end);
        end += buffer.bytes;
      }
    }
    bytes_.assign(end, kNone);
  }

  void Run() {
    for (ValueId input : graph_.inputs()) Write(input, input);
    for (NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      for (ValueId input : node.inputs) Check(input);
      if (nodes_[id].view) {
        tag_[node.output(0)] = TagOf(node.input(0));
        continue;
      }
      const int workspace = lifetimes_.workspace_of_node[id];
      if (workspace >= 0) Fill(workspace, -100, lifetimes_.buffers[workspace].bytes);
      // Inputs are still there while the node writes, but for the one taken in place.
      for (ValueId output : node.outputs) Write(output, output);
      for (ValueId input : node.inputs) {
        if (lifetimes_.buffer_of_value[input] != lifetimes_.buffer_of_value[node.output(0)]) {
          Check(input);
        } else {
          ++in_place_;
          EXPECT_EQ(node.input(nodes_[id].in_place), input);
        }
      }
      for (ValueId output : node.outputs) Check(output);
    }
    for (ValueId output : graph_.outputs()) Check(output);
  }

  int in_place() const { return in_place_; }

 private:
  int TagOf(ValueId value) const { return tag_.count(value) ? tag_.at(value) : value; }
  size_t BytesOf(ValueId value) const { return NumElements(*graph_.value(value).shape) * 4; }
  void Fill(int buffer, int tag, size_t bytes) {
    std::fill_n(bytes_.begin() + place_[buffer], bytes, tag);
  }
  void Write(ValueId value, int tag) {
    Fill(lifetimes_.buffer_of_value[value], tag, BytesOf(value));
  }
  void Check(ValueId value) const {
    const auto begin = bytes_.begin() + place_[lifetimes_.buffer_of_value[value]];
    EXPECT_TRUE(std::all_of(begin, begin + BytesOf(value),
                            [tag = TagOf(value)](int byte) { return byte == tag; }))
        << "value " << value << " was overwritten";
  }

  const Graph& graph_;
  const std::vector<NodeMemory>& nodes_;
  const Lifetimes& lifetimes_;
  std::vector<size_t> place_;
  std::vector<int> bytes_;
  std::map<ValueId, int> tag_;  // maps a view to its root
  int in_place_ = 0;
};

TEST(LifetimeTest, RandomGraphsNeverOverwriteAValueThatIsReadLater) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int in_place = 0;
  for (int round = 0; round < 300; ++round) {
    Graph graph;
    std::vector<ValueId> values;
    for (int i = 0; i < 1 + below(3); ++i) values.push_back(Input(graph, 1 + below(40)));
    std::vector<NodeMemory> nodes;
    std::vector<ValueId> written;  // results of nodes that are no views: candidates for outputs
    const int count = 2 + below(40);
    for (int i = 0; i < count; ++i) {
      NodeMemory memory;
      // Mostly recent values, so that many die.
      const auto pick = [&] {
        return values[values.size() - 1 - std::min<int>(values.size() - 1, below(1 + below(8)))];
      };
      if (below(5) == 0) {
        memory.view = true;
        const ValueId input = pick();
        values.push_back(Apply(graph, {input}, NumElements(*graph.value(input).shape))[0]);
      } else {
        std::vector<ValueId> inputs = {pick()};
        while (below(2) == 0) inputs.push_back(pick());
        if (below(2) == 0) memory.in_place = below(inputs.size());
        if (below(4) == 0) memory.workspace_bytes = below(500);
        for (ValueId output : Apply(graph, inputs, 1 + below(40), 1 + below(2))) {
          values.push_back(output);
          written.push_back(output);
        }
      }
      nodes.push_back(memory);
    }
    std::set<ValueId> outputs;
    if (written.empty()) continue;
    for (int i = 0; i < 1 + below(2); ++i) outputs.insert(written[below(written.size())]);
    for (ValueId output : outputs) graph.AddOutput(output);

    auto lifetimes = AnalyzeLifetimes(graph, nodes);
    ASSERT_TRUE(lifetimes.ok()) << lifetimes.status();
    Replay replay(graph, nodes, *lifetimes);
    replay.Run();
    in_place += replay.in_place();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(in_place, 300);  // the offers are not simply ignored
}

}  // namespace
}  // namespace reprise
