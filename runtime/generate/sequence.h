// Sequence: the tokens of one answer, and the state of their keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/generate/generation.h"
#include "runtime/generate/key_share.h"
#include "runtime/generate/prompt_encoder.h"
#include "runtime/sequences/beam_search.h"
#include "runtime/sequences/page_pool.h"
#include "runtime/sequences/sampling.h"

namespace reprise {

// The pages of an encoder's result for the prompt. They are there while any answer holds its own.
struct CrossPages {
  EncoderPrompt prompt;
  std::optional<int64_t> length;  // places; nullopt: not known yet
  std::vector<PageId> pages;
  std::vector<std::byte*> addresses;  // addresses of `pages`
  int64_t holders = 0;                // sequences

  int64_t PagesOf(int64_t positions) const {
    return (length.value_or(0) + positions - 1) / positions;
  }
};

struct Sequence;

// The answers of a request that are searched for together: a sequence for each beam.
struct BeamGroup {
  BeamSearch search;
  std::vector<Sequence*> beams;  // place i: beam number i; they run, or wait
  int64_t made = 0;              // sequences so far
};

// The answers of one request share this.
struct SequenceRequest {
  GenerationRequest asked;
  std::optional<CrossPages> cross;  // where the prompt goes to an encoder
  std::optional<BeamGroup> group;   // where answers are searched for
  std::shared_ptr<Generation> handle;
  std::shared_ptr<KeyShare> share;
  uint64_t rank = 0;    // its priority within its key; 0 once it has waited for long
  int64_t arrival = 0;  // its place among all requests
  int64_t start_ns = 0;
  int64_t open_answers = 1;
  int64_t cached_tokens = 0;
  GenerationWait wait;
  bool forked = false;  // its other answers have begun
  // The tokens of the prompt that are scored and not told yet, and how many were scored.
  std::vector<SampledToken> prompt_scores;
  int64_t scored = 0;
  std::optional<float> watched;  // its log-probability, not told yet
};

struct Sequence {
  std::shared_ptr<SequenceRequest> request;
  int64_t answer = 0;
  std::vector<int64_t> tokens;  // prompt, then drawn tokens
  int64_t computed = 0;         // the first of them, whose keys and values lie in pages
  std::vector<PageId> pages;
  std::vector<std::byte*> addresses;  // addresses of `pages`
  bool holds_cross = false;           // it is one of the holders of its request's cross pages
  int64_t beam = 0;                   // its number in its group
  bool offered = false;               // its scores are known, and others of its group are not
  int64_t registered = 0;             // pages that others may find
  std::vector<int64_t> draft;         // a guess at the tokens after `tokens`
  double luck = 0.5;                  // the share of drafts that are right, as seen so far
  std::optional<Sampler> sampler;
  std::unique_ptr<TokenConstraint> constraint;  // null: all tokens may follow
  int64_t set_back = 0;                         // times
  // It may hold pages while it waits: they are kept until others lack them.
  // Pages that it lacked when its prefix was looked up, and the state of the pool
  // then (PagePool::changes).
  int64_t lacked = 0;
  int64_t looked_up = -1;
  int64_t last_token_ns = 0;

  int64_t missing() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t prompt() const { return static_cast<int64_t>(request->asked.ids.size()); }
  int64_t drawn() const { return static_cast<int64_t>(tokens.size()) - prompt(); }
  // Only the token that was drawn last is missing.
  bool continues() const { return missing() == 1 && drawn() > 0; }
  // Returns whether the scores of each token of the prompt are requested.
  bool scores_prompt() const { return request->asked.scores_prompt && drawn() == 0; }
  // Returns the id of token `i` after those that are computed: a missing one, or one of the draft.
  int64_t IdToCompute(int64_t i) const {
    const int64_t drafted = i - missing();
    return drafted < 0 ? tokens[static_cast<size_t>(computed + i)]
                       : draft[static_cast<size_t>(drafted)];
  }
  // Keeps `page` as the next one.
  void Keep(PageId page, const PagePool& pool) {
    pages.push_back(page);
    addresses.push_back(pool.address(page));
  }
};

// Returns whether `a` is served sooner: by its lower rank, then by its arrival.
inline bool IsSooner(const Sequence& a, const Sequence& b) {
  if (a.request == nullptr || b.request == nullptr) return false;  // It has ended in this step.
  if (a.request->rank != b.request->rank) return a.request->rank < b.request->rank;
  if (a.request->arrival != b.request->arrival) return a.request->arrival < b.request->arrival;
  return a.answer < b.answer;
}

}  // namespace reprise
