#include "runtime/ops/weights/block_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/runtime/ops/op_testing.h"

namespace reprise::ops {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBlocks = 200;

// Blocks of random bytes whose halves are finite.
Tensor RandomBlocks(const BlockFormat& format) {
  std::vector<int64_t> halves = {0};
  if (format.offsets) halves.push_back(2);
  if (format.name == "Q6_K") halves = {208};
  uint32_t state = 12345;
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < kBlocks * format.bytes; ++i) {
    state = state * 1664525 + 1013904223;
    auto byte = static_cast<uint8_t>(state >> 24);
    for (const int64_t half : halves) {
      if (i % format.bytes == half + 1) byte &= 0xBF;
    }
    bytes.push_back(byte);
  }
  return U8({kBlocks, format.bytes}, bytes);
}

Attributes FormatOnly(const BlockFormat& format) { return {{"format", std::string(format.name)}}; }

Tensor Part(const BlockFormat& format, const Tensor& blocks, const char* part) {
  auto result = RunOp("reprise.StoredPart", {blocks},
                      {{"format", std::string(format.name)}, {"part", std::string(part)}});
  EXPECT_TRUE(result.ok()) << result.status();
  return (*result)[0];
}

uint64_t Digest(const Tensor& tensor) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  const auto* const bytes = static_cast<const uint8_t*>(tensor.data());
  for (size_t i = 0; i < tensor.bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3;
  return hash;
}

// The digests of the floats that PyPI's gguf 0.19.0 (gguf.quants.dequantize) makes of these bytes.
struct Known {
  const char* format;
  uint64_t digest;
};
constexpr Known kKnown[] = {
    {"Q4_0", 0x2FB226F7D81D82B1}, {"Q4_1", 0xE5B73AFDF9EB62D6}, {"Q5_0", 0x4520B3592C2D9A43},
    {"Q5_1", 0xD425FCDCB0253955}, {"Q8_0", 0x00B27D72F1571C5F}, {"Q4_K", 0xBA62AC815A9D97CA},
    {"Q5_K", 0x0F3B6839A305FC5C}, {"Q6_K", 0x4526C18CA53EE1AB}, {"IQ4_NL", 0x74E3AD43A2B9C59D},
};

TEST(BlockFormatsTest, FloatsAreThoseOfGgufToTheBit) {
  EXPECT_EQ(std::size(kKnown), BlockFormats().size());
  for (const Known& known : kKnown) {
    SCOPED_TRACE(known.format);
    const BlockFormat* const format = FindBlockFormat(known.format);
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(FindBlockFormat(format->type), format);
    const auto floats = RunOp("reprise.StoredFloats", {RandomBlocks(*format)}, FormatOnly(*format));
    ASSERT_TRUE(floats.ok()) << floats.status();
    ASSERT_EQ((*floats)[0].shape(), (Shape{kBlocks, format->numbers}));
    EXPECT_EQ(Digest((*floats)[0]), known.digest);
  }
}

TEST(BlockFormatsTest, PartsMakeTheSameFloats) {
  for (const BlockFormat& format : BlockFormats()) {
    SCOPED_TRACE(std::string(format.name));
    const Tensor blocks = RandomBlocks(format);
    const Tensor numbers = Part(format, blocks, "numbers"), scales = Part(format, blocks, "scales");
    const Tensor offsets = format.offsets ? Part(format, blocks, "offsets") : Tensor();
    const auto floats = RunOp("reprise.StoredFloats", {blocks}, FormatOnly(format));
    ASSERT_TRUE(floats.ok());
    const auto* const bytes = static_cast<const uint8_t*>(numbers.data());
    for (int64_t i = 0; i < kBlocks * format.numbers; ++i) {
      const int kept = format.kept_bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
      const int64_t group = i / format.group;
      float value = static_cast<float>(kept - format.middle) *
                    static_cast<const float*>(scales.data())[group];
      if (format.offsets) value += static_cast<const float*>(offsets.data())[group];
      const float want = static_cast<const float*>((*floats)[0].data())[i];
      ASSERT_EQ(std::memcmp(&value, &want, sizeof(value)), 0) << i << ": " << value << " " << want;
    }
  }
}

TEST(BlockFormatsTest, WhatIsNoWholeBlockIsRefusedWithBothSizes) {
  const auto run = [](const Tensor& bytes, const char* format) {
    return ErrorOf(RunOp("reprise.StoredFloats", {bytes}, {{"format", std::string(format)}}));
  };
  EXPECT_THAT(run(U8({1, 19}, std::vector<uint8_t>(19)), "Q4_0"),
              HasSubstr("rows of 19 bytes are not whole blocks of 18 bytes of Q4_0"));
  EXPECT_THAT(run(U8({1, 18}, std::vector<uint8_t>(18)), "Q2_K"),
              HasSubstr("format 'Q2_K' is not one of Q4_0, Q4_1"));
  EXPECT_THAT(ErrorOf(RunOp("reprise.StoredPart", {U8({1, 18}, std::vector<uint8_t>(18))},
                            {{"format", std::string("Q4_0")}, {"part", std::string("offsets")}})),
              HasSubstr("Q4_0 has no part 'offsets'"));
}

}  // namespace
}  // namespace reprise::ops
