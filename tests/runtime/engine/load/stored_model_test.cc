#include "runtime/engine/load/stored_model.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

const StoredModelKey kKey = {"graph", "parameters", "settings", "device", "1"};
const std::vector<std::string> kLabels = {"batch", "sequence"};
const std::vector<std::string> kInputs = {"ids", "mask"};

ModelFindings SomeFindings() {
  return {.axes = {{.axis = "batch", .certified = true, .reason = "held"},
                   {.axis = "sequence",
                    .certified = true,
                    .guards = {"mask"},
                    .reason = "held with the mask"}},
          .smallest = {1, 8},
          .decisions = {{}, {"node 'choice' (If) takes a branch", 512}},
          .opens_to = {0, 4096},
          .outputs = {{.dtype = DType::kFloat32,
                       .dims = {{0, {1, 0}},
                                {1, {0, 2}},
                                {.constant = 384,
                                 .factors = {0, 0},
                                 .products = {{.first = 0, .second = 1, .factor = 4}},
                                 .open = true}}},
                      {.dtype = DType::kInt64, .dims = {}}},
          .output_dtypes = {DType::kFloat32, DType::kInt64}};
}

std::string Encoded() { return EncodeFindings(kKey, {"m", 1}, SomeFindings(), 1000); }

TEST(StoredModelTest, FindingsAreFoundAgain) {
  const auto found = DecodeFindings(Encoded(), kKey, kLabels, kInputs, 2);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->axes.size(), 2u);
  EXPECT_TRUE(found->axes[1].certified);
  EXPECT_EQ(found->axes[1].guards, std::vector<std::string>{"mask"});
  EXPECT_EQ(found->decisions[0].words, "");
  EXPECT_EQ(found->decisions[1].words, "node 'choice' (If) takes a branch");
  EXPECT_EQ(found->decisions[1].alike_up_to, 512);
  EXPECT_FALSE(found->outputs[0].dims[1].open);
  EXPECT_TRUE(found->outputs[0].dims[2].open);
  ASSERT_EQ(found->outputs[0].dims[2].products.size(), 1u);
  EXPECT_EQ(found->outputs[0].dims[2].products[0].factor, 4);
  EXPECT_EQ(found->axes[1].reason, "held with the mask");
  EXPECT_EQ(found->smallest, (std::vector<int64_t>{1, 8}));
  EXPECT_EQ(found->opens_to, (std::vector<int64_t>{0, 4096}));
  ASSERT_EQ(found->outputs.size(), 2u);
  EXPECT_EQ(found->outputs[0].At({3, 5}), Shape({3, 11, 384 + 4 * 3 * 5}));
  EXPECT_TRUE(found->outputs[1].dims.empty());
}

TEST(StoredModelTest, FindingsOfAnotherKeyAreNotTaken) {
  for (std::string StoredModelKey::*field :
       {&StoredModelKey::graph, &StoredModelKey::parameters, &StoredModelKey::settings,
        &StoredModelKey::device, &StoredModelKey::compiler}) {
    StoredModelKey other = kKey;
    other.*field += "x";
    EXPECT_TRUE(
        absl::IsFailedPrecondition(DecodeFindings(Encoded(), other, kLabels, kInputs, 2).status()));
    EXPECT_NE(other.NameOf({"m", 1}).key, kKey.NameOf({"m", 1}).key);
  }
}

TEST(StoredModelTest, FindingsThatFitNoSuchModelAreDamaged) {
  const std::string bytes = Encoded();
  EXPECT_TRUE(absl::IsDataLoss(DecodeFindings(bytes, kKey, {"batch"}, kInputs, 2).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFindings(bytes, kKey, kLabels, {"ids"}, 2).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFindings(bytes, kKey, kLabels, kInputs, 3).status()));
  EXPECT_TRUE(
      absl::IsDataLoss(DecodeFindings(bytes, kKey, {"batch", "past"}, kInputs, 2).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFindings("\xff", kKey, kLabels, kInputs, 2).status()));
}

TEST(StoredModelTest, AnyBytesAreDecodedWithoutACrash) {
  const std::string good = Encoded();
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value : {0, 0x7f, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      const auto found = DecodeFindings(bad, kKey, kLabels, kInputs, 2);
      if (found.ok()) {
        EXPECT_EQ(found->axes.size(), kLabels.size());
      }
    }
    EXPECT_FALSE(DecodeFindings(good.substr(0, i), kKey, kLabels, kInputs, 2).ok() && i == 0);
  }
}

}  // namespace
}  // namespace reprise
