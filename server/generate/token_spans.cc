#include "server/generate/token_spans.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/memory_net.h"

namespace reprise {

void TokenSpans::On(const GenerationEvent& event, int64_t prompt_tokens, int64_t now_ns) {
  tokens_ += std::ssize(event.tokens);
  if (first_ns_ == 0 && !event.tokens.empty()) first_ns_ = now_ns;
  if (!event.last) return;
  WhereMemoryAllows([&] {
    const std::string error(event.status.message());
    const int64_t prompt_ends_ns = first_ns_ == 0 ? now_ns : first_ns_;
    const int64_t prompt_ns = std::min(submit_ns_ + event.wait.ns, prompt_ends_ns);
    trace_->Add({.name = "queue",
                 .start_ns = submit_ns_,
                 .end_ns = prompt_ns,
                 .attributes = {{"reprise.prompts_before", event.wait.prompts_before}}});
    trace_->Add({.name = "prompt",
                 .start_ns = prompt_ns,
                 .end_ns = prompt_ends_ns,
                 .attributes = {{"reprise.prompt_tokens", prompt_tokens},
                                {"reprise.cached_tokens", event.cached_tokens}},
                 .error = first_ns_ == 0 ? error : ""});
    if (first_ns_ == 0) return;
    trace_->Add({.name = "tokens",
                 .start_ns = first_ns_,
                 .end_ns = now_ns,
                 .attributes = {{"reprise.tokens", tokens_}},
                 .error = error});
  });
}

}  // namespace reprise
