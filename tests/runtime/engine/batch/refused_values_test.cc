// A value of an input that an op cannot use ends its own request, on every device, alone and with
// others: INVALID_ARGUMENT that names input, value and range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/reference/reference_device.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr int kLong = onnx::TensorProto::INT64;
constexpr int64_t kWidth = 4;
constexpr int64_t kLeast = INT64_MIN, kMost = INT64_MAX;

// An engine over `device`, and a stream to run it on.
struct Runner {
  explicit Runner(const Device& device)
      : engine({.device = &device, .clock = &clock, .cores = &cores}, observer) {
    stream = *Stream::Create({.cores = &cores, .max_threads = 1});
  }
  absl::StatusOr<std::shared_ptr<Model>> Load(const ModelBuilder& b) {
    return engine.Load({.id = {"m", 1},
                        .path = folder.Write("m.onnx", b.Bytes()),
                        .capture = CapturePolicy::kInline});
  }

  const TempFolder folder;
  SteadyClock clock;
  HelperPool cores{1};
  RememberingObserver observer;
  Engine engine;
  std::unique_ptr<Stream> stream;
};

// A model of `x`, floats [batch, 4] of ones, and `v`, integers of which an op takes only some.
struct Case {
  std::string name;
  std::vector<std::string> dims;  // v's
  std::function<void(ModelBuilder&)> build;
  std::vector<int64_t> good;
  std::vector<std::vector<int64_t>> bad;
  // Parts of the error for the first of `bad`, next to the name of v; the others fail alike.
  std::vector<std::string> says;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

onnx::NodeProto& Op(ModelBuilder& b, const std::string& op, std::vector<std::string> inputs,
                    const std::string& domain = "") {
  return b.Node(op, inputs, {"y"}, "the_op", domain);
}

ModelBuilder& Longs(ModelBuilder& b, const std::string& name, const std::vector<int64_t>& values) {
  b.Initializer<int64_t>(name, kLong, {static_cast<int64_t>(values.size())}, values);
  return b;
}

std::vector<Case> Cases() {
  const auto along = [](const std::string& op, int64_t axis) {
    return [=](ModelBuilder& b) { SetAttribute(Op(b, op, {"x", "v"}), "axis", axis); };
  };
  const auto plain = [](const std::string& op) {
    return [=](ModelBuilder& b) { Op(b, op, {"x", "v"}); };
  };
  return {
      {"CumSum", {}, plain("CumSum"), {1}, {{7}, {-3}, {kLeast}}, {"7", "[-2, 1]"}},
      {"CumSumOfOne", {"1"}, plain("CumSum"), {-1}, {{2}, {kMost}}, {"2", "[-2, 1]"}},
      {"GatherElements",
       {"batch", "1"},
       along("GatherElements", 1),
       {3},
       {{4}, {-5}, {kLeast}},
       {"4", "[-4, 3]"}},
      {"Gather", {}, along("Gather", 1), {-4}, {{9}, {kLeast}}, {"9", "[-4, 3]"}},
      {"GatherND",
       {"batch", "1"},
       [](ModelBuilder& b) {
         SetAttribute(Op(b, "GatherND", {"x", "v"}), "batch_dims", int64_t{1});
       },
       {1},
       {{4}, {-5}},
       {"4", "[-4, 3]"}},
      {"ScatterElements",
       {"batch", "4"},
       [](ModelBuilder& b) {
         SetAttribute(Op(b, "ScatterElements", {"x", "v", "x"}), "axis", int64_t{1});
       },
       {0, 1, 2, 3},
       {{0, 1, 2, 6}, {-5, 0, 0, 0}},
       {"6", "[-4, 3]"}},
      {"ReverseSequence",
       {"batch"},
       [](ModelBuilder& b) {
         onnx::NodeProto& node = Op(b, "ReverseSequence", {"x", "v"});
         SetAttribute(node, "batch_axis", int64_t{0});
         SetAttribute(node, "time_axis", int64_t{1});
       },
       {4},
       {{5}, {-1}, {kLeast}},
       {"5", "[0, 4]"}},
      {"RnnLengths",
       {"batch"},
       [](ModelBuilder& b) {
         Longs(b, "axes", {0});
         b.Floats("w", {1, 2, kWidth}, std::vector<float>(8, 0.1f));
         b.Floats("r", {1, 2, 2}, std::vector<float>(4, 0.1f));
         b.Node("Unsqueeze", {"x", "axes"}, {"steps"});
         b.Node("Cast", {"v"}, {"lengths"});
         SetAttribute(*b.graph().mutable_node(1), "to", int64_t{onnx::TensorProto::INT32});
         SetAttribute(Op(b, "RNN", {"steps", "w", "r", "", "lengths"}), "hidden_size", int64_t{2});
       },
       {1},
       {{2}, {-1}},
       {"2", "[0, 1]"}},
      {"EmbedLayerNormalization",
       {"batch", "2"},
       [](ModelBuilder& b) {
         b.Floats("words", {8, 2}, std::vector<float>(16, 1));
         b.Floats("places", {2, 2}, std::vector<float>(4, 1));
         b.Floats("gamma", {2}, {1, 1});
         b.Floats("beta", {2}, {0, 0});
         b.Node("Cast", {"v"}, {"ids"});
         SetAttribute(*b.graph().mutable_node(0), "to", int64_t{onnx::TensorProto::INT32});
         b.Node("EmbedLayerNormalization", {"ids", "", "words", "places", "", "gamma", "beta"},
                {"y", "index"}, "the_op", "com.microsoft");
       },
       {0, 7},
       {{0, 8}, {-1, 0}},
       {"8", "[0, 7]"}},
      {"TopK",
       {"1"},
       [](ModelBuilder& b) {
         b.Node("TopK", {"x", "v"}, {"y", "places"}, "the_op");
       },
       {2},
       {{9}, {-1}, {kLeast}},
       {"9", "[0, 4]"}},
      {"OneHot",
       {},
       [](ModelBuilder& b) {
         Longs(b, "ids", {1, 2});
         b.Floats("values", {2}, {0, 1});
         b.Node("OneHot", {"ids", "v", "values"}, {"hot"}, "the_op");
         b.Node("ReduceSum", {"hot"}, {"sum"});
         b.Node("Add", {"x", "sum"}, {"y"});
       },
       {3},
       {{-2}, {kMost}},
       {"-2"}},
      {"Pad",
       {"4"},
       plain("Pad"),
       {0, 1, 0, 1},
       {{0, -9, 0, 0}, {0, kMost, 0, kMost}},
       {"-9", "4"}},
      {"Tile", {"2"}, plain("Tile"), {1, 2}, {{1, -3}, {kMost, kMost}}, {"-3"}},
      {"Expand", {"2"}, plain("Expand"), {1, 4}, {{1, 5}, {-1, 4}, {kMost, 4}}, {"5"}},
      {"Reshape", {"2"}, plain("Reshape"), {-1, 4}, {{-1, 3}, {-2, 4}, {kMost, kMost}}, {"3"}},
      {"Split",
       {"2"},
       [](ModelBuilder& b) {
         SetAttribute(b.Node("Split", {"x", "v"}, {"y", "rest"}, "the_op"), "axis", int64_t{1});
       },
       {1, 3},
       {{1, 9}, {-1, 5}, {kMost, kMost}},
       {"9", "4"}},
      {"SliceStep",
       {"1"},
       [](ModelBuilder& b) {
         Longs(Longs(Longs(b, "begin", {0}), "end", {4}), "axis", {1});
         Op(b, "Slice", {"x", "begin", "end", "axis", "v"});
       },
       {2},
       {{0}},
       {"0"}},
      {"SliceAxis",
       {"1"},
       [](ModelBuilder& b) {
         Longs(Longs(b, "begin", {0}), "end", {2});
         Op(b, "Slice", {"x", "begin", "end", "v"});
       },
       {1},
       {{2}, {kLeast}},
       {"2"}},
      {"ReduceSumAxis", {"1"}, plain("ReduceSum"), {1}, {{5}, {kLeast}}, {"5"}},
      {"UnsqueezeAxis", {"1"}, plain("Unsqueeze"), {1}, {{5}, {kLeast}}, {"5"}},
      {"RangeStep",
       {},
       [](ModelBuilder& b) {
         b.Initializer<int64_t>("begin", kLong, {}, {0});
         b.Initializer<int64_t>("end", kLong, {}, {8});
         b.Node("Range", {"begin", "end", "v"}, {"steps"}, "the_op");
         b.Node("Size", {"steps"}, {"size"});
         b.Node("Cast", {"size"}, {"count"});
         SetAttribute(*b.graph().mutable_node(2), "to", int64_t{onnx::TensorProto::FLOAT});
         b.Node("Add", {"x", "count"}, {"y"});
       },
       {2},
       {{0}},
       {"0"}},
      {"ConstantOfShape",
       {"1"},
       [](ModelBuilder& b) {
         b.Node("ConstantOfShape", {"v"}, {"zeros"}, "the_op");
         b.Node("ReduceSum", {"zeros"}, {"sum"});
         b.Node("Add", {"x", "sum"}, {"y"});
       },
       {5},
       {{-4}, {kMost}},
       {"-4"}},
      {"ResizeSizes",
       {"2"},
       [](ModelBuilder& b) {
         Op(b, "Resize", {"x", "", "", "v"});
       },
       {1, 8},
       {{1, -8}, {1, kMost}},
       {"-8"}},
  };
}

// A number of rows, a request of that many, and its values.
struct Sent {
  Sent(int64_t rows, const Case& one, const std::vector<int64_t>& values)
      : x(static_cast<size_t>(rows * kWidth), 1) {
    Shape dims;
    for (const std::string& dim : one.dims) dims.push_back(dim == "batch" ? rows : std::stoll(dim));
    for (int64_t i = 0; i < NumElements(dims); ++i) v.push_back(values[i % values.size()]);
    request.inputs = {{{rows, kWidth}, x.data()}, {dims, v.data()}};
  }

