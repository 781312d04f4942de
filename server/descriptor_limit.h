// How many descriptors the process may have open: connections, files and models share them.
#pragma once

#include <cstdint>

namespace reprise {

// Raises the limit as far as the system lets any process, and returns it; where it cannot be
// raised, returns the present limit. Call it once, before there are threads.
int64_t RaiseDescriptorLimit();

// Returns the present limit.
int64_t DescriptorLimit();

}  // namespace reprise
