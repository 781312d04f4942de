#include "runtime/recipe/record_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/recipe/key.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// Returns a recipe's file and its name.
BundledRecord SomeRecipe(const std::string& device = "cpu a") {
  recipe::v1::StoredRecipe stored;
  stored.mutable_key()->set_device(device);
  stored.mutable_key()->set_compiler(CompilerId());
  stored.set_model("minilm");
  stored.set_bucket("b1_s16");
  stored.mutable_key()->set_hash(Hash64(device));
  const RecordName name = {.key = stored.key().hash()};
  return {name.file(), EncodeRecord({.rebuild_ns = 7, .payload = stored.SerializeAsString()})};
}

TEST(RecordFactsTest, FactsAreThoseOfTheRecord) {
  const BundledRecord record = SomeRecipe();
  const auto facts = FactsOf(record.bytes, *RecordName::Parse(record.file));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->model, "minilm");
  EXPECT_EQ(facts->bucket, "b1_s16");
  EXPECT_EQ(facts->rebuild_ns, 7);
}

TEST(RecordFactsTest, RecordUnderAnotherNameIsRefused) {
  RecordName name = *RecordName::Parse(SomeRecipe().file);
  name.key ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(FactsOf(SomeRecipe().bytes, name).status()));
  name.kind = RecordKind::kModel;
  EXPECT_TRUE(absl::IsDataLoss(FactsOf(SomeRecipe().bytes, name).status()));
}

TEST(RecordFactsTest, RecordOfAnotherDeviceOrCompilerSaysSo) {
  RecordFacts facts = {.device = "cpu a", .compiler = CompilerId()};
  EXPECT_TRUE(UsableOn(facts, "cpu a").ok());
  EXPECT_THAT(std::string(UsableOn(facts, "cpu b").message()), HasSubstr("'cpu b'"));
  facts.compiler = "0-of-long-ago";
  EXPECT_THAT(std::string(UsableOn(facts, "cpu a").message()), HasSubstr("0-of-long-ago"));
  EXPECT_TRUE(UsableOn({}, "any").ok());
}

TEST(BundleTest, WhatIsBundledIsUnbundled) {
  const auto records = DecodeBundle(EncodeBundle({SomeRecipe("cpu a"), SomeRecipe("cpu b")}));
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[1].bytes, SomeRecipe("cpu b").bytes);
}

TEST(BundleTest, EveryFlippedByteAndForeignNameIsRefused) {
  const std::string good = EncodeBundle({SomeRecipe()});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    EXPECT_FALSE(DecodeBundle(bad).ok()) << "byte " << i;
  }
  EXPECT_FALSE(DecodeBundle(SomeRecipe().bytes).ok());
  EXPECT_THAT(
      std::string(DecodeBundle(EncodeBundle({{"../../etc/passwd", "x"}})).status().message()),
      HasSubstr("passwd"));
}

}  // namespace
}  // namespace reprise
