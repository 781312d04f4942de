// BeamSearch: the answers that are likeliest as a whole, several of them computed side by side.
//
// Each beam is an answer so far. A step gives a row of scores for each beam; of all ways to go on
// by one token the likeliest become the next beams, and those that end are kept as answers. An
// answer's score is the sum of its tokens' log-probabilities over (its tokens) ^ length_penalty. As
// in transformers' beam search, of twice as many ways as beams an ending one counts where it is
// among the first half.
//
//   BeamSearch search({.beams = 4}, {.stops = {2}, .max_tokens = 20});
//   for (beam of search.live()) RETURN_IF_ERROR(search.Add(beam, scores of beam));
//   for (const BeamSearch::Child& child : search.Advance()) ...
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace reprise {

struct BeamOptions {
  enum class Early {
    kBest,   // no beam can become better than the worst answer, at its length of now
    kFirst,  // there are as many answers as beams
    kNever,  // no beam can become better at any length
  };
  int64_t beams = 1;  // 1: no search
  float length_penalty = 1;
  Early early_stopping = Early::kBest;

  // INVALID_ARGUMENT naming the parameter, its value and its range. `answers`: the requested
  // number.
  absl::Status Check(int64_t answers) const;
};

class BeamSearch {
 public:
  // Says when an answer ends.
  struct Limits {
    std::vector<int64_t> stops;
    int64_t min_tokens = 0;
    int64_t max_tokens = 16;
  };
  struct Token {
    int64_t id = 0;
    float logprob = 0;
  };
  struct Answer {
    std::vector<Token> tokens;
    double score = 0;
    bool stopped = false;  // a stop id has ended it
  };
  // A way on that became a beam: beam number `parent` of before, and one token.
  struct Child {
    int64_t parent = 0;
    int64_t id = 0;
  };

  BeamSearch(const BeamOptions& options, Limits limits);

  // Beams whose rows are needed: 0 to live() - 1.
  int64_t live() const { return static_cast<int64_t>(beams_.size()); }
  // Adds the scores of beam `beam`; `never`: ids that it does not go on with; `forced`: the only
  // one, as likely as can be. DATA_LOSS where scores are no numbers. True: all rows are there.
  absl::StatusOr<bool> Add(int64_t beam, absl::Span<const float> scores,
                           absl::Span<const int64_t> never = {},
                           std::optional<int64_t> forced = std::nullopt);
  // Returns the next beams, by number; none where the search is over.
  std::vector<Child> Advance();
  // Tokens that each beam has.
  int64_t tokens() const { return tokens_; }
  // Ends all beams: the context is full.
  void Finish();
  // Returns the best answers of a search that is over, best first.
  std::vector<Answer> Best(int64_t count) const;

 private:
  struct Beam {
    double sum = 0;
    std::vector<Token> tokens;
    bool told = false;
  };
  struct Way {
    double sum = 0;
    int64_t beam = 0;
    Token token;
  };
  bool IsStop(int64_t id) const;
  void Keep(const Beam& beam, std::optional<Token> last, double sum, bool stopped);
  // Returns whether no way on can change the answers any more; `best`: the likeliest one's sum.
  bool IsDone(double best) const;

  const BeamOptions options_;
  Limits limits_;  // stops ascend
  std::vector<Beam> beams_;
  std::vector<Way> ways_;        // ways of the rows so far
  std::vector<Answer> answers_;  // best first
  int64_t tokens_ = 0;
};

}  // namespace reprise
