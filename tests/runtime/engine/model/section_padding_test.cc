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
    return padding_->Fit({.axes = std::move(sizes)}, [&](const std::string& name) -> const Tensor& {
      return values_.at(name);
    });
  }

  ModelVariant section_;
  std::optional<SectionPadding> padding_;
  std::map<std::string, Tensor> values_;  // inputs that are looked at
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

TEST_F(SectionPaddingTest, NothingFoundStaysAsItIsAndOneWhereItDecidesSomething) {
  Read(kProduct);
  for (const int64_t size : {5, 7}) Fit({{"rows.d0", size}, {"rows.d1", 8}});
  EXPECT_FALSE(Fit({{"rows.d0", 0}, {"rows.d1", 8}}).has_value());
  EXPECT_EQ(Fit({{"rows.d0", 1}, {"rows.d1", 8}})->binding.axes.at("rows.d0"), 16);
  // Where there is one row its dim is dropped.
  Read(R"(graph {
  input %rows: f32[rows.d0, rows.d1]
  %r: ? = Relu(%rows)
  %y: ? = Squeeze(%r)
  output %y
})");
  for (const int64_t size : {5, 7}) Fit({{"rows.d0", size}, {"rows.d1", 8}});
  EXPECT_FALSE(Fit({{"rows.d0", 1}, {"rows.d1", 8}}).has_value());
}

TEST_F(SectionPaddingTest, CountsOfSeveralAxesShareSizes) {
  Read(R"(graph {
  input %a: f32[a.d0]
  input %b: f32[b.d0]
  %y: ? = Relu(%a)
  %z: ? = Relu(%b)
  output %y
  output %z
})");
  std::set<std::map<std::string, int64_t>> given;
  for (int64_t a = 5; a <= 100; a += 5) {
    const auto fitted = Fit({{"a.d0", a}, {"b.d0", 105 - a}});
    if (a < 15) continue;  // Until both have differed.
    ASSERT_TRUE(fitted.has_value());
    EXPECT_GE(fitted->binding.axes.at("a.d0"), a);
    EXPECT_GE(fitted->binding.axes.at("b.d0"), 105 - a);
    EXPECT_LE(fitted->binding.axes.at("a.d0") + fitted->binding.axes.at("b.d0"), 320);
    given.insert(fitted->binding.axes);
  }
  EXPECT_LE(given.size(), 4u);
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
  EXPECT_FALSE(Fit({{"rows.d0", 601}, {"rows.d1", 8}}).has_value());
  EXPECT_FALSE(Fit({{"rows.d0", 513}, {"rows.d1", 8}}).has_value());
  EXPECT_FALSE(Fit({{"rows.d0", 700}, {"rows.d1", 8}}).has_value());
}

TEST_F(SectionPaddingTest, SizesBeyondTheFirstOnesAreProvedWhenTheyArrive) {
  Read(kProduct);
  Fit({{"rows.d0", 3}, {"rows.d1", 8}});
  EXPECT_EQ(Fit({{"rows.d0", 700}, {"rows.d1", 8}})->binding.axes.at("rows.d0"), 768);
  EXPECT_EQ(Fit({{"rows.d0", 16384}, {"rows.d1", 8}})->binding.axes.at("rows.d0"), 16384);
  EXPECT_FALSE(Fit({{"rows.d0", 16385}, {"rows.d1", 8}}).has_value());
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

// Rows of `places` are looked up in `data`, computed, and put back where they came from.
constexpr char kPutBack[] = R"(graph {
  input %data: f32[data.d0, data.d1]
  input %places: i64[places.d0]
  const %depth: i64[2] = {-1, 1}
  param %w: f32[8, 8] = p0
  %own: ? = Gather(%data, %places)
  %made: ? = MatMul(%own, %w)
  %column: ? = Reshape(%places, %depth)
  %shape: ? = Shape(%made)
  %all: ? = Expand(%column, %shape)
  %y: ? = ScatterElements(%data, %all, %made) {axis = 0}
  output %y
})";

TEST_F(SectionPaddingTest, RowsThatArePutBackByPlacesOfTheRequestAreRoundedUp) {
  Read(kPutBack);
  const auto ask = [&](int64_t rows, std::vector<int64_t> places) {
    values_["places"] = Tensor::Int64s(places);
    return Fit(
        {{"data.d0", rows}, {"data.d1", 8}, {"places.d0", static_cast<int64_t>(places.size())}});
  };
  ask(30, {1, 2, 3});
  const auto fitted = ask(40, {39, 0, 7, 8});
  ASSERT_TRUE(fitted.has_value()) << testing::PrintToString(padding_->Words());
  EXPECT_THAT(fitted->padded, ElementsAre("data.d0", "places.d0"));
  EXPECT_EQ(fitted->binding.axes.at("data.d0"), 48);
  EXPECT_EQ(fitted->binding.axes.at("places.d0"), 16);
  EXPECT_THAT(fitted->true_sizes[0], ElementsAre(40, std::nullopt));
  // Places that count from the end, or lie past it, would be others in the padding.
  for (const int64_t beyond : {-1, 40, 41}) {
    const auto exact = ask(40, {39, 0, beyond, 8});
    ASSERT_TRUE(exact.has_value());
    EXPECT_EQ(exact->binding.axes.at("data.d0"), 40) << beyond;
    EXPECT_EQ(exact->binding.axes.at("places.d0"), 16);
  }
}

TEST_F(SectionPaddingTest, WhatIsAddedUpAtPlacesIsNotAddedTwice) {
  std::string text = kPutBack;
  text.replace(text.find("{axis = 0}"), 10, R"({axis = 0, reduction = "add"})");
  Read(text);
  values_["places"] = Tensor::Int64s({1, 2});
  Fit({{"data.d0", 30}, {"data.d1", 8}, {"places.d0", 3}});
  const auto fitted = Fit({{"data.d0", 30}, {"data.d1", 8}, {"places.d0", 18}});
  EXPECT_FALSE(fitted.has_value());
}

TEST_F(SectionPaddingTest, RowsThatSeeTheirOwnNumberAreNotPutBackTwice) {
  // The padding's rows have other numbers than the last one.
  Read(R"(graph {
  input %data: f32[data.d0]
  input %places: i64[places.d0]
  const %zero: i64[] = {0}
  const %one: i64[] = {1}
  %count: ? = Size(%places)
  %numbers: ? = Range(%zero, %count, %one)
  %made: ? = Cast(%numbers) {to = 1}
  %y: ? = ScatterElements(%data, %places, %made) {axis = 0}
  output %y
})");
  values_["places"] = Tensor::Int64s({1, 2});
  Fit({{"data.d0", 30}, {"places.d0", 3}});
  EXPECT_FALSE(Fit({{"data.d0", 30}, {"places.d0", 18}}).has_value());
}

TEST_F(SectionPaddingTest, NothingIsSaidOfSizesThatNeverDiffered) {
  Read(kProduct);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Fit({{"rows.d0", 5}, {"rows.d1", 8}}).has_value());
  EXPECT_THAT(padding_->Words(), IsEmpty());
}

}  // namespace
}  // namespace reprise
