// Rates of the cpu device's hot kernels and the machine's own limits, one thread:
//
//   bench_kernels [--isa TIER] [--only gemm|weights|blocks|bytes|unpacked|attention]
//                 [--seconds-per-case 0.2]
//
// GEMM shapes are MiniLM's; each line alternates ours and OpenBLAS (loaded at run time, with the
// core type of this machine, one thread), and oneDNN with packed weights where it is installed, and
// prints medians, so that noise hits all sides.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/device/cpu/attention/attention.h"
#include "runtime/device/cpu/gemm/foreign_blas.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/gemm_block_digits.h"
#include "runtime/device/cpu/gemm/gemm_blocks.h"
#include "runtime/device/cpu/int8/gemm_u8s8.h"
#include "runtime/device/cpu/machine_peak.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "tests/bench/kernels/onednn.h"

namespace reprise::cpu {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Medians of the seconds a call of each function takes; rounds alternate between the functions.
std::vector<double> Race(const std::vector<std::function<void()>>& functions, double seconds) {
  constexpr int kRounds = 9;
  std::vector<std::vector<double>> times(functions.size());
  std::vector<int> calls(functions.size(), 1);
  for (size_t f = 0; f < functions.size(); ++f) {
    functions[f]();
    const double begin = Seconds();
    functions[f]();
    const double once = std::max(1e-7, Seconds() - begin);
    calls[f] = std::max(1, static_cast<int>(seconds / kRounds / once));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t f = 0; f < functions.size(); ++f) {
      const double begin = Seconds();
      for (int i = 0; i < calls[f]; ++i) functions[f]();
      times[f].push_back((Seconds() - begin) / calls[f]);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& t : times) {
    std::nth_element(t.begin(), t.begin() + kRounds / 2, t.end());
    medians.push_back(t[kRounds / 2]);
  }
  return medians;
}

class Floats {
 public:
  explicit Floats(int64_t count) : buffer_(sizeof(float) * static_cast<size_t>(count)) {
    static std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < count; ++i) data()[i] = uniform(random);
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }

 private:
  AlignedBuffer buffer_;
};

std::shared_ptr<const ForeignBlas> LoadOpenBlas(Isa isa) {
  auto blas = ForeignBlas::Load(isa);
  if (blas.ok()) return *std::move(blas);
  std::printf("%s\n", std::string(blas.status().message()).c_str());
  return nullptr;
}

void BenchGemm(Isa isa, double seconds) {
  const GemmKernels& kernels = GemmKernelsFor(isa);
  const double peak = MeasureGflops(isa);
  const std::shared_ptr<const ForeignBlas> blas = LoadOpenBlas(isa);
  std::printf("peak of fused multiply-adds: %.1f GF/s, one thread, %s\n", peak,
              std::string(IsaName(isa)).c_str());
  std::printf("%6s %6s %6s %9s %6s %9s %7s %9s %7s\n", "m", "k", "n", "ours", "share", "openblas",
              "ratio", "onednn", "ratio");
  const int64_t shapes[][2] = {{384, 384}, {384, 1152}, {384, 1536}, {1536, 384}};
  for (const auto& [k, n] : shapes) {
    for (int64_t m : {1, 4, 8, 9, 16, 32, 57, 64, 128, 256, 512, 4096}) {
      const Floats a(m * k), b(k * n), c(m * n), packed(kernels.PackedFloats(k, n)), bias(n);
      kernels.pack({b.data(), n, false}, k, n, 1.0f, packed.data());
      const GemmArgs args = {.a = a.data(),
                             .lda = k,
                             .packed_b = packed.data(),
                             .c = c.data(),
                             .ldc = n,
                             .n = n,
                             .k = k,
                             .bias = bias.data()};
      std::vector<std::function<void()>> functions = {[&] {
        kernels.part(args, {0, m, 0, kernels.Panels(n)});
      }};
      if (blas != nullptr) {
        functions.push_back([&] {
          blas->Multiply(BlasProduct<float>{.m = m,
                                            .n = n,
                                            .k = k,
                                            .a = a.data(),
                                            .lda = k,
                                            .b = b.data(),
                                            .ldb = n,
                                            .c = c.data(),
                                            .ldc = n});
        });
      }
      if (auto onednn = OneDnnProduct(isa, m, k, n, a.data(), b.data(), c.data())) {
        functions.push_back(std::move(onednn));
      }
      const std::vector<double> times = Race(functions, seconds);
      const double flops = 2e-9 * static_cast<double>(m * n * k);
      std::printf("%6ld %6ld %6ld %9.1f %5.0f%%", m, k, n, flops / times[0],
                  100 * flops / times[0] / peak);
      for (size_t i = 1; i < times.size(); ++i) {
        std::printf(" %9.1f %6.2fx", flops / times[i], times[i] / times[0]);
      }
      std::printf("\n");
    }
  }
}

