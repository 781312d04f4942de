// The part of Generator that searches: a group of sequences that go on together, a token a step.
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"

namespace reprise {

std::optional<int64_t> Generator::ForcedNext(const Sequence& sequence) const {
  const GenerationRequest& asked = sequence.request->asked;
  const int64_t left = asked.sampling.max_tokens - sequence.drawn();
  if (asked.begins_whole) return left == 1 ? options_.rules.forced_last : std::nullopt;
  return options_.rules.ForcedAt(static_cast<int64_t>(sequence.tokens.size()), left);
}

std::vector<int64_t> Generator::NeverNext(const Sequence& sequence) const {
  const DecoderRules& rules = options_.rules;
  std::vector<int64_t> never = rules.suppressed;
  const bool begins_whole = sequence.request->asked.begins_whole;
  const int64_t first = begins_whole ? sequence.prompt() : rules.FirstFree(sequence.prompt());
  if (static_cast<int64_t>(sequence.tokens.size()) == first) {
    absl::c_copy(rules.suppressed_first, std::back_inserter(never));
  }
  return never;
}

absl::Status Generator::CheckBeamPages(const SequenceRequest& request) const {
  const int64_t beams = request.asked.beams.beams;
  if (beams <= 1) return absl::OkStatus();
  const int64_t positions = pages_->options().positions;
  const int64_t end = std::min(
      context_, static_cast<int64_t>(request.asked.ids.size()) + request.asked.sampling.max_tokens);
  const int64_t cross = request.cross.has_value() ? request.cross->PagesOf(positions) : 0;
  const int64_t needed = beams * ((end + positions - 1) / positions) + cross;
  if (needed <= pages_->options().max_pages) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(beams, " beams of ", end, " tokens need ", needed,
                                                 " pages, and there are ",
                                                 pages_->options().max_pages));
}

void Generator::Offer(Sequence& sequence, absl::Span<const float> scores) {
  SequenceRequest& request = *sequence.request;
  BeamSearch& search = request.group->search;
  const absl::StatusOr<bool> complete =
      search.Add(sequence.beam, scores, NeverNext(sequence), ForcedNext(sequence));
  if (!complete.ok()) return EndBeams(sequence.request, complete.status());
  sequence.offered = true;
  if (!*complete) return;
  const int64_t now = engine_.options().clock->NowNs();
  if (sequence.last_token_ns == 0) {
    options_.events.on_first_token(now - request.start_ns);
  } else {
    options_.events.on_token(now - sequence.last_token_ns);
  }
  for (Sequence* beam : request.group->beams) beam->last_token_ns = now;
  ++counts_.generated_tokens;
  const std::vector<BeamSearch::Child> children = search.Advance();
  if (children.empty()) return EndBeams(sequence.request, absl::OkStatus());
  const bool foreign =
      absl::c_any_of(children, [&](const BeamSearch::Child& one) { return one.id >= id_rows_; });
  if (foreign) {
    return EndBeams(sequence.request,
                    absl::DataLossError(absl::StrCat(
                        "the model chose an id beyond its own, which are below ", id_rows_)));
  }
  NextBeams(request, children);
}

void Generator::NextBeams(SequenceRequest& request,
                          const std::vector<BeamSearch::Child>& children) {
  std::vector<Sequence*>& beams = request.group->beams;
  const std::vector<Sequence*> before = std::exchange(beams, {});
  // Beams without successors give up their pages first.
  std::vector<int64_t> left(before.size());
  for (const BeamSearch::Child& child : children) ++left[static_cast<size_t>(child.parent)];
  for (size_t i = 0; i < before.size(); ++i) {
    if (left[i] > 0) continue;
    DropPages(*before[i], *pages_);
    before[i]->request = nullptr;
  }
  // The last child of a beam takes its pages over; those before it share them.
  for (const BeamSearch::Child& child : children) {
    Sequence* parent = before[static_cast<size_t>(child.parent)];
    Sequence* beam = parent;
    if (--left[static_cast<size_t>(child.parent)] > 0) {
      const bool runs = !parent->pages.empty();
      SequencePtr copy = CopyOfBeam(*parent);
      beam = copy.get();
      AddBeam(std::move(copy), runs);
    }
    beams.push_back(beam);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    beams[i]->beam = static_cast<int64_t>(i);
    beams[i]->offered = false;
    beams[i]->tokens.push_back(children[i].id);
  }
}

Generator::SequencePtr Generator::CopyOfBeam(const Sequence& parent) {
  auto copy = std::make_unique<Sequence>();
  copy->request = parent.request;
  copy->answer = parent.request->group->made++;
  copy->tokens = parent.tokens;
  copy->set_back = parent.set_back;
  copy->last_token_ns = parent.last_token_ns;
  if (!parent.pages.empty()) SharePages(parent, *copy, *pages_);
  return copy;
}

void Generator::AddBeam(SequencePtr beam, bool runs) {
  if (!runs) return PutBack(std::move(beam));
  // Inserted after the others of its request, which came before it.
  const auto place = std::find_if(running_.rbegin(), running_.rend(), [&](const SequencePtr& one) {
    return one->request == beam->request;
  });
  running_.insert(place.base(), std::move(beam));
}

void Generator::EndBeams(const std::shared_ptr<SequenceRequest>& ended,
                         const absl::Status& status) {
  const std::shared_ptr<SequenceRequest> request = ended;
  for (Sequence* beam : std::exchange(request->group->beams, {})) {
    DropPages(*beam, *pages_);
    beam->request = nullptr;
  }
  const auto tell = [&](GenerationEvent event) {
    event.cached_tokens = request->cached_tokens;
    event.wait = request->wait;
    if (request->asked.counts_unread) request->handle->AddUnread(1);
    request->asked.on_event(event);
  };
  if (!status.ok()) return tell({.finish = Ending::kError, .status = status, .last = true});
  const bool tells = request->asked.sampling.logprobs >= 0;
  const std::vector<BeamSearch::Answer> answers =
      request->group->search.Best(request->asked.sampling.n);
  if (answers.empty()) {
    return tell({.finish = Ending::kError,
                 .status = absl::DataLossError("no token may follow in any beam"),
                 .last = true});
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    GenerationEvent event = {.answer = static_cast<int64_t>(i),
                             .finish = answers[i].stopped ? Ending::kStop : Ending::kLength,
                             .last = i + 1 == answers.size()};
    for (const BeamSearch::Token& token : answers[i].tokens) {
      event.tokens.push_back({.id = token.id, .logprob = tells ? token.logprob : 0});
    }
    tell(std::move(event));
  }
}

bool Generator::BreakStall() {
  const bool waits = !waiting_.empty() &&
                     absl::c_any_of(running_, [](const SequencePtr& one) { return one->offered; });
  if (!waits) return false;
  Sequence* const youngest = Youngest();
  if (youngest == nullptr) return false;
  SetBack(*youngest);
  for (Sequence* sequence : std::exchange(dropped_, {})) WaitAgain(*sequence);
  EraseEnded();
  return true;
}

}  // namespace reprise
