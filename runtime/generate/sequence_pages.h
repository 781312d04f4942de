// The pages of a sequence: how it finds, shares, registers and lets go of them.
//
// Threads: one at a time, as the pool.
#pragma once

#include "runtime/generate/sequence.h"
#include "runtime/sequences/page_pool.h"

namespace reprise {

// Gives `sequence`, which holds none, the full pages that others have computed of its first tokens.
// Its last token is left to compute in any case: its scores are needed.
void FindPrefix(Sequence& sequence, PagePool& pool);

// Registers pages that have become full, so that others find them. A page that another sequence
// has registered meanwhile replaces the sequence's own.
void RegisterPages(Sequence& sequence, PagePool& pool);

// Gives `to`, which holds none, the pages that `from` has computed: full ones are shared, the last
// one is copied since both write it. Where no page is left for the copy, `to` lacks the tokens of
// that page.
void SharePages(const Sequence& from, Sequence& to, PagePool& pool);

// Adds or removes one sequence as holder of the pages of the encoder's result for the prompt.
// They are free when no sequence holds them.
void HoldCross(Sequence& sequence);
void DropCross(Sequence& sequence, PagePool& pool);

// Lets go of all pages: nothing of the sequence is computed any more.
void DropPages(Sequence& sequence, PagePool& pool);

}  // namespace reprise
