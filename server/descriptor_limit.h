// How many descriptors the process may have open: connections, files and models share them.
#pragma once

#include <cstdint>

namespace reprise {

// Raises the limit as far as the system lets any process, and returns it; where it cannot be
// raised, what it is. Once, before there are threads.
int64_t RaiseDescriptorLimit();

// The limit as it is.
int64_t DescriptorLimit();

}  // namespace reprise
