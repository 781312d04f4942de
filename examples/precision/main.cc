// Precision by op: which products round to bfloat16, and the effect on an answer.
//
//   precision MODEL.onnx "bf16: MatMul; exact: /encoder/layer.11/*" [SIZE]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/program/runtime.h"

namespace {

// Returns the first output for inputs of ones, at one size.
absl::StatusOr<std::vector<float>> Answer(reprise::Runtime& runtime, reprise::ModelOptions options,
                                          int64_t size) {
  const auto model = runtime.Load(std::move(options));
  if (!model.ok()) return model.status();
  reprise::AxisSizes sizes;
  for (const reprise::ModelAxis& axis : (*model)->axes()) {
    sizes[axis.label] = axis.is_batch ? 1 : size;
  }
  const auto session = runtime.Bind(*model, sizes);
  if (!session.ok()) return session.status();
  for (const reprise::Session::Place& input : (*session)->inputs()) {
    for (int64_t& id : (*session)->input<int64_t>(input.name)) id = 1;
    for (float& value : (*session)->input<float>(input.name)) value = 1;
  }
  const absl::Status replayed = (*session)->Replay();
  if (!replayed.ok()) return replayed;
  const auto out = (*session)->output<float>((*session)->outputs()[0].name);
  return std::vector<float>(out.begin(), out.end());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: precision MODEL.onnx RULES [SIZE]\n");
    return 2;
  }
  const int64_t size = argc > 3 ? std::atoll(argv[3]) : 16;
  auto runtime = reprise::Runtime::Create(
      {.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
  const auto rules = reprise::PrecisionRules::Parse(argv[2]);
  if (!rules.ok()) {
    std::fprintf(stderr, "precision: %s\n", std::string(rules.status().message()).c_str());
    return 1;
  }
  const auto exact = Answer(**runtime, {.id = {"exact"}, .path = argv[1]}, size);
  const auto ruled =
      Answer(**runtime, {.id = {"ruled"}, .path = argv[1], .precision_ops = *rules}, size);
  if (!exact.ok() || !ruled.ok()) {
    std::fprintf(stderr, "precision: %s\n",
                 std::string((exact.ok() ? ruled : exact).status().message()).c_str());
    return 1;
  }
  double largest = 0, difference = 0;
  for (size_t i = 0; i < exact->size(); ++i) {
    largest = std::max<double>(largest, std::abs((*exact)[i]));
    difference = std::max<double>(difference, std::abs((*exact)[i] - (*ruled)[i]));
  }
  std::printf("%s: off by at most %.3g, the largest element is %.3g\n", rules->ToString().c_str(),
              difference, largest);
  return 0;
}