// Products of bytes with weights that are not in the cache of a core: a model's worth of them takes
// turns. Next to the products of floats.
void BenchBytes(Isa isa, double seconds) {
  const U8S8Kernels& kernels = U8S8KernelsFor(isa);
  const GemmKernels& floats = GemmKernelsFor(isa);
  constexpr int64_t kModelBytes = 10 << 20;
  const double peak = MeasureGflops(isa);
  const double bandwidth = MeasureReadBandwidth(isa, kModelBytes);
  std::printf(
      "\nbytes: peak of float multiply-adds: %.1f GF/s, weights read at %.1f GB/s, one thread, "
      "%s\n",
      peak, bandwidth, std::string(IsaName(isa)).c_str());
  std::printf("%6s %6s %6s %9s %6s %9s %9s\n", "m", "k", "n", "GOP/s", "peaks", "GB/s", "floats");
  const int64_t shapes[][2] = {{384, 384}, {384, 1152}, {384, 1536}, {1536, 384}, {768, 3072}};
  for (const auto& [k, n] : shapes) {
    for (int64_t m : {1, 2, 4, 8, 16, 24, 32, 64, 128, 256, 512}) {
      const int64_t bytes = kernels.PackedBytes(k, n);
      const int64_t matrices = std::max<int64_t>(1, kModelBytes / bytes);
      WeightMemory memory;
      const Floats b(k * n / 4 + 1), a(m * k), c(m * n), packed_floats(floats.PackedFloats(k, n)),
          bias(n), scale(n);
      std::vector<std::shared_ptr<std::byte>> packed;
      for (int64_t i = 0; i < matrices; ++i) {
        packed.push_back(memory.Allocate(static_cast<size_t>(bytes)));
        kernels.pack({b.data(), n, true}, /*a_signed=*/false, k, n, packed.back().get());
      }
      U8S8Args args = {.a = a.data(),
                       .lda = k,
                       .b_signed = true,
                       .c = c.data(),
                       .ldc = n,
                       .n = n,
                       .k = k,
                       .a_zero = {.data = a.data()},
                       .a_scale = scale.data(),
                       .b_scale = scale.data(),
                       .bias = bias.data()};
      size_t turn = 0;
      const GemmArgs float_args = {.a = a.data(),
                                   .lda = k,
                                   .packed_b = packed_floats.data(),
                                   .c = c.data(),
                                   .ldc = n,
                                   .n = n,
                                   .k = k,
                                   .bias = bias.data()};
      const std::vector<double> times =
          Race({[&] {
                  args.packed_b = packed[++turn % packed.size()].get();
                  kernels.part(args, {0, m, 0, kernels.Panels(n)});
                },
                [&] {
                  floats.part(float_args, {0, m, 0, floats.Panels(n)});
                }},
               seconds);
      const double ops = 2e-9 * static_cast<double>(m * n * k);
      std::printf("%6ld %6ld %6ld %9.1f %6.2f %9.1f %8.2fx\n", m, k, n, ops / times[0],
                  ops / times[0] / peak, 1e-9 * static_cast<double>(bytes) / times[0],
                  times[1] / times[0]);
    }
  }
}

