// TokenSpans: the spans of a request for tokens that is traced: its time in the queue, its prompt
// up to the first token, and the tokens that follow.
//
// Threads: the one that reports events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/generate/generation.h"
#include "server/tracing/request_trace.h"

namespace reprise {

class TokenSpans {
 public:
  // `trace`: null where it is not traced. `submit_ns`: when the request was handed to its model.
  TokenSpans(std::shared_ptr<RequestTrace> trace, int64_t submit_ns)
      : trace_(std::move(trace)), submit_ns_(submit_ns) {}

  bool wanted() const { return trace_ != nullptr; }
  std::string trace_id() const { return wanted() ? trace_->id_text() : ""; }
  // Notes an event at `now_ns`; with the last event the spans are added.
  void On(const GenerationEvent& event, int64_t prompt_tokens, int64_t now_ns);

 private:
  std::shared_ptr<RequestTrace> trace_;
  int64_t submit_ns_;
  int64_t first_ns_ = 0;  // 0: no token has come
  int64_t tokens_ = 0;
};

}  // namespace reprise
