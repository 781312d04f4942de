// GrammarConstraint: a grammar as the set of tokens that may follow in an answer. The mask of the
// next token is computed next to the step that computes its scores, on a thread of texts where one
// is free.
//
// Threads: one at a time calls its methods.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/sequences/token_constraint.h"
#include "server/text/grammar.h"
#include "server/text/text_threads.h"

namespace reprise {

class GrammarConstraint : public TokenConstraint {
 public:
  // `grammar` is copied at the first use. `threads` outlives it.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, int64_t vocabulary,
                    TextThreads& threads);
  ~GrammarConstraint() override;

  absl::Status Restrict(absl::Span<float> scores) override;
  absl::StatusOr<bool> Take(int64_t id) override;

 private:
  struct Work;

  const std::shared_ptr<Work> work_;
  TextThreads& threads_;
};

}  // namespace reprise
