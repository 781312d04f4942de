#include "runtime/generate/generate.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace reprise {

absl::StatusOr<std::vector<GeneratedAnswer>> Generate(Generator& generator,
                                                      GenerationRequest request) {
  std::vector<GeneratedAnswer> answers(
      static_cast<size_t>(std::max<int64_t>(request.sampling.n, 1)));
  absl::Status status;
  bool done = false;
  request.counts_unread = false;
  request.on_event = [&, told = std::move(request.on_event)](const GenerationEvent& event) {
    GeneratedAnswer& answer = answers[static_cast<size_t>(event.answer)];
    answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
    answer.finish = event.finish;
    if (status.ok()) status = event.status;
    done = event.last;
    if (told != nullptr) told(event);
  };
  RETURN_IF_ERROR(generator.Submit(std::move(request)).status());
  while (!done) {
    // Other sequences may wait for their clients; this request always has all that it needs.
    if (!generator.Step() && !done) generator.Wait(1'000'000);
  }
  RETURN_IF_ERROR(status);
  return answers;
}

}  // namespace reprise
