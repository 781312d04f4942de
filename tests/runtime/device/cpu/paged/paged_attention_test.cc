#include "runtime/device/cpu/paged/paged_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/ops/attention/paged.h"

namespace reprise::cpu {
namespace {

constexpr int64_t kPage = ops::kPagePositions;

struct Case {
  int64_t keys, size, size_v, window;
  float softcap, slope;
  int64_t bias_span = 0;
};

// A sequence of random keys and values, in pages and plain.
class Sequence {
 public:
  Sequence(const Case& of, int seed) : of_(of), random_(seed) {
    const int64_t stride = ops::PagedValueStride(of.size_v), pages = (of.keys + kPage - 1) / kPage;
    const int64_t floats = kPage * (of.size + stride);
    // Places of no position may hold anything.
    memory_.assign(pages * floats, std::nanf(""));
    for (int64_t p = 0; p < pages; ++p) {
      pages_.push_back(reinterpret_cast<std::byte*>(memory_.data() + p * floats));
    }
    for (int64_t i = 0; i < of.bias_span; ++i) biases_.push_back(Next());
    if (!biases_.empty()) {
      // In front stands the one of the farthest distance, behind anything.
      biases_.insert(biases_.begin(), kPagePad, biases_.front());
      biases_.insert(biases_.end(), kPagePad, std::nanf(""));
    }
    for (int64_t key = 0; key < of.keys; ++key) {
      float* page = memory_.data() + key / kPage * floats;
      for (int64_t d = 0; d < of.size; ++d) {
        page[d * kPage + key % kPage] = k_.emplace_back(Next());
      }
      for (int64_t d = 0; d < of.size_v; ++d) {
        page[kPage * of.size + key % kPage * stride + d] = v_.emplace_back(Next());
      }
      for (int64_t d = of.size_v; d < stride; ++d) {
        page[kPage * of.size + key % kPage * stride + d] = 0;
      }
    }
  }

  float Next() { return std::normal_distribution<float>()(random_); }

  // Rows at `positions`, computed `tile` at a time.
  std::vector<float> Run(const PagedKernels& kernels, const std::vector<float>& q,
                         const std::vector<int64_t>& positions, int64_t tile) {
    AlignedBuffer scratch(kMostPagedRows * PagedScratchStride(of_.keys) * sizeof(float));
    const PagedArgs args = {.pages = pages_.data(),
                            .k_offset = 0,
                            .v_offset = kPage * of_.size,
                            .head_dim = of_.size,
                            .v_head_dim = of_.size_v,
                            .scale = 0.3f,
                            .softcap = of_.softcap,
                            .bias_span = of_.bias_span,
                            .window = of_.window,
                            .scratch = reinterpret_cast<float*>(scratch.data()),
                            .scratch_stride = PagedScratchStride(of_.keys)};
    std::vector<float> out(positions.size() * of_.size_v);
    for (size_t first = 0; first < positions.size(); first += tile) {
      const size_t count = std::min<size_t>(tile, positions.size() - first);
      std::vector<PagedRow> rows;
      for (size_t i = first; i < first + count; ++i) {
        rows.push_back({.q = q.data() + i * of_.size,
                        .out = out.data() + i * of_.size_v,
                        .position = positions[i],
                        .slope = of_.slope,
                        .biases = biases_.empty() ? nullptr : biases_.data() + kPagePad});
      }
      kernels.rows(args, rows.data(), static_cast<int64_t>(count));
    }
    return out;
  }

  // The definition, in double.
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
    for (double& weight : weights) total += weight = std::exp(weight - highest);
    for (int64_t key = start; key <= position; ++key) {
      for (int64_t d = 0; d < of_.size_v; ++d) {
        out[d] += weights[key - start] / total * v_[key * of_.size_v + d];
      }
    }
    return out;
  }

 private:
  const Case of_;
  std::mt19937 random_;
  std::vector<float> memory_, k_, v_, biases_;
  std::vector<std::byte*> pages_;
};

class PagedAttentionTest : public testing::TestWithParam<Isa> {};

TEST_P(PagedAttentionTest, RowsAreThoseOfTheDefinitionWhateverStandsBesideThem) {
  const Isa isa = UsableIsa(GetParam());
  const PagedKernels& kernels = PagedKernelsFor(isa);
  const Case cases[] = {{1, 8, 8, 0, 0, 0},       {17, 16, 16, 0, 0, 0},
                        {100, 64, 64, 0, 0, 0},   {100, 20, 12, 0, 0, 0},
                        {90, 64, 80, 7, 0, 0},    {70, 16, 16, 40, 5, 0},
                        {64, 16, 16, 0, 0, 0.2f}, {100, 16, 16, 0, 0, 0, 33},
                        {70, 16, 16, 0, 0, 0, 1}, {90, 16, 16, 20, 0, 0, 128}};
  for (const Case& one : cases) {
    Sequence sequence(one, 3);
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
        EXPECT_NEAR(alone[i * one.size_v + d], expected[d], 1e-5) << one.keys << " " << i;
      }
    }
    for (int64_t tile = 2; tile <= kernels.most_rows; ++tile) {
      const std::vector<float> beside = sequence.Run(kernels, q, positions, tile);
      EXPECT_EQ(std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(float)), 0)
          << one.keys << " keys, tiles of " << tile;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, PagedAttentionTest,
                         testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512));

}  // namespace
}  // namespace reprise::cpu
