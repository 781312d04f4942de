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

TEST_F(SectionPaddingTest, WindowsAlongAnAxisArePaddedInALiveForm) {
  Read(R"(graph {
  input %map: f32[map.d0, map.d1, map.d2, map.d3]
  param %w: f32[4, 3, 3, 3] = p0
  param %v: f32[4, 4, 3, 3] = p1
  %a: ? = Conv(%map, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %b: ? = Relu(%a)
  %y: ? = Conv(%b, %v) {pads = [1, 1, 1, 1]}
  output %y
})");
  const auto sizes = [](int64_t height, int64_t width) {
    return std::map<std::string, int64_t>{
        {"map.d0", 1}, {"map.d1", 3}, {"map.d2", height}, {"map.d3", width}};
  };
  EXPECT_FALSE(Fit(sizes(40, 64)).has_value());
  const auto fitted = Fit(sizes(72, 50));
  ASSERT_TRUE(fitted.has_value());
  ASSERT_NE(fitted->live, nullptr);
  EXPECT_EQ(fitted->binding.axes, (std::map<std::string, int64_t>{{"map.d2", 72}, {"map.d3", 52}}));
  EXPECT_EQ(fitted->live_sizes, (std::map<std::string, int64_t>{{"reprise.live.map.d2", 72},
                                                                {"reprise.live.map.d3", 50}}));
  EXPECT_THAT(fitted->true_sizes[0], ElementsAre(std::nullopt, std::nullopt, 36, 25));
  const auto smaller = Fit(sizes(61, 49));
  ASSERT_TRUE(smaller.has_value());
  EXPECT_EQ(smaller->binding.axes, fitted->binding.axes);
  EXPECT_THAT(smaller->true_sizes[0], ElementsAre(std::nullopt, std::nullopt, 31, 25));
}

// The coarse map is doubled and joined with the finer one, which is right for even sizes of that
// alone.
TEST_F(SectionPaddingTest, ANeckIsPaddedInSteps) {
  Read(R"(graph {
  input %map: f32[map.d0, map.d1, map.d2, map.d3]
  param %w: f32[4, 3, 3, 3] = p0
  param %v: f32[4, 4, 3, 3] = p1
  const %none: f32[0] = {}
  const %two: i64[1] = {2}
  const %four: i64[1] = {4}
  const %zero: i64[1] = {0}
  %fine: ? = Conv(%map, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %coarse: ? = Conv(%fine, %v) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %shape: ? = Shape(%fine)
  %size: ? = Slice(%shape, %two, %four, %zero)
  %rows: ? = Shape(%coarse)
  %kept: ? = Slice(%rows, %zero, %two, %zero)
  %to: ? = Concat(%kept, %size) {axis = 0}
  %up: ? = Resize(%coarse, _, _, %to) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
  %y: ? = Add(%up, %fine)
  output %y
})");
  const auto sizes = [](int64_t height, int64_t width) {
    return std::map<std::string, int64_t>{
        {"map.d0", 1}, {"map.d1", 3}, {"map.d2", height}, {"map.d3", width}};
  };
  EXPECT_FALSE(Fit(sizes(64, 96)).has_value());
  const auto fitted = Fit(sizes(128, 160));
  ASSERT_TRUE(fitted.has_value()) << testing::PrintToString(padding_->Words());
  EXPECT_NE(fitted->live, nullptr);
  EXPECT_THAT(fitted->true_sizes[0], ElementsAre(std::nullopt, std::nullopt, 64, 80));
  EXPECT_TRUE(Fit(sizes(96, 160)).has_value());
  EXPECT_FALSE(Fit(sizes(97, 161)).has_value()) << "no multiples";
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
  EXPECT_THAT(padding_->Words(), ElementsAre(HasSubstr("holds numbers that follow the size")));
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
