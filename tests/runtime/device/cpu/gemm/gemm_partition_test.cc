// Neither the parts of a product, nor the mates of a row, nor the walk change a bit of it.
#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "tests/runtime/device/cpu/gemm/gemm_harness.h"

namespace reprise::cpu {
namespace {

class GemmPartitionTest : public GemmOfTier {};

TEST_P(GemmPartitionTest, PartsOfAnyPartitionGiveTheSameBits) {
  for (const Case& c : {Case{37, 70, 200}, Case{1, 64, 500}, Case{300, 16, 10}}) {
    GuardedProduct whole(c, 5, false);
    const AlignedBuffer packed = PackB(whole);
    GemmArgs args = whole.Args(Activation::kGelu);
    args.packed_b = packed.data();
    kernels().part(args, {0, c.m, 0, kernels().Panels(c.n)});
    for (int parts : {1, 2, 3, 7, 16}) {
      GuardedProduct divided(c, 5, false);
      GemmArgs part_args = divided.Args(Activation::kGelu);
      part_args.packed_b = packed.data();
      for (int part = 0; part < parts; ++part) {
        kernels().part(part_args, kernels().Partition(c.m, c.n, false, parts, part));
      }
      ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result())) << parts << " parts";
    }
  }
}

// How many mates there are decides whether k is cut into stretches, and which.
TEST_P(GemmPartitionTest, RowsDoNotDependOnTheirMates) {
  for (const Case& c : {Case{9, 100, 60}, Case{9, 1300, 60}, Case{21, 1300, 60}, Case{70, 420, 60},
                        Case{130, 700, 60}}) {
    SCOPED_TRACE(testing::Message() << c.m << " x " << c.k);
    GuardedProduct p(c, 5, false);
    const AlignedBuffer packed = PackB(p);
    GemmArgs args = p.Args(Activation::kNone);
    args.packed_b = packed.data();
    kernels().part(args, {0, c.m, 0, kernels().Panels(c.n)});
    const std::vector<float> together = p.result();
    for (int64_t row = 0; row < c.m; ++row) {
      kernels().part(args, {row, row + 1, 0, kernels().Panels(c.n)});
    }
    EXPECT_EQ(together, p.result());
  }
}

TEST_P(GemmPartitionTest, PartsAreBalanced) {
  for (const Case& c : {Case{512, 384, 384}, Case{8, 384, 1536}, Case{128, 1536, 384}}) {
    for (const bool int8 : {false, true}) {
      const GemmKernels& of = int8 ? int8_kernels() : kernels();
      for (int parts : {1, 2, 4, 8}) {
        int64_t largest = 0;
        for (int part = 0; part < parts; ++part) {
          const GemmPart g = of.Partition(c.m, c.n, int8, parts, part);
          largest = std::max(largest, (g.row_end - g.row_begin) * (g.panel_end - g.panel_begin));
        }
        EXPECT_LE(largest * parts, c.m * of.Panels(c.n) * 5 / 3)
            << "m " << c.m << " n " << c.n << " parts " << parts << (int8 ? ", int8" : "");
      }
    }
  }
}

TEST_P(GemmPartitionTest, Int8RowsDoNotDependOnTheirMatesNorOnThePartition) {
  const Case c = {37, 300, 200};
  Int8Product whole(c, 5, false);
  AlignedBuffer packed(static_cast<size_t>(int8_kernels().PackedInt8Bytes(c.k, c.n)));
  int8_kernels().pack_int8(whole.Int8(), c.k, c.n, 0.5f, packed.data());
  GemmArgs args = whole.Args(Activation::kGelu);
  args.packed_b = packed.data();
  int8_kernels().part_int8(args, {0, c.m, 0, int8_kernels().Panels(c.n)});
  Int8Product divided(c, 5, false);
  GemmArgs part_args = divided.Args(Activation::kGelu);
  part_args.packed_b = packed.data();
  for (int part = 0; part < 3; ++part) {
    int8_kernels().part_int8(part_args, int8_kernels().Partition(c.m, c.n, true, 3, part));
  }
  ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result()));
  for (int64_t row = 0; row < c.m; ++row) {
    int8_kernels().part_int8(part_args, {row, row + 1, 0, int8_kernels().Panels(c.n)});
  }
  ASSERT_THAT(divided.result(), testing::ElementsAreArray(whole.result()));
  // Nor on the walk.
  for (const GemmBlocking& blocking :
       {GemmBlocking{.narrow_tiles = 0}, GemmBlocking{.narrow_tiles = 16},
        GemmBlocking{.row_tiles = 2}, GemmBlocking{.row_tiles = 1, .narrow_tiles = 0}}) {
    Int8Product walked(c, 5, false);
    GemmArgs walk_args = walked.Args(Activation::kGelu);
    walk_args.packed_b = packed.data();
    walk_args.blocking = blocking;
    int8_kernels().part_int8(walk_args, {0, c.m, 0, int8_kernels().Panels(c.n)});
    ASSERT_THAT(walked.result(), testing::ElementsAreArray(whole.result()));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, GemmPartitionTest, testing::ValuesIn(ProductTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
