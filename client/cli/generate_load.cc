#include "client/cli/generate_load.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/load.h"

namespace reprise::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

std::vector<int64_t> PromptOf(const GenerateLoadOptions& options, int64_t index) {
  const int64_t length = options.prompts[static_cast<size_t>(index) % options.prompts.size()];
  std::vector<int64_t> ids;
  std::mt19937_64 shared(options.seed),
      own(options.seed * 1'000'003 + static_cast<uint64_t>(index));
  for (int64_t i = 0; i < length; ++i) {
    std::mt19937_64& random = i < options.shared_prefix ? shared : own;
    ids.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(options.max_id + 1)));
  }
  return ids;
}

GenerateSample AskOne(client::Client& client, const GenerateLoadOptions& options, int64_t index,
                      SteadyClock::time_point due) {
  client::GenerateRequest request = {
      .model = options.model, .version = options.version, .ids = PromptOf(options, index)};
  const int64_t wanted = options.outputs[static_cast<size_t>(index) % options.outputs.size()];
  request.parameters = {{"max_tokens", wanted},
                        {"ignore_eos", true},
                        {"temperature", options.temperature},
                        {"seed", index}};
  GenerateSample sample = {.prompt = static_cast<int64_t>(request.ids.size())};
  double last = 0;
  const absl::Status status = client.Generate(request, [&](const client::GeneratedTokens& tokens) {
    const double now = MillisecondsSince(due);
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      if (sample.tokens++ == 0) {
        sample.first = now;
      } else {
        sample.between.push_back(now - last);
      }
      last = now;
    }
    return true;
  });
  sample.total = last;
  if (!status.ok()) {
    sample.error = absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
  }
  return sample;
}

}  // namespace

absl::StatusOr<GenerateLoadResult> RunGenerateLoad(client::Client& client,
                                                   const GenerateLoadOptions& options,
                                                   const std::function<void(int64_t)>& progress) {
  if (options.prompts.empty() || options.outputs.empty()) {
    return absl::InvalidArgumentError("no lengths to ask for");
  }
  auto measured = RunWorkers(
      options, options.rate,
      [&](int64_t index, SteadyClock::time_point due) {
        return AskOne(client, options, index, due);
      },
      progress);
  return GenerateLoadResult{.samples = std::move(measured.samples), .seconds = measured.seconds};
}

}  // namespace reprise::cli
