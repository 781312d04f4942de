#include "client/cli/load.h"

#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/random_inputs.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;
using InputsByLength = std::map<int64_t, std::vector<OwnedTensor>>;

// Made before the clock starts: one set of inputs for each length that occurs.
absl::StatusOr<InputsByLength> MakeInputs(const inference::ModelMetadataResponse& metadata,
                                          const LoadOptions& options) {
  InputsByLength inputs;
  for (int64_t length : options.lengths) {
    if (inputs.count(length) > 0) continue;
    // Seeded by the length: the same request whatever else is drawn.
    std::mt19937_64 random(options.seed * 1'000'003 + static_cast<uint64_t>(length));
    const RandomInputOptions shape{
        .batch = options.batch, .length = length, .max_id = options.max_id};
    ASSIGN_OR_RETURN(inputs[length], RandomInputs(metadata, shape, random));
  }
  return inputs;
}

// Returns the texts of request number `index`.
std::vector<OwnedTensor> TextsOf(const LoadOptions& options, int64_t index) {
  std::vector<std::string> texts;
  for (int64_t row = 0; row < options.batch; ++row) {
    texts.push_back(
        options.texts[static_cast<size_t>(index * options.batch + row) % options.texts.size()]);
  }
  return {TextTensor(texts)};
}

Sample SendOne(client::Client& client, const LoadOptions& options, int64_t length,
               const std::vector<OwnedTensor>& tensors) {
  Sample sample{.length = length, .batch = options.batch};
  const auto start = SteadyClock::now();
  const auto result =
      client.Infer({.model = options.model, .version = options.version, .inputs = Views(tensors)});
  const std::chrono::duration<double, std::milli> took = SteadyClock::now() - start;
  sample.milliseconds = took.count();
  if (!result.ok()) {
    sample.error = absl::StrCat(absl::StatusCodeToString(result.status().code()), ": ",
                                result.status().message());
    return sample;
  }
  sample.bucket = result->Parameter("reprise.bucket");
  sample.capture = result->Parameter("reprise.capture");
  sample.replay = result->IntParameter("reprise.batch", -1);
  sample.batch_size = result->IntParameter("reprise.batch_size", -1);
  sample.tokens = result->IntParameter("reprise.tokens", -1);
  return sample;
}

}  // namespace

absl::StatusOr<LoadResult> RunLoad(client::Client& client, const LoadOptions& options,
                                   const std::function<void(int64_t)>& progress) {
  if (options.lengths.empty() && options.texts.empty()) {
    return absl::InvalidArgumentError("no lengths and no texts to send");
  }
  ASSIGN_OR_RETURN(const auto metadata, client.RequiredMetadata(options.model, options.version));
  InputsByLength inputs;
  if (options.texts.empty()) {
    ASSIGN_OR_RETURN(inputs, MakeInputs(metadata, options));
  }

  auto measured = RunWorkers(
      options, /*rate=*/0,
      [&](int64_t index, SteadyClock::time_point) {
        if (!options.texts.empty()) return SendOne(client, options, 0, TextsOf(options, index));
        const int64_t length = options.lengths[static_cast<size_t>(index) % options.lengths.size()];
        return SendOne(client, options, length, inputs.at(length));
      },
      progress);
  return LoadResult{.samples = std::move(measured.samples),
                    .seconds = measured.seconds,
                    .has_length = !options.texts.empty() || HasLength(metadata)};
}

}  // namespace reprise::cli