// One way to multiply by weights that are not in the cache of a core: a model's worth of them takes
// turns.
class WeightsInTurn {
 public:
  using Pack = std::function<void(std::byte* packed)>;

  WeightsInTurn(int64_t bytes, int64_t matrices, const Pack& pack) {
    for (int64_t i = 0; i < matrices; ++i) {
      packed_.push_back(memory_.Allocate(static_cast<size_t>(bytes)));
      pack(packed_.back().get());
    }
  }
  const void* Next() { return packed_[++turn_ % packed_.size()].get(); }

 private:
  WeightMemory memory_;
  std::vector<std::shared_ptr<std::byte>> packed_;
  size_t turn_ = 0;
};

// Products of floats by all the weights of a MiniLM, stored as floats and as int8. GF/s; the rate
// at which floats are read.
void BenchWeights(Isa isa, double seconds) {
  const GemmKernels& floats = GemmKernelsFor(isa);
  const GemmKernels* many = TileGemmKernelsFor(isa);
  if (many == nullptr) many = DigitGemmKernelsFor(isa);
  if (many == nullptr) many = &floats;
  constexpr int64_t kElements = 10'600'000;
  std::printf("\nweights: peak %.1f GF/s, %zu MB read at %.1f GB/s, one thread, %s\n",
              MeasureGflops(isa), kElements * sizeof(float) >> 20,
              MeasureReadBandwidth(isa, kElements * sizeof(float)),
              std::string(IsaName(isa)).c_str());
  std::printf("%6s %6s %6s %9s %9s %9s %9s %9s\n", "m", "k", "n", "floats", "GB/s", "near", "int8",
              "best int8");
  const int64_t shapes[][2] = {{384, 1152}, {1536, 384}, {768, 3072}};
  for (const auto& [k, n] : shapes) {
    const int64_t rows = k, columns = n, matrices = std::max<int64_t>(1, kElements / (k * n));
    const Floats b(k * n), bias(n), scales(n);
    WeightsInTurn as_floats(floats.PackedFloats(k, n) * static_cast<int64_t>(sizeof(float)),
                            matrices, [&](std::byte* packed) {
                              floats.pack({b.data(), columns, false}, rows, columns, 1,
                                          reinterpret_cast<float*>(packed));
                            });
    const Int8Source int8 = {reinterpret_cast<const int8_t*>(b.data()), columns, false,
                             scales.data()};
    const auto pack_by = [&](const GemmKernels& kernels) {
      return [&kernels, int8, rows, columns](std::byte* packed) {
        kernels.pack_int8(int8, rows, columns, 1, packed);
      };
    };
    WeightsInTurn as_int8(floats.PackedInt8Bytes(k, n), matrices, pack_by(floats));
    WeightsInTurn for_many(many->PackedInt8Bytes(k, n), matrices, pack_by(*many));
    for (int64_t m : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512}) {
      const Floats a(m * k), c(m * n);
      const AlignedBuffer scratch(static_cast<size_t>(many->PartScratchBytes(m, k, true)));
      const auto run = [&, rows, columns, m](const GemmKernels& kernels, WeightsInTurn& weights,
                                             bool as_bytes, GemmBlocking::Near near) {
        const GemmArgs args = {.a = a.data(),
                               .lda = rows,
                               .packed_b = weights.Next(),
                               .c = c.data(),
                               .ldc = columns,
                               .n = columns,
                               .k = rows,
                               .bias = bias.data(),
                               .blocking = {.near = near},
                               .scratch = scratch.data()};
        (as_bytes ? kernels.part_int8 : kernels.part)(args, {0, m, 0, kernels.Panels(columns)});
      };
      using Near = GemmBlocking::Near;
      const std::vector<std::function<void()>> functions = {
          [&] { run(floats, as_floats, false, Near::kByRows); },
          [&] { run(floats, as_floats, false, Near::kYes); },
          [&] { run(floats, as_int8, true, Near::kByRows); },
          [&] { run(*many, for_many, true, Near::kByRows); }};
      const std::vector<double> times = Race(functions, seconds);
      const double flops = 2e-9 * static_cast<double>(m * k * n);
      std::printf("%6ld %6ld %6ld %9.1f %9.1f", m, k, n, flops / times[0],
                  4e-9 * static_cast<double>(k * n) / times[0]);
      for (size_t i = 1; i < times.size(); ++i) std::printf(" %9.1f", flops / times[i]);
      std::printf("\n");
    }
  }
}

