#include "server/hub/head_steps.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr std::pair<Pooling, const char*> kPoolingNames[] = {
    {Pooling::kCls, "cls"},
    {Pooling::kMax, "max"},
    {Pooling::kMean, "mean"},
    {Pooling::kMeanSqrtLength, "mean_sqrt_len_tokens"},
    {Pooling::kWeightedMean, "weightedmean"},
    {Pooling::kLastToken, "lasttoken"},
};

// A step's names and widths; 0: any.
struct Ports {
  std::string folder, input, output;
  int64_t takes = 0, makes = 0;
};

Ports PortsOf(const HeadStep& step, int64_t width) {
  if (const auto* pooling = std::get_if<PoolingStep>(&step)) {
    const int64_t known = width > 0 ? width : pooling->width;
    return {pooling->folder, kTokenVectors, kTextVectors, pooling->width,
            known * static_cast<int64_t>(pooling->poolings.size())};
  }
  if (const auto* dense = std::get_if<DenseLayer>(&step)) {
    return {dense->folder, dense->input, dense->output, dense->weight.shape()[1],
            dense->weight.shape()[0]};
  }
  if (const auto* norm = std::get_if<LayerNormStep>(&step)) {
    const int64_t size = norm->weight.shape()[0];
    return {norm->folder, kTextVectors, kTextVectors, size, size};
  }
  if (const auto* splade = std::get_if<SpladeStep>(&step)) {
    return {splade->folder, kTokenVectors, kTextVectors, splade->width,
            width > 0 ? width : splade->width};
  }
  const auto& normalize = std::get<NormalizeStep>(step);
  return {normalize.folder, normalize.input, normalize.output, 0, width};
}

std::string InputOf(const HeadStep& step) { return PortsOf(step, 0).input; }
std::string OutputOf(const HeadStep& step) { return PortsOf(step, 0).output; }

}  // namespace

const char* PoolingName(Pooling pooling) {
  for (const auto& [value, name] : kPoolingNames) {
    if (value == pooling) return name;
  }
  return "";
}

std::optional<Pooling> ParsePooling(const std::string& name) {
  for (const auto& [value, known] : kPoolingNames) {
    if (name == known) return value;
  }
  if (name == "last" || name == "last-token") return Pooling::kLastToken;
  return std::nullopt;
}

absl::StatusOr<int64_t> WidthAfter(const std::vector<HeadStep>& steps, const std::string& first,
                                   int64_t width, const std::string& result) {
  struct Vectors {
    int64_t width = 0;
    std::string from;
  };
  std::map<std::string, Vectors> written = {{first, {width, "the model"}}};
  for (const HeadStep& step : steps) {
    const auto input = written.find(InputOf(step));
    if (input == written.end()) {
      return absl::InvalidArgumentError(absl::StrCat(PortsOf(step, 0).folder, " reads \"",
                                                     InputOf(step),
                                                     "\", which no module before it writes"));
    }
    const Vectors given = input->second;
    const Ports ports = PortsOf(step, given.width);
    if (given.width > 0 && ports.takes > 0 && given.width != ports.takes) {
      return absl::InvalidArgumentError(absl::StrCat(ports.folder, " takes vectors of ",
                                                     ports.takes, " elements, ", given.from,
                                                     " makes ", given.width));
    }
    written[ports.output] = {ports.makes, ports.folder};
  }
  const auto found = written.find(result);
  if (found == written.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("modules.json: no module writes \"", result, "\""));
  }
  return found->second.width;
}

bool Writes(const std::vector<HeadStep>& steps, const std::string& name) {
  for (const HeadStep& step : steps) {
    if (OutputOf(step) == name) return true;
  }
  return false;
}

bool EndsNormalized(const std::vector<HeadStep>& steps, const std::string& name) {
  bool normalized = false;
  for (const HeadStep& step : steps) {
    if (OutputOf(step) == name) normalized = std::holds_alternative<NormalizeStep>(step);
  }
  return normalized;
}

std::string PoolingNames(const std::vector<HeadStep>& steps, const char* between) {
  std::string names;
  for (const HeadStep& step : steps) {
    if (std::holds_alternative<SpladeStep>(step)) {
      absl::StrAppend(&names, names.empty() ? "" : between, "splade");
    }
    const auto* pooling = std::get_if<PoolingStep>(&step);
    if (pooling == nullptr) continue;
    for (const Pooling each : pooling->poolings) {
      absl::StrAppend(&names, names.empty() ? "" : between, PoolingName(each));
    }
  }
  return names;
}

}  // namespace reprise
