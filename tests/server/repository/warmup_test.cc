// Which buckets a warm-up names.
#include "server/repository/warmup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WarmupTest : public testing::Test {
 protected:
  void Load(int axes) {
    const auto model = fixture_.engine.Load(
        {.id = {"many", 1}, .path = folder_.Write("many.onnx", ManyLengths(axes).Bytes())});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

TEST_F(WarmupTest, AllBucketsOfAFewAxes) {
  Load(4);
  const auto all = BindingsOf(*model_, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 6u * 6 * 6 * 6);
}

TEST_F(WarmupTest, BucketsOfManyAxesByNameAlone) {
  Load(13);
  const auto all = BindingsOf(*model_, {});
  EXPECT_EQ(all.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(all.status().message()),
              AllOf(HasSubstr("'many'"), HasSubstr("len_0 6, len_1 6"), HasSubstr("multiply")));
  AxisSizes sizes;
  for (int i = 0; i < 13; ++i) sizes[absl::StrCat("len_", i)] = 32;
  const std::string label = model_->LabelOfBucket(sizes);
  const auto one = BindingsOf(*model_, {label});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, std::vector<AxisSizes>{sizes});
  const auto none = BindingsOf(*model_, {label + "0"});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr(label + "0"));
}

}  // namespace
}  // namespace reprise
