// The text that `reprise graph` prints at every step between a file and its kernels.
#include "tools/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/temp_folder.h"

namespace reprise::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class GraphTest : public testing::Test {
 protected:
  // x * w + b after a node that does nothing, with an activation.
  GraphTest() {
    ModelBuilder builder;
    builder.Input("x", {"batch", "16"}).Output("y");
    builder.Floats("w", {16, 32}, std::vector<float>(512, 0.5F));
    builder.Floats("b", {32}, std::vector<float>(32, 0.25F));
    builder.Node("Identity", {"x"}, {"same"}, "nothing");
    builder.Node("MatMul", {"same", "w"}, {"product"}, "product");
    builder.Node("Add", {"product", "b"}, {"sum"}, "sum");
    builder.Node("Relu", {"sum"}, {"y"}, "relu");
    path_ = folder_.Write("model.onnx", builder.Bytes());
  }

  std::string Text(GraphOptions options) {
    options.path = path_;
    testing::internal::CaptureStdout();
    const absl::Status status = PrintGraph(options);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  const TempFolder folder_;
  std::string path_;
};

TEST_F(GraphTest, WithoutSizesTheGraphIsSymbolic) {
  const std::string text = Text({});
  EXPECT_THAT(text, AllOf(StartsWith("// 3 nodes with symbolic shapes\ngraph {"),
                          HasSubstr("input %x: f32[batch, 16]"), HasSubstr("MatMul("),
                          HasSubstr("Relu("), Not(HasSubstr("Identity("))));
}

TEST_F(GraphTest, WithABucketOrSizesItIsTheOneThatGetsKernels) {
  for (const char* sizes : {"b4", "batch=4"}) {
    EXPECT_THAT(Text({.bucket = sizes}),
                AllOf(StartsWith("// 1 nodes at batch=4\n"), HasSubstr("f32[4, 32]"),
                      ContainsRegex("reprise.Linear.*relu"), Not(HasSubstr("MatMul("))));
  }
}

TEST_F(GraphTest, AfterAStepTheGraphIsAsThatStepLeftIt) {
  EXPECT_THAT(Text({.after = "import"}), HasSubstr("Identity("));
  EXPECT_THAT(Text({.after = "canonicalize"}), Not(HasSubstr("Identity(")));
  EXPECT_THAT(
      Text({.bucket = "b4", .after = "specialize"}),
      AllOf(StartsWith("// 3 nodes after specialize\n"), HasSubstr("f32[4, 32] = MatMul(")));
  EXPECT_THAT(Text({.bucket = "b4", .after = "load"}), HasSubstr("f32[batch, 16]"));
  // Before products are joined, and after.
  EXPECT_THAT(Text({.bucket = "b4", .after = "canonicalize"}), HasSubstr("MatMul("));
  EXPECT_THAT(Text({.bucket = "b4", .after = "canonicalize:2"}), HasSubstr("reprise.Linear("));
  EXPECT_THAT(Text({.bucket = "b4", .after = "fuse_linear"}), HasSubstr("reprise.Linear("));
}

TEST_F(GraphTest, EachStepIsShownAndThoseWithoutEffectAreNamed) {
  const std::string text = Text({.bucket = "b4", .each = true});
  EXPECT_THAT(text, AllOf(HasSubstr("// 3 nodes after load"),
                          ContainsRegex("// 1 nodes after fuse_linear, which took [0-9.]+ ms\n"),
                          HasSubstr("// fuse_gelu changes nothing\n"),
                          HasSubstr("// canonicalize:2 changes nothing\n"),
                          HasSubstr("// finalize_outputs")));
}

TEST_F(GraphTest, StepsAreListedAsJson) {
  const auto last = nlohmann::json::parse(Text({.bucket = "b4", .json = true}));
  EXPECT_EQ(last["sizes"], "batch=4");
  EXPECT_EQ(last["nodes"], 1);
  EXPECT_EQ(last["steps"][0]["step"], "load");
  EXPECT_THAT(last["graph"].get<std::string>(), StartsWith("graph {"));
  const auto each = nlohmann::json::parse(Text({.bucket = "b4", .each = true, .json = true}));
  EXPECT_FALSE(each.contains("graph"));
  for (const auto& step : each["steps"]) EXPECT_EQ(step["changed"], step.contains("graph"));
}

TEST_F(GraphTest, APassThatIsLeftOutDoesNotRun) {
  EXPECT_THAT(Text({.bucket = "b4", .without = {"fuse_linear"}}),
              AllOf(HasSubstr("MatMul("), HasSubstr("Relu("), Not(HasSubstr("reprise.Linear("))));
  EXPECT_THAT(Text({.without = {"canonicalize"}}), HasSubstr("Identity("));
  const absl::Status status =
      PrintGraph({.path = path_, .bucket = "b4", .without = {"widen_half"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no pass 'widen_half'"), HasSubstr("load passes are seen without")));
}

TEST_F(GraphTest, AStepThatDoesNotComeIsNamedWithThoseThatDo) {
  const absl::Status status = PrintGraph({.path = path_, .after = "fuse_linear"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no step 'fuse_linear'"), HasSubstr("import, "),
                    HasSubstr("capture passes run with --bucket or --sizes")));
}

TEST_F(GraphTest, AnUnknownBucketIsRefusedWithThoseThatThereAre) {
  const absl::Status status = PrintGraph({.path = path_, .bucket = "b5"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'b5'"), HasSubstr("b32")));
}

}  // namespace
}  // namespace reprise::cli
