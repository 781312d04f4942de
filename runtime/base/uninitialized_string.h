// ResizeUninitialized: makes room in a string for bytes that are written next.
#pragma once

#include <cstddef>
#include <string>

namespace reprise {

// Makes `text` have `size` bytes; the added ones hold anything, also bytes that were freed
// elsewhere: write each of them before the text leaves the process. Much memory lies in huge pages.
// That bytes may be left as they are is a promise of libstdc++, not of C++23.
void ResizeUninitialized(std::string& text, size_t size);

}  // namespace reprise
