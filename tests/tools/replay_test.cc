// `reprise replay`: one launch by itself, of a recipe that is compiled here or that a store kept.
#include "tools/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/recipe/store.h"
#include "runtime/recipe/stored_recipe.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class ReplayTest : public testing::Test {
 protected:
  // y = softmax(x w): launch 0 multiplies, launch 1 is the softmax.
  ReplayTest() { path_ = folder_.Write("model.onnx", Product(32).Bytes()); }

  static ModelBuilder Product(int64_t columns) {
    ModelBuilder builder;
    builder.Input("x", {"batch", "16"}).Output("y");
    std::vector<float> weights;
    for (int64_t i = 0; i < 16 * columns; ++i) weights.push_back(static_cast<float>(i % 7) / 8);
    builder.Floats("w", {16, columns}, weights);
    builder.Node("MatMul", {"x", "w"}, {"product"}, "product");
    builder.Node("Softmax", {"product"}, {"y"}, "softmax");
    return builder;
  }

  // Returns the file of a store that holds the recipe of four rows.
  std::string StoredRecipe() {
    const auto model = fixture_.engine.Load({.id = {"m", 1}, .path = path_});
    EXPECT_TRUE(model.ok()) << model.status();
    BatchTarget target = {.sizes = {4}};
    CompiledPlan plan;
    const RecipeKey key = (*model)->KeyAt(target, RequestShape(), nullptr);
    const auto recipe = (*model)->CompileAt(key, nullptr, fixture_.engine.options(), &plan);
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    (*recipe)->note = {.model = "m", .version = 1, .bucket = "b4"};
    const RecordName name = RecordNameOf(key, "m");
    return folder_.Write(name.file(), EncodeRecord({.kind = RecordKind::kRecipe,
                                                    .payload = EncodeRecipe(**recipe, plan)}));
  }

  static std::string Text(const ReplayOptions& options) {
    testing::internal::CaptureStdout();
    const absl::Status status = ReplayLaunch(options);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  // Returns the numbers after "output 0:".
  static std::vector<double> Values(const std::string& text) {
    std::vector<double> values;
    std::istringstream rest(text.substr(text.find("output 0:") + 9));
    for (std::string word; rest >> word;) {
      if (word.back() != ':') values.push_back(std::stod(word));
    }
    return values;
  }

  const TempFolder folder_;
  std::string path_;
  EngineFixture fixture_;
};

TEST_F(ReplayTest, ALaunchIsShownWithItsOperandsAndItsTime) {
  const std::string text = Text({.source = path_, .bucket = "b4", .launch = 0, .repeats = 5});
  EXPECT_THAT(text, AllOf(HasSubstr("batch 4, compiled here"), HasSubstr("launch 0 of 2: gemm"),
                          HasSubstr("'product'"), ContainsRegex("input +input +0 +256 +f32"),
                          ContainsRegex("input +parameter +slot 0 +[0-9]+"),
                          ContainsRegex("output +arena +[0-9]+ +512 +f32"),
                          ContainsRegex("[0-9.]+ us in the median of 5 runs"), HasSubstr("GF/s"),
                          Not(HasSubstr("output 0:"))));
}

// The operands of the softmax are the product's results, at each repeat, although it may overwrite
// them: its rows add up to one.
TEST_F(ReplayTest, OperandsHoldWhatEarlierLaunchesLeft) {
  const std::string text =
      Text({.source = path_, .bucket = "batch=3", .launch = 1, .repeats = 9, .values = true});
  const std::vector<double> values = Values(text);
  ASSERT_EQ(values.size(), 3u * 32);
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0, largest = 0;
    for (size_t i = 0; i < 32; ++i) {
      sum += values[row * 32 + i];
      largest = std::max(largest, values[row * 32 + i]);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_GT(largest, 1.5 / 32);  // the softmax of one that ran again would be nearly flat
  }
  EXPECT_EQ(Values(Text(
                {.source = path_, .bucket = "batch=3", .launch = 1, .repeats = 1, .values = true})),
            values);
}

TEST_F(ReplayTest, WithoutALaunchAllAreListed) {
  EXPECT_THAT(Text({.source = path_, .bucket = "b4"}),
              AllOf(HasSubstr("0 gemm"), HasSubstr("1 softmax"), HasSubstr("input x: f32")));
}

TEST_F(ReplayTest, ALaunchThatIsNotThereIsRefusedWithTheirNumber) {
  const absl::Status status = ReplayLaunch({.source = path_, .bucket = "b4", .launch = 2});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("launch 2"), HasSubstr("has 2")));
}

TEST_F(ReplayTest, AStoredRecipeNeedsNoModel) {
  const std::string recipe = StoredRecipe();
  const std::string text = Text({.source = recipe, .launch = 1, .repeats = 3, .values = true});
  EXPECT_THAT(text, AllOf(HasSubstr("stored recipe of m version 1, b4 (batch=4)"),
                          HasSubstr("made-up inputs and weights"), HasSubstr("launch 1 of 2"),
                          Not(HasSubstr("was made for"))));
  EXPECT_EQ(Values(text).size(), 4u * 32);
}

TEST_F(ReplayTest, AStoredRecipeTakesTheWeightsOfItsModel) {
  const std::string recipe = StoredRecipe();
  const ReplayOptions made_up = {.source = recipe, .launch = 0, .repeats = 1, .values = true};
  ReplayOptions real = made_up;
  real.weights = path_;
  EXPECT_NE(Values(Text(made_up)), Values(Text(real)));

  real.weights = folder_.Write("other.onnx", Product(48).Bytes());
  testing::internal::CaptureStdout();
  const absl::Status status = ReplayLaunch(real);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("other.onnx"), HasSubstr("f32[16, 32]"), HasSubstr("f32[16, 48]")));
}

TEST_F(ReplayTest, AnAlteredRecipeIsRefused) {
  const std::string recipe = StoredRecipe();
  std::filesystem::resize_file(recipe, std::filesystem::file_size(recipe) - 1);
  EXPECT_EQ(ReplayLaunch({.source = recipe, .launch = 0}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReplayLaunch({.source = folder_.Write("any.rps", "x"), .launch = 0}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise::cli
