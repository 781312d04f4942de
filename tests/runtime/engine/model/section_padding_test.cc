// Which sizes of a section after a cut are padded, learnt from the sizes that arrive.
#include "runtime/engine/model/section_padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SectionPaddingTest : public testing::Test {
 protected:
  void Read(const std::string& text) {
    auto graph = Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    section_.graph = *std::move(graph);
    padding_.emplace(section_);
  }
  std::optional<SectionPadding::Fitted> Fit(std::map<std::string, int64_t> sizes) {
    return padding_->Fit({.axes = std::move(sizes)});
  }

  ModelVariant section_;
  std::optional<SectionPadding> padding_;
};

constexpr char kProduct[] = R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  param %w: f32[8, 4] = p0
  %y: ? = MatMul(%rows, %w)
  output %y
})";

TEST(SectionBucketTest, BucketsArePowersOfTwoAndHalfWayBetween) {
  EXPECT_EQ(SectionBucket(1), 16);
  EXPECT_EQ(SectionBucket(16), 16);
  EXPECT_EQ(SectionBucket(17), 24);
  EXPECT_EQ(SectionBucket(25), 32);
  EXPECT_EQ(SectionBucket(300), 384);
  EXPECT_EQ(SectionBucket(385), 512);
}

TEST_F(SectionPaddingTest, CountOfRowsThatGoEachForItselfIsRoundedUp) {
  Read(kProduct);
  EXPECT_FALSE(Fit({{"rows.d0", 5}, {"rows.d1", 8}}).has_value()) << "what follows data?";
  const auto fitted = Fit({{"rows.d0", 18}, {"rows.d1", 8}});
  ASSERT_TRUE(fitted.has_value());
  EXPECT_EQ(fitted->binding.axes,
            (std::map<std::string, int64_t>{{"rows.d0", 24}, {"rows.d1", 8}}));
  EXPECT_THAT(fitted->padded, ElementsAre("rows.d0"));
  ASSERT_THAT(fitted->true_sizes, SizeIs(1));
  EXPECT_THAT(fitted->true_sizes[0], ElementsAre(18, std::nullopt));
  EXPECT_EQ(Fit({{"rows.d0", 5}, {"rows.d1", 8}})->binding.axes.at("rows.d0"), 16);
  EXPECT_THAT(padding_->Words(), ElementsAre(HasSubstr("rows.d0: padded")));
}

TEST_F(SectionPaddingTest, NothingFoundAndOneFoundStayAsTheyAre) {
  Read(kProduct);
  for (const int64_t size : {5, 7}) Fit({{"rows.d0", size}, {"rows.d1", 8}});
  EXPECT_FALSE(Fit({{"rows.d0", 0}, {"rows.d1", 8}}).has_value());
  EXPECT_FALSE(Fit({{"rows.d0", 1}, {"rows.d1", 8}}).has_value());
}

TEST_F(SectionPaddingTest, AMeanOverWhatIsFoundStaysExactAndSaysWhy) {
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %first: i64[1] = {0}
  %y: ? = ReduceMean(%rows, %first) {keepdims = 0}
  output %y
})");
  for (const int64_t size : {5, 7, 9}) {
    EXPECT_FALSE(Fit({{"rows.d0", size}, {"rows.d1", 8}}).has_value());
  }
  EXPECT_THAT(padding_->Words(), ElementsAre(testing::AllOf(HasSubstr("rows.d0: exact, since"),
                                                            HasSubstr("ReduceMean"))));
}

