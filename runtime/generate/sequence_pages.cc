#include "runtime/generate/sequence_pages.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"

namespace reprise {
namespace {

// Returns the tokens of page number `page`.
absl::Span<const int64_t> IdsOf(const Sequence& sequence, int64_t page, int64_t positions) {
  return absl::MakeConstSpan(sequence.tokens)
      .subspan(static_cast<size_t>(page * positions), static_cast<size_t>(positions));
}

}  // namespace

void FindPrefix(Sequence& sequence, PagePool& pool) {
  // A page depends on the encoder's result, too, and not on ids alone.
  if (sequence.request->cross.has_value()) return;
  const int64_t positions = pool.options().positions;
  const int64_t most = (static_cast<int64_t>(sequence.tokens.size()) - 1) / positions;
  PageId before = kNoPage;
  for (int64_t page = 0; page < most; ++page) {
    const PageId found =
        pool.Find(before, sequence.request->asked.owner, IdsOf(sequence, page, positions));
    if (found == kNoPage) break;
    sequence.Keep(found, pool);
    before = found;
  }
  sequence.registered = static_cast<int64_t>(sequence.pages.size());
  sequence.computed = sequence.registered * positions;
}

void RegisterPages(Sequence& sequence, PagePool& pool) {
  if (sequence.request->cross.has_value()) return;
  const int64_t positions = pool.options().positions;
  for (; (sequence.registered + 1) * positions <= sequence.computed; ++sequence.registered) {
    const auto page = static_cast<size_t>(sequence.registered);
    const PageId before = page == 0 ? kNoPage : sequence.pages[page - 1];
    sequence.pages[page] =
        pool.Register(sequence.pages[page], before, sequence.request->asked.owner,
                      IdsOf(sequence, sequence.registered, positions));
    sequence.addresses[page] = pool.address(sequence.pages[page]);
  }
}

void SharePages(const Sequence& from, Sequence& to, PagePool& pool) {
  if (from.holds_cross && !to.holds_cross) HoldCross(to);
  const int64_t full = from.computed / pool.options().positions;
  for (int64_t page = 0; page < full; ++page) {
    pool.Hold(from.pages[page]);
    to.Keep(from.pages[page], pool);
  }
  to.registered = std::min(from.registered, full);
  to.computed = full * pool.options().positions;
  if (to.computed == from.computed) return;
  const PageId copy = pool.Take();
  if (copy == kNoPage) return;
  pool.Copy(from.pages[full], copy);
  to.Keep(copy, pool);
  to.computed = from.computed;
}

void HoldCross(Sequence& sequence) {
  sequence.holds_cross = true;
  ++sequence.request->cross->holders;
}

void DropCross(Sequence& sequence, PagePool& pool) {
  if (!std::exchange(sequence.holds_cross, false)) return;
  CrossPages& cross = *sequence.request->cross;
  if (--cross.holders > 0) return;
  for (const PageId page : cross.pages) pool.Drop(page);
  cross.pages.clear();
  cross.addresses.clear();
}

void DropPages(Sequence& sequence, PagePool& pool) {
  DropCross(sequence, pool);
  // Later pages of a prefix come first.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page) {
    pool.Drop(*page);
  }
  sequence.pages.clear();
  sequence.addresses.clear();
  sequence.registered = sequence.computed = 0;
}

}  // namespace reprise
