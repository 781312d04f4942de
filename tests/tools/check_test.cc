// The report of `reprise check` on a model with a safe axis, an unsafe one and a slow kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"
#include "tools/reports/check_report.h"

namespace reprise {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class CheckReportTest : public testing::Test {
 protected:
  std::string Report(const ModelBuilder& builder) {
    const TempFolder folder;
    const std::string path = folder.Write("model.onnx", builder.Bytes());
    const auto model = fixture_.engine.Load({.id = {"m", 1}, .path = path});
    EXPECT_TRUE(model.ok()) << model.status();
    const auto report = cli::CheckReport(fixture_.engine, **model, /*streams=*/2);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  EngineFixture fixture_;
};

TEST_F(CheckReportTest, AxesKernelsMemoryAndWeightsAreThere) {
  ModelBuilder builder;
  builder.Input("x", {"batch", "sequence"}).Output("y");
  builder.Initializer<int64_t>("most", onnx::TensorProto::INT64, {1}, {3});
  auto& node = builder.Node("TopK", {"x", "most"}, {"s", "places"}, "mixes_the_sequence");
  SetAttribute(node, "largest", int64_t{0});
  builder.Floats("w", {1}, {2});
  builder.Node("Mul", {"s", "w"}, {"y"}, "scale");
  const std::string report = Report(builder);
  EXPECT_THAT(report, ContainsRegex("input x +f32 +\\[batch, sequence\\]"));
  EXPECT_THAT(report, ContainsRegex("batch +batch +1,2,4,8,16,32 +certified"));
  EXPECT_THAT(report, ContainsRegex("sequence +sequence +exact sizes +never"));
  EXPECT_THAT(report, HasSubstr("kernels at batch=1,sequence=128: "));
  EXPECT_THAT(report, ContainsRegex("exact +batch=32,sequence=512 +[0-9]+ +[0-9.]+ [KM]iB"));
  EXPECT_THAT(report, HasSubstr("with 2 streams"));
}

TEST_F(CheckReportTest, ModelWithoutAxesHasOneBinding) {
  ModelBuilder builder;
  builder.Input("x", {"4", "6"}).Output("y");
  builder.Node("Relu", {"x"}, {"y"}, "relu");
  const std::string report = Report(builder);
  EXPECT_THAT(report, HasSubstr("no axis"));
  EXPECT_THAT(report, HasSubstr("1 launches, 1 fast, 0 reference"));
}

TEST_F(CheckReportTest, ShapeInputsAreSaid) {
  ModelBuilder builder;
  builder.Input("x", {"count"}).Input("shape", {"2"}, onnx::TensorProto::INT64).Output("y");
  builder.Node("Reshape", {"x", "shape"}, {"y"}, "reshape");
  const std::string report = Report(builder);
  EXPECT_THAT(report, HasSubstr("an input decides shapes"));
  EXPECT_THAT(report, Not(HasSubstr("kernels at")));
}

// Buckets of many axes are too many to be compiled: some of them stand for all.
TEST_F(CheckReportTest, ManyAxesShowSomeBuckets) {
  constexpr int kAxes = 20;
  ModelBuilder builder;
  for (int i = 0; i < kAxes; ++i) {
    const std::string x = absl::StrCat("x", i), y = absl::StrCat("y", i);
    builder.Input(x, {absl::StrCat("len_", i), "4"}).Output(y);
    builder.Node(i % 2 == 0 ? "Relu" : "Softmax", {x}, {y});
  }
  const std::string report = Report(builder);
  EXPECT_THAT(report, HasSubstr("the sizes of 20 axes combine to "));
  EXPECT_THAT(report, HasSubstr("shown are those in which one axis varies"));
  EXPECT_THAT(report, ContainsRegex("len_9=16,len_10=512,len_11=16"));
  EXPECT_LT(report.size(), 100'000u);
}

}  // namespace
}  // namespace reprise