TEST_F(SectionPaddingTest, SizesThatAgreeAreOneAxisUntilTheyDoNot) {
  Read(R"(graph {
  input %a: f32[a.d0]
  input %b: f32[b.d0]
  %y: ? = Relu(%a)
  %z: ? = Relu(%b)
  output %y
  output %z
})");
  Fit({{"a.d0", 3}, {"b.d0", 3}});
  const auto together = Fit({{"a.d0", 20}, {"b.d0", 20}});
  ASSERT_TRUE(together.has_value());
  EXPECT_THAT(together->padded, ElementsAre("a.d0", "b.d0"));
  EXPECT_THAT(padding_->Words(), ElementsAre(HasSubstr("a.d0, b.d0: padded")));
  const auto apart = Fit({{"a.d0", 5}, {"b.d0", 30}});
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->binding.axes, (std::map<std::string, int64_t>{{"a.d0", 16}, {"b.d0", 32}}));
  EXPECT_THAT(apart->true_sizes[0], ElementsAre(5));
  EXPECT_THAT(apart->true_sizes[1], ElementsAre(30));
  EXPECT_THAT(padding_->Words(), SizeIs(2));
}

TEST_F(SectionPaddingTest, AxisThatMayNotBePaddedDoesNotHinderAnother) {
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %second: i64[1] = {1}
  %y: ? = ReduceSum(%rows, %second)
  %z: ? = ReduceMax(%rows, %second)
  %s: ? = Sub(%y, %z)
  output %s
})");
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  Fit({{"rows.d0", 4}, {"rows.d1", 8}});
  const auto fitted = Fit({{"rows.d0", 5}, {"rows.d1", 9}});
  ASSERT_TRUE(fitted.has_value());
  EXPECT_EQ(fitted->binding.axes,
            (std::map<std::string, int64_t>{{"rows.d0", 16}, {"rows.d1", 9}}));
}

TEST_F(SectionPaddingTest, SizesBeyondThoseThatWereLookedAtStayExact) {
  // The first 600 found ones are taken: of 700, padded to 768, that is not all.
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %zero: i64[1] = {0}
  const %most: i64[1] = {600}
  %y: ? = Slice(%rows, %zero, %most, %zero)
  output %y
})");
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  ASSERT_TRUE(Fit({{"rows.d0", 18}, {"rows.d1", 8}}).has_value());
  EXPECT_TRUE(Fit({{"rows.d0", 512}, {"rows.d1", 8}}).has_value());
  EXPECT_FALSE(Fit({{"rows.d0", 513}, {"rows.d1", 8}}).has_value());
  EXPECT_FALSE(Fit({{"rows.d0", 700}, {"rows.d1", 8}}).has_value());
}

TEST_F(SectionPaddingTest, SizesInsideASectionAreFollowed) {
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %zero: i64[1] = {0}
  const %many: i64[1] = {20}
  %shape: ? = Shape(%rows)
  %count: ? = Gather(%shape, %zero)
  %few: ? = Less(%count, %many)
  %r: ? = Relu(%rows)
  %n: ? = Neg(%rows)
  %y: ? = Where(%few, %r, %n)
  output %y
})");
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  EXPECT_FALSE(Fit({{"rows.d0", 18}, {"rows.d1", 8}}).has_value());
  EXPECT_THAT(padding_->Words(), ElementsAre(HasSubstr("rows.d0: exact, since")));
  // The choice alone may be the answer.
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %zero: i64[1] = {0}
  const %many: i64[1] = {20}
  %shape: ? = Shape(%rows)
  %count: ? = Gather(%shape, %zero)
  %few: ? = Less(%count, %many)
  %y: ? = Expand(%few, %shape)
  output %y
})");
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  EXPECT_FALSE(Fit({{"rows.d0", 18}, {"rows.d1", 8}}).has_value());
  EXPECT_THAT(padding_->Words(), ElementsAre(HasSubstr("answers with a number")));
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  const %one: f32[1] = {1}
  %shape: ? = Shape(%rows)
  %ones: ? = Expand(%one, %shape)
  %r: ? = Relu(%rows)
  %y: ? = Add(%r, %ones)
  output %y
})");
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  EXPECT_TRUE(Fit({{"rows.d0", 18}, {"rows.d1", 8}}).has_value());
}

TEST_F(SectionPaddingTest, NothingIsSaidOfSizesThatNeverDiffered) {
  Read(kProduct);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Fit({{"rows.d0", 5}, {"rows.d1", 8}}).has_value());
  EXPECT_THAT(padding_->Words(), IsEmpty());
}

}  // namespace
}  // namespace reprise
