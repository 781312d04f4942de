// One program, three ways to run its ops: op by op, lazily, as captured graphs.
//
//   lazy [eager|lazy|graph] [unfused]
//
// Prints a digest of the last answer: lazy and graph have the same one, and with `unfused` all
// three.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/lazy/function.h"
#include "runtime/lazy/ops.h"
#include "runtime/program/runtime.h"

namespace {

using namespace reprise::lazy;  // NOLINT: an example of how programs read

constexpr int64_t kRows = 8, kWidth = 64;

std::vector<float> Numbers(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return numbers;
}

uint64_t DigestOf(absl::Span<const float> values) {
  uint64_t digest = 1469598103934665603u;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    digest = (digest ^ bits) * 1099511628211u;
  }
  return digest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "lazy";
  const bool fusion = argc < 3 || std::strcmp(argv[2], "unfused") != 0;
  auto runtime = reprise::Runtime::Create();
  if (!runtime.ok()) return 1;
  OpStream stream((*runtime)->engine(), {.mode = mode == "eager"   ? Mode::kEager
                                                 : mode == "graph" ? Mode::kGraph
                                                                   : Mode::kLazy,
                                         .fusion = fusion});
  const Tensor w1 = stream.Parameter<float>({kWidth, kWidth}, Numbers(kWidth * kWidth, 1));
  const Tensor w2 = stream.Parameter<float>({kWidth, kWidth}, Numbers(kWidth * kWidth, 2));
  const Tensor bias = stream.Parameter<float>({kWidth}, Numbers(kWidth, 3));
  Function layer(stream, [&](const std::vector<Tensor>& in) {
    const Tensor hidden = Gelu(MatMul(in[0], w1) + bias);
    return std::vector<Tensor>{Softmax(MatMul(hidden, w2) / 8 + in[0])};
  });

  Tensor x = stream.FromVector<float>({kRows, kWidth}, Numbers(kRows * kWidth, 4));
  for (int step = 0; step < 5; ++step) {
    absl::StatusOr<std::vector<Tensor>> results = layer({x});
    if (!results.ok()) {
      std::fprintf(stderr, "lazy: %s\n", std::string(results.status().message()).c_str());
      return 1;
    }
    x = (*results)[0];
  }
  const auto values = x.data<float>();
  if (!values.ok()) return 1;
  const OpStreamStats stats = stream.stats();
  std::printf("%s: digest %016llx, first %.6f, %lld ops, %lld captures, %lld replays\n",
              mode.c_str(), static_cast<unsigned long long>(DigestOf(*values)), (*values)[0],
              static_cast<long long>(stats.ops), static_cast<long long>(stats.captures),
              static_cast<long long>(stats.replays));
  return 0;
}
