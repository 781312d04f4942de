// A fault that is planted in a kernel is found by its node; the search itself on made-up faults.
#include "tools/bisect/bisect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/model_builder.h"

namespace reprise::cli {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

// A CPU whose kernel of one node computes another node.
class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::string label, std::function<void(Node&)> change)
      : label_(std::move(label)), change_(std::move(change)) {}

  absl::string_view name() const override { return "faulty"; }
  std::string fingerprint() const override { return "faulty"; }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override {
    if (IsFaulty(graph, node)) return {{.kernel = "wrong"}};
    return cpu_.Options(graph, node);
  }
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption& option) const override {
    if (!IsFaulty(graph, node)) return cpu_.Bind(graph, node, option);
    Graph other = graph;
    change_(other.node(node));
    return BindReference(other, node);
  }
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override {
    return cpu_.Prepare(op, attributes, inputs);
  }

 private:
  bool IsFaulty(const Graph& graph, NodeId node) const {
    return NodeLabel(graph.node(node)) == label_;
  }

  const CpuDevice cpu_;
  const std::string label_;
  const std::function<void(Node&)> change_;
};

class BisectTest : public testing::Test {
 protected:
  // Two layers: y = LayerNorm(Sin(x w) w), its norm written out.
  BisectTest() {
    ModelBuilder b;
    b.Input("x", {"n", "8"}).Output("y");
    std::vector<float> weights(64);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) / 8 - 0.3f;
    b.Floats("w", {8, 8}, weights);
    b.Floats("eps", {}, {1e-5f});
    b.Floats("two", {}, {2});
    b.Node("MatMul", {"x", "w"}, {"a"}, "first");
    b.Node("Sin", {"a"}, {"b"}, "sin");
    b.Node("MatMul", {"b", "w"}, {"c"}, "second");
    SetAttribute(b.Node("ReduceMean", {"c"}, {"mean"}, "mean"), "axes", std::vector<int64_t>{-1});
    b.Node("Sub", {"c", "mean"}, {"d"}, "sub");
    b.Node("Pow", {"d", "two"}, {"e"}, "pow");
    SetAttribute(b.Node("ReduceMean", {"e"}, {"var"}, "var"), "axes", std::vector<int64_t>{-1});
    b.Node("Add", {"var", "eps"}, {"f"}, "add");
    b.Node("Sqrt", {"f"}, {"g"}, "sqrt");
    b.Node("Div", {"d", "g"}, {"y"}, "div");
    auto imported = ImportOnnxBytes(b.Bytes());
    EXPECT_TRUE(imported.ok()) << imported.status();
    subject_.graph = std::move(imported->graph);
    subject_.parameters = std::move(imported->parameters);
    subject_.files = std::move(imported->files);
    subject_.binding.axes["n"] = 3;
    std::vector<float> x(24);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    subject_.inputs["x"] = Tensor::FromVector<float>(DType::kFloat32, {3, 8}, x);
  }

  BisectSubject subject_;
};

TEST_F(BisectTest, RightDeviceAgrees) {
  const CpuDevice cpu;
  const auto culprit = Bisect(subject_, cpu, {});
  ASSERT_TRUE(culprit.ok()) << culprit.status();
  EXPECT_TRUE(culprit->agrees);
  EXPECT_LT(culprit->difference.value, 1e-5);
  EXPECT_EQ(culprit->trials, 2);
}

TEST_F(BisectTest, KernelThatIsWrongWithoutAnyFusionIsFound) {
  const FaultyDevice device("Sin 'sin'", [](Node& node) { node.op = "Cos"; });
  const auto culprit = Bisect(subject_, device, {});
  ASSERT_TRUE(culprit.ok()) << culprit.status();
  EXPECT_FALSE(culprit->agrees);
  EXPECT_FALSE(culprit->pass_is_wrong);
  EXPECT_EQ(culprit->pass, "");
  EXPECT_EQ(culprit->node, "Sin 'sin'");
  EXPECT_EQ(culprit->kernel, "wrong");
  ASSERT_EQ(culprit->kernels.size(), 1);
  EXPECT_TRUE(culprit->kernels[0].wrong);
}

TEST_F(BisectTest, KernelOfANodeThatAPassMakesIsFoundWithThatPass) {
  // The label of the node that the norm becomes.
  const CpuDevice cpu;
  const auto all = Trial(subject_, cpu).Run({.kernels = {.all = true}});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_TRUE(all->made.contains("fuse_layer_norm"));
  ASSERT_THAT(all->made.at("fuse_layer_norm"), Not(IsEmpty()));
  const std::string fused = all->made.at("fuse_layer_norm").front();
  const FaultyDevice device(fused, [](Node& node) { node.attributes.Set("epsilon", 100.0f); });
  const auto culprit = Bisect(subject_, device, {});
  ASSERT_TRUE(culprit.ok()) << culprit.status();
  EXPECT_FALSE(culprit->agrees);
  EXPECT_EQ(culprit->pass, "fuse_layer_norm");
  EXPECT_FALSE(culprit->pass_is_wrong);
  EXPECT_THAT(culprit->made, Contains(fused));
  EXPECT_EQ(culprit->node, fused);
}

TEST(FirstWrongTest, TransitionIsFoundInFewCalls) {
  for (const size_t fault : {1u, 2u, 17u, 63u, 100u}) {
    int calls = 0;
    const auto found = FirstWrong(100, [&](size_t some) -> absl::StatusOr<bool> {
      ++calls;
      return some >= fault;
    });
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, fault);
    EXPECT_LE(calls, 7);
  }
}

TEST(DifferenceTest, NumbersShapesAndPlacesOfNoNumberCount) {
  const auto floats = [](std::vector<float> values) {
    const auto size = static_cast<int64_t>(values.size());
    return std::vector<Tensor>{Tensor::FromVector<float>(DType::kFloat32, {size}, values)};
  };
  const float nan = std::nanf("");
  EXPECT_EQ(DifferenceOf(floats({1, nan}), floats({1, nan})).value, 0);
  EXPECT_DOUBLE_EQ(DifferenceOf(floats({1, -4}), floats({2, -4})).value, 0.25);
  EXPECT_TRUE(std::isinf(DifferenceOf(floats({1, 2}), floats({1, nan})).value));
  EXPECT_TRUE(std::isinf(DifferenceOf(floats({1}), floats({1, 2})).value));
  const std::vector<Tensor> one = {Tensor::Int64s({1000000})}, other = {Tensor::Int64s({1000001})};
  EXPECT_TRUE(std::isinf(DifferenceOf(one, other).value));
  EXPECT_EQ(DifferenceOf(one, one).value, 0);
}

}  // namespace
}  // namespace reprise::cli
