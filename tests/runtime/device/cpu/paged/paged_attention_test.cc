#include "runtime/device/cpu/paged/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/graph/tensor.h"
#include "runtime/ops/attention/paged.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kPage = ops::kPagePositions;

struct Case {
  int64_t keys, size, size_v, window;
  float softcap, slope;
  int64_t bias_span = 0;
  float sink = -std::numeric_limits<float>::infinity();
};

// A sequence of random keys and values, in pages and plain.
class Sequence {
 public:
  Sequence(const Case& of, int seed, ops::CacheDType dtype)
      : of_(of), dtype_(dtype), random_(seed) {
    const int64_t stride = ops::PagedValueStride(of.size_v), pages = (of.keys + kPage - 1) / kPage;
    // Cells of any kind fit, and two rows of scales after them.
    const int64_t floats = kPage * (of.size + stride) + 2 * kPage;
    scales_ = kPage * (of.size + stride);
    // Places of no position may hold anything.
    memory_.assign(pages * floats, std::nanf(""));
    for (int64_t p = 0; p < pages; ++p) {
      pages_.push_back(reinterpret_cast<std::byte*>(memory_.data() + p * floats));
    }
    for (int64_t i = 0; i < of.bias_span; ++i) biases_.push_back(Next());
    if (!biases_.empty()) {
      // The padding before them repeats the farthest distance's, the padding after them is
      // arbitrary.
      biases_.insert(biases_.begin(), kPagePad, biases_.front());
      biases_.insert(biases_.end(), kPagePad, std::nanf(""));
    }
    for (int64_t key = 0; key < of.keys; ++key) {
      float* page = memory_.data() + key / kPage * floats;
      const int64_t slot = key % kPage;
      // Integers are themselves times a power of two.
      page[scales_ + slot] = page[scales_ + kPage + slot] = 1.0f / 64;
      for (int64_t d = 0; d < of.size; ++d) k_.push_back(Put(page, d * kPage + slot));
      for (int64_t d = 0; d < of.size_v; ++d) {
        v_.push_back(Put(page, kPage * of.size + slot * stride + d));
      }
      for (int64_t d = of.size_v; d < stride; ++d) {
        Put(page, kPage * of.size + slot * stride + d);
      }
    }
  }

  // Puts a number that the page holds as it is.
  float Put(float* page, int64_t cell) {
    const float near = std::clamp(std::round(Next() * 64), -127.0f, 127.0f);
    const float number = dtype_ == ops::CacheDType::kFloat32 ? Next() : near / 64;
    if (dtype_ == ops::CacheDType::kFloat32) {
      page[cell] = number;
    } else if (dtype_ == ops::CacheDType::kBFloat16) {
      uint32_t bits = 0;  // 8 significant bits are enough for `near`
      std::memcpy(&bits, &number, sizeof(bits));
      reinterpret_cast<uint16_t*>(page)[cell] = static_cast<uint16_t>(bits >> 16);
    } else {
      reinterpret_cast<int8_t*>(page)[cell] = static_cast<int8_t>(near);
    }
    return number;
  }

  float Next() { return std::normal_distribution<float>()(random_); }

  // Returns rows at `positions`, computed `tile` at a time. `carried`: as a client carries the keys
  // and values, rather than in pages.
  std::vector<float> Run(const PagedKernels& kernels, const std::vector<float>& q,
                         const std::vector<int64_t>& positions, int64_t tile, bool carried = false,
                         bool half = false) {
    AlignedBuffer scratch(kMostPagedRows * PagedScratchStride(of_.keys) * sizeof(float));
    std::vector<float> keys(PagedTileFloats(of_.size, of_.size_v)), values = v_;
    values.resize(values.size() + kPage, std::nanf(""));
    std::vector<uint16_t> halves_k, halves_v;
    PagedArgs args = {.pages = pages_.data(),
                      .k_offset = 0,
                      .v_offset = kPage * of_.size,
                      .k_scales = scales_,
                      .v_scales = scales_ + kPage,
                      .head_dim = of_.size,
                      .v_head_dim = of_.size_v,
                      .scale = 0.3f,
                      .softcap = of_.softcap,
                      .bias_span = of_.bias_span,
                      .window = of_.window,
                      .scratch = reinterpret_cast<float*>(scratch.data()),
                      .scratch_stride = PagedScratchStride(of_.keys)};
    if (carried) {
      args.pages = nullptr;
      args.keys = reinterpret_cast<const std::byte*>(k_.data());
      args.values = reinterpret_cast<const std::byte*>(values.data());
      if (half) {
        args.keys = Narrowed(k_, halves_k);
        args.values = Narrowed(v_, halves_v);
        args.widen = HalfKernelsFor(UsableIsa(Isa::kAvx512), DType::kFloat16).widen;
      }
      args.positions = of_.keys;
      args.tile = keys.data();
      args.transpose = TransposeFor(UsableIsa(Isa::kAvx512));
    }
    std::vector<float> out(positions.size() * of_.size_v);
    for (size_t first = 0; first < positions.size(); first += tile) {
      const size_t count = std::min<size_t>(tile, positions.size() - first);
      std::vector<PagedRow> rows;
      for (size_t i = first; i < first + count; ++i) {
        rows.push_back({.q = q.data() + i * of_.size,
                        .out = out.data() + i * of_.size_v,
                        .position = positions[i],
                        .slope = of_.slope,
                        .sink = of_.sink,
                        .biases = biases_.empty() ? nullptr : biases_.data() + kPagePad});
      }
      kernels.rows(args, rows.data(), static_cast<int64_t>(count));
    }
    return out;
  }