  std::vector<float> x;
  std::vector<int64_t> v;
  Request request;
};

class RefusedValuesTest : public testing::TestWithParam<Case> {
 protected:
  static ModelBuilder Build() {
    ModelBuilder b(18);
    auto* microsoft = b.model().add_opset_import();
    microsoft->set_domain("com.microsoft");
    microsoft->set_version(1);
    b.Input("x", {"batch", "4"}).Input("v", GetParam().dims, kLong).Output("y");
    GetParam().build(b);
    return b;
  }

  static void Check(Runner& runner) {
    const auto model = runner.Load(Build());
    ASSERT_TRUE(model.ok()) << model.status();
    const Sent good(1, GetParam(), GetParam().good);
    const auto run = [&](const Sent& sent) {
      return runner.engine.RunOne(**model, sent.request, *runner.stream);
    };
    const Response right = run(good);
    ASSERT_TRUE(right.status.ok()) << right.status;
    for (const std::vector<int64_t>& values : GetParam().bad) {
      const Sent bad(1, GetParam(), values);
      const absl::Status alone = run(bad).status;
      EXPECT_FALSE(alone.ok()) << testing::PrintToString(values);
      if (&values == &GetParam().bad[0]) {
        EXPECT_TRUE(absl::IsInvalidArgument(alone)) << alone;
        // The error names it as an operand, or as one of the inputs that decide shapes.
        EXPECT_THAT(std::string(alone.message()),
                    testing::AnyOf(HasSubstr("'v'"), HasSubstr("v=[")));
        for (const std::string& text : GetParam().says) {
          EXPECT_THAT(std::string(alone.message()), HasSubstr(text));
        }
      }
      // The other request in the batch is answered.
      BatchPlan plan(**model);
      const auto of_good = (*model)->Measure(good.request), of_bad = (*model)->Measure(bad.request);
      ASSERT_TRUE(of_good.ok() && of_bad.ok());
      ASSERT_TRUE(plan.TryAdd(*of_good));
      if (!plan.TryAdd(*of_bad)) continue;
      const Request* both[] = {&good.request, &bad.request};
      const std::vector<Response> together = runner.engine.Run(plan, both, *runner.stream);
      ASSERT_TRUE(together[0].status.ok()) << together[0].status;
      EXPECT_EQ(together[0].outputs[0].bytes, right.outputs[0].bytes);
      EXPECT_EQ(together[1].status.message(), alone.message());
    }
    const Response again = run(good);
    ASSERT_TRUE(again.status.ok()) << again.status;
    EXPECT_EQ(again.outputs[0].bytes, right.outputs[0].bytes);
  }
};

TEST_P(RefusedValuesTest, OnTheCpu) {
  const CpuDevice device(DetectIsa());
  Runner runner(device);
  Check(runner);
}

TEST_P(RefusedValuesTest, OnTheReference) {
  const ReferenceDevice device;
  Runner runner(device);
  Check(runner);
}

INSTANTIATE_TEST_SUITE_P(Ops, RefusedValuesTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// The reference device, but Neg of a number above 1e30 cannot be computed: the launch is given up
// at once, as a reference kernel gives up that returns an error.
class GivesUp final : public Device {
 public:
  absl::string_view name() const override { return "gives up"; }
  std::string fingerprint() const override { return "gives up"; }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override {
    if (graph.node(node).op != "Neg") return {};
    return {{.kernel = "neg"}};
  }
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption&) const override {
    BoundKernel bound;
    const Value& x = graph.value(graph.node(node).inputs[0]);
    bound.params = std::make_shared<int64_t>(NumElements(*x.shape));
    bound.run = [](const LaunchArgs& launch) {
      const auto* x = static_cast<const float*>(launch.operands[0]);
      auto* y = static_cast<float*>(launch.operands[1]);
      for (int64_t i = 0; i < *static_cast<const int64_t*>(launch.params); ++i) {
        y[i] = -x[i];
        if (x[i] <= 1e30f) continue;
        return launch.frame->errors->Fail(launch.launch,
                                          absl::InvalidArgumentError("it is too much"));
      }
    };
    return bound;
  }
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override {
    return PrepareWithReference(op, attributes, inputs);
  }
};

TEST(RefusedValuesTest, ALaunchThatFailsEndsTheRequestWhoseDataItWas) {
  const GivesUp device;
  Runner runner(device);
  ModelBuilder b;
  b.Input("x", {"batch", "4"}).Output("y");
  Op(b, "Neg", {"x"});
  const auto model = runner.Load(b);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> bad = {1, 2e30f, 3, 4}, first = {5, 6, 7, 8}, last = {9, 10, 11, 12};
  std::vector<Request> requests(3);
  requests[0].inputs = {{{1, kWidth}, first.data()}};
  requests[1].inputs = {{{1, kWidth}, bad.data()}};
  requests[2].inputs = {{{1, kWidth}, last.data()}};
  BatchPlan plan(**model);
  std::vector<const Request*> together;
  for (const Request& request : requests) {
    const auto shape = (*model)->Measure(request);
    ASSERT_TRUE(shape.ok()) << shape.status();
    ASSERT_TRUE(plan.TryAdd(*shape, nullptr, /*chosen=*/true))
        << (*model)->axes()[0].certificate.reason;
    together.push_back(&request);
  }
  const std::vector<Response> responses = runner.engine.Run(plan, together, *runner.stream);
  EXPECT_TRUE(absl::IsInvalidArgument(responses[1].status)) << responses[1].status;
  EXPECT_THAT(std::string(responses[1].status.message()),
              testing::AllOf(HasSubstr("the_op"), HasSubstr("it is too much")));
  EXPECT_TRUE(responses[1].outputs.empty());
  for (const auto& [i, sent] : {std::pair(0, &first), std::pair(2, &last)}) {
    ASSERT_TRUE(responses[i].status.ok()) << responses[i].status;
    ASSERT_EQ(responses[i].outputs[0].bytes.size(), kWidth * sizeof(float));
    const auto* y = reinterpret_cast<const float*>(responses[i].outputs[0].bytes.data());
    for (int64_t k = 0; k < kWidth; ++k) EXPECT_EQ(y[k], -(*sent)[k]);
  }
  // Alone as well, and the next one is answered.
  EXPECT_TRUE(
      absl::IsInvalidArgument(runner.engine.RunOne(**model, requests[1], *runner.stream).status));
  EXPECT_TRUE(runner.engine.RunOne(**model, requests[0], *runner.stream).status.ok());
}

}  // namespace
}  // namespace reprise