// Products by all the weights of a small decoder, stored in 4 or 8 bits in blocks of 32: as floats
// that are made on the way, as bytes, and as bfloat16. GF/s, and the rate at which packed weights
// are read.
void BenchBlocks(Isa isa, double seconds) {
  const GemmKernels& division = GemmKernelsFor(isa);
  const BlockGemmKernels& floats = BlockGemmKernelsFor(isa);
  const BlockDigitKernels* const digits = BlockDigitKernelsFor(isa);
  const BlockDigitKernels* const rounded = BlockDigitKernelsFor(isa, /*rounded=*/true);
  const Bf16BlockKernels* const halves = Bf16BlockKernelsFor(isa);
  constexpr int64_t kElements = 100'000'000;
  std::printf("\nblocks: peak %.1f GF/s, %ld MB read at %.1f GB/s, one thread, %s\n",
              MeasureGflops(isa), kElements / 2 >> 20, MeasureReadBandwidth(isa, kElements / 2),
              std::string(IsaName(isa)).c_str());
  std::printf("%4s %6s %6s %6s %9s %9s %9s %9s %9s %9s %9s\n", "bits", "m", "k", "n", "floats",
              "GB/s", "bytes", "GB/s", "bf16", "GB/s", "int8");
  const int64_t shapes[][3] = {{4, 576, 3072}, {4, 1536, 576}, {8, 576, 49152}};
  for (const auto& [bits, k, n] : shapes) {
    const BlockForm form = {.bits = static_cast<int>(bits), .block = 32, .points = true};
    const Floats numbers(n * k * bits / 32 + 1), scales(n * form.Blocks(k));
    const std::vector<float> points(n * form.Blocks(k), static_cast<float>(1 << (bits - 1)));
    const BlockSource source = {.numbers = reinterpret_cast<const uint8_t*>(numbers.data()),
                                .row_bytes = k * bits / 8,
                                .bits = form.bits,
                                .scales = scales.data(),
                                .points = points.data()};
    const int64_t matrices = std::max<int64_t>(1, kElements / (n * k));
    const int64_t float_bytes = floats.PackedBytes(k, n, form);
    const int64_t digit_bytes = digits == nullptr ? 64 : digits->packed_bytes(k, n, form);
    WeightsInTurn as_floats(float_bytes, matrices, [&, k, n](std::byte* packed) {
      floats.pack(source, form, k, n, packed);
    });
    WeightsInTurn as_digits(digit_bytes, matrices, [&, k, n](std::byte* packed) {
      if (digits != nullptr) digits->pack(source, form, k, n, packed);
    });
    const int64_t half_bytes = halves == nullptr ? 64 : halves->packed_bytes(k, n, form);
    WeightsInTurn as_halves(half_bytes, matrices, [&, k, n](std::byte* packed) {
      if (halves != nullptr) halves->pack(source, form, k, n, packed);
    });
    for (int64_t m : {1, 2, 4, 8, 16, 64, 128, 512}) {
      const Floats a(m * k), c(m * n);
      const AlignedBuffer scratch(static_cast<size_t>(
          std::max(digits == nullptr ? 64 : digits->scratch_bytes(m, k, form),
                   halves == nullptr ? 64 : halves->scratch_bytes(m, k, form))));
      GemmArgs args = {.a = a.data(),
                       .lda = k,
                       .c = c.data(),
                       .ldc = n,
                       .n = n,
                       .k = k,
                       .scratch = scratch.data()};
      const std::vector<double> times =
          Race({[&, m, n] {
                  args.packed_b = as_floats.Next();
                  floats.part(args, form, {0, m, 0, division.Panels(n)});
                },
                [&, m, n] {
                  if (digits == nullptr) return;
                  args.packed_b = as_digits.Next();
                  digits->part(args, form, {0, m, 0, digits->division.Panels(n)});
                },
                [&, m, n] {
                  if (halves == nullptr) return;
                  args.packed_b = as_halves.Next();
                  halves->part(args, form, {0, m, 0, halves->division.Panels(n)});
                },
                [&, m, n] {
                  if (rounded == nullptr) return;
                  args.packed_b = as_digits.Next();
                  rounded->part(args, form, {0, m, 0, rounded->division.Panels(n)});
                }},
               seconds);
      const double flops = 2e-9 * static_cast<double>(m * k * n);
      std::printf("%4ld %6ld %6ld %6ld %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n", bits, m, k, n,
                  flops / times[0], 1e-9 * static_cast<double>(float_bytes) / times[0],
                  flops / times[1], 1e-9 * static_cast<double>(digit_bytes) / times[1],
                  flops / times[2], 1e-9 * static_cast<double>(half_bytes) / times[2],
                  flops / times[3]);
    }
  }
}

