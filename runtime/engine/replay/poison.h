// Poison: a test mode in which memory that a replay has not written can be told from its results.
//
// Before each replay the stream's block is filled with a pattern, so are the places of answers, and
// the padding of inputs that may hold anything holds another one. An answer in which either turns
// up holds bytes that were never computed: in service these are remains of other requests.
//
// Switched on by StreamOptions::poison, or for a whole process, the daemon as well, by the
// environment variable REPRISE_POISON_ARENAS=1.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace reprise {

// As a float it is NaN, and so are results computed with it; as an integer it is no valid index.
inline constexpr uint32_t kPoison = 0x7fd2bada;
// For padding whose contents must not matter: of common size, so that no type and no sum overflows.
inline constexpr float kPoisonedPadding = 97.364944F;

// Returns whether REPRISE_POISON_ARENAS is set to something other than 0.
bool PoisonIsWanted();

void FillWithPoison(void* to, size_t bytes);
bool HoldsPoison(absl::string_view bytes);

}  // namespace reprise