  static const std::byte* Narrowed(const std::vector<float>& from, std::vector<uint16_t>& to) {
    for (const float number : from) to.push_back(FloatToHalf(number));
    return reinterpret_cast<const std::byte*>(to.data());
  }

  // Computes the definition, in double.
  std::vector<double> Expected(const float* q, int64_t position) const {
    std::vector<double> weights, out(of_.size_v, 0);
    double highest = -1e300, total = 0;
    const int64_t start = of_.window > 0 ? std::max<int64_t>(0, position - of_.window + 1) : 0;
    for (int64_t key = start; key <= position; ++key) {
      double score = 0;
      for (int64_t d = 0; d < of_.size; ++d) score += q[d] * double{k_[key * of_.size + d]};
      score *= 0.3f;
      if (of_.softcap != 0) score = of_.softcap * std::tanh(score / of_.softcap);
      score += of_.slope * static_cast<double>(key - position);
      if (of_.bias_span > 0) {
        const int64_t distance = std::min(position - key, of_.bias_span - 1);
        score += biases_[kPagePad + of_.bias_span - 1 - distance];
      }
      weights.push_back(score);
      highest = std::max(highest, score);
    }
    highest = std::max(highest, double{of_.sink});
    for (double& weight : weights) total += weight = std::exp(weight - highest);
    total += std::exp(of_.sink - highest);
    for (int64_t key = start; key <= position; ++key) {
      for (int64_t d = 0; d < of_.size_v; ++d) {
        out[d] += weights[key - start] / total * v_[key * of_.size_v + d];
      }
    }
    return out;
  }

 private:
  const Case of_;
  const ops::CacheDType dtype_;
  int64_t scales_ = 0;
  std::mt19937 random_;
  std::vector<float> memory_, k_, v_, biases_;
  std::vector<std::byte*> pages_;
};

class PagedAttentionTest : public testing::TestWithParam<std::tuple<Isa, ops::CacheDType, bool>> {};

TEST_P(PagedAttentionTest, RowsAreThoseOfTheDefinitionWhateverStandsBesideThem) {
  const auto [wanted, dtype, rounds] = GetParam();
  const Isa isa = UsableIsa(wanted);
  if (rounds && !RoundsPages(isa)) GTEST_SKIP() << "these vectors do not multiply bfloat16";
  const PagedKernels& kernels = PagedKernelsFor(isa, dtype, rounds);
  // 2^-9 of each query, key, weight and value.
  const double bound = rounds ? 0.04 : 1e-5;
  const Case cases[] = {{1, 8, 8, 0, 0, 0},
                        {17, 16, 16, 0, 0, 0},
                        {100, 64, 64, 0, 0, 0},
                        {100, 20, 12, 0, 0, 0},
                        {90, 64, 80, 7, 0, 0},
                        {70, 16, 16, 40, 5, 0},
                        {64, 16, 16, 0, 0, 0.2f},
                        {100, 16, 16, 0, 0, 0, 33},
                        {70, 16, 16, 0, 0, 0, 1},
                        {90, 16, 16, 20, 0, 0, 128},
                        // A sink above all scores, and one among them.
                        {100, 16, 16, 0, 0, 0, 0, 30.0f},
                        {70, 32, 16, 9, 0, 0, 0, 0.5f}};
  for (const Case& one : cases) {
    Sequence sequence(one, 3, dtype);
    std::vector<int64_t> positions;
    for (int64_t p = one.keys - 1; p >= 0 && positions.size() < 19; p -= p > 70 ? 1 : 5) {
      positions.insert(positions.begin(), p);
    }
    std::vector<float> q(positions.size() * one.size);
    for (float& x : q) x = sequence.Next();
    const std::vector<float> alone = sequence.Run(kernels, q, positions, 1);
    for (size_t i = 0; i < positions.size(); ++i) {
      const std::vector<double> expected = sequence.Expected(q.data() + i * one.size, positions[i]);
      for (int64_t d = 0; d < one.size_v; ++d) {
        EXPECT_NEAR(alone[i * one.size_v + d], expected[d], bound) << one.keys << " " << i;
      }
    }
    for (int64_t tile = 2; tile <= kernels.most_rows; ++tile) {
      const std::vector<float> beside = sequence.Run(kernels, q, positions, tile);
      EXPECT_EQ(std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(float)), 0)
          << one.keys << " keys, tiles of " << tile;
    }
    const PagedKernels& carried = CarriedKernelsFor(isa, rounds);
    const std::vector<float> read =
        sequence.Run(carried, q, positions, carried.most_rows, /*carried=*/true);
    if (dtype != ops::CacheDType::kInt8) {  // Scales are multiplied with at another place.
      EXPECT_EQ(std::memcmp(alone.data(), read.data(), alone.size() * sizeof(float)), 0)
          << one.keys << " keys that a client carries";
    }
    if (dtype == ops::CacheDType::kFloat32) continue;
    // The numbers are float16 as they are.
    const std::vector<float> widened =
        sequence.Run(carried, q, positions, carried.most_rows, /*carried=*/true, /*half=*/true);
    EXPECT_EQ(std::memcmp(widened.data(), read.data(), read.size() * sizeof(float)), 0)
        << one.keys << " keys of float16 that a client carries";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, PagedAttentionTest,
                         testing::Combine(testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512),
                                          testing::Values(ops::CacheDType::kFloat32,
                                                          ops::CacheDType::kBFloat16,
                                                          ops::CacheDType::kInt8),
                                          testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(Rounded, PagedAttentionTest,
                         testing::Combine(testing::Values(DetectIsa()),
                                          testing::Values(ops::CacheDType::kFloat32,
                                                          ops::CacheDType::kBFloat16,
                                                          ops::CacheDType::kInt8),
                                          testing::Values(true)));

}  // namespace
}  // namespace reprise::cpu