// Products of activations: nothing is packed ahead, on either side.
void BenchUnpacked(Isa isa, double seconds) {
  const GemmKernels& kernels = GemmKernelsFor(isa);
  const std::shared_ptr<const ForeignBlas> blas = LoadOpenBlas(isa);
  std::printf("\nunpacked\n%6s %6s %6s %3s %9s %9s %7s\n", "m", "k", "n", "B", "ours", "openblas",
              "ratio");
  const int64_t shapes[][3] = {{1, 64, 512},    {16, 32, 16},    {32, 32, 32},      {128, 32, 128},
                               {128, 128, 32},  {512, 64, 512},  {512, 512, 64},    {64, 768, 768},
                               {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}};
  for (const auto& [m, k, n] : shapes) {
    for (bool transposed : {false, true}) {
      const Floats a(m * k), b(k * n), c(m * n), scratch(kernels.UnpackedScratchFloats(k));
      const UnpackedGemmArgs args = {
          .gemm = {.a = a.data(), .lda = k, .c = c.data(), .ldc = n, .n = n, .k = k},
          .b = {.data = b.data(), .ld = transposed ? k : n, .transposed = transposed},
          .scratch = scratch.data()};
      const std::vector<double> times =
          Race({[&] {
                  kernels.unpacked(args, {0, m, 0, kernels.Panels(n)});
                },
                [&] {
                  if (blas == nullptr) return;
                  blas->Multiply(BlasProduct<float>{.m = m,
                                                    .n = n,
                                                    .k = k,
                                                    .a = a.data(),
                                                    .lda = k,
                                                    .b = b.data(),
                                                    .ldb = transposed ? k : n,
                                                    .transposed_b = transposed,
                                                    .c = c.data(),
                                                    .ldc = n});
                }},
               seconds);
      const double flops = 2e-9 * static_cast<double>(m * n * k);
      std::printf("%6ld %6ld %6ld %3s %9.1f %9.1f %6.2fx\n", m, k, n, transposed ? "T" : "",
                  flops / times[0], flops / times[1], times[1] / times[0]);
    }
  }
}

// Measures one sequence of all 12 heads, read out of a fused Q-K-V product. OpenBLAS does the two
// products of each head and no softmax.
void BenchAttention(Isa isa, double seconds) {
  const AttentionKernels& kernels =
      isa.Covers(Isa::kAmx) ? *TileAttentionKernelsFor(isa) : AttentionKernelsFor(isa);
  const std::shared_ptr<const ForeignBlas> blas = LoadOpenBlas(isa);
  std::printf("\n%6s %6s %6s %9s %9s %9s %7s\n", "length", "heads", "dim", "us", "GF/s", "blas us",
              "ratio");
  constexpr int64_t kHeads = 12;
  for (int64_t dim : {32, 64}) {
    for (int64_t length : {8, 16, 20, 32, 64, 128, 256, 512}) {
      const int64_t hidden = kHeads * dim;
      const Floats qkv(length * 3 * hidden), out(length * hidden), bias(length),
          scratch(kernels.scratch_floats(length, dim, dim)), scores(length * length);
      const std::vector<double> times =
          Race({[&] {
                  for (int64_t head = 0; head < kHeads; ++head) {
                    const float* q = qkv.data() + head * dim;
                    const AttentionArgs args = {.q = q,
                                                .k = q + hidden,
                                                .v = q + 2 * hidden,
                                                .out = out.data() + head * dim,
                                                .q_stride = 3 * hidden,
                                                .k_stride = 3 * hidden,
                                                .v_stride = 3 * hidden,
                                                .out_stride = hidden,
                                                .keys = length,
                                                .head_dim = dim,
                                                .v_head_dim = dim,
                                                .scale = 0.17f,
                                                .bias = bias.data(),
                                                .scratch = scratch.data()};
                    kernels.rows(args, 0, length);
                  }
                },
                [&] {
                  if (blas == nullptr) return;
                  for (int64_t head = 0; head < kHeads; ++head) {
                    const float* q = qkv.data() + head * dim;
                    blas->Multiply(BlasProduct<float>{.m = length,
                                                      .n = length,
                                                      .k = dim,
                                                      .a = q,
                                                      .lda = 3 * hidden,
                                                      .b = q + hidden,
                                                      .ldb = 3 * hidden,
                                                      .transposed_b = true,
                                                      .c = scores.data(),
                                                      .ldc = length,
                                                      .alpha = 0.17f});
                    blas->Multiply(BlasProduct<float>{.m = length,
                                                      .n = dim,
                                                      .k = length,
                                                      .a = scores.data(),
                                                      .lda = length,
                                                      .b = q + 2 * hidden,
                                                      .ldb = 3 * hidden,
                                                      .c = out.data() + head * dim,
                                                      .ldc = hidden});
                  }
                }},
               seconds);
      const double flops = 4e-9 * static_cast<double>(kHeads * length * length * dim);
      std::printf("%6ld %6ld %6ld %9.1f %9.1f %9.1f %6.2fx\n", length, kHeads, dim, times[0] * 1e6,
                  flops / times[0], times[1] * 1e6, times[1] / times[0]);
    }
  }
}

}  // namespace
}  // namespace reprise::cpu

int main(int argc, char** argv) {
  reprise::Isa isa = reprise::DetectIsa();
  double seconds = 0.2;
  std::string family = "all";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--isa") == 0) {
      const auto parsed = reprise::ParseIsa(argv[i + 1]);
      if (!parsed || !parsed->Covers(reprise::DetectIsa().Within(*parsed)) ||
          reprise::IsaName(reprise::UsableIsa(*parsed)) != reprise::IsaName(*parsed)) {
        std::fprintf(stderr, "--isa %s: not a tier of this machine\n", argv[i + 1]);
        return 2;
      }
      isa = *parsed;
    } else if (std::strcmp(argv[i], "--only") == 0) {
      family = argv[i + 1];
    } else if (std::strcmp(argv[i], "--seconds-per-case") == 0) {
      seconds = std::atof(argv[i + 1]);
    } else {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
  }
  const auto wanted = [&](const char* name) { return family == "all" || family == name; };
  if (wanted("gemm")) reprise::cpu::BenchGemm(isa, seconds);
  if (wanted("weights")) reprise::cpu::BenchWeights(isa, seconds);
  if (wanted("blocks")) reprise::cpu::BenchBlocks(isa, seconds);
  if (wanted("bytes")) reprise::cpu::BenchBytes(isa, seconds);
  if (wanted("unpacked")) reprise::cpu::BenchUnpacked(isa, seconds);
  if (wanted("attention")) reprise::cpu::BenchAttention(isa, seconds);
  return 0;
}
