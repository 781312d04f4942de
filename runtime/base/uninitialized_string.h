// ResizeUninitialized: room in a string for what is written next.
#pragma once

#include <cstddef>
#include <string>

namespace reprise {

// `text` has `size` bytes; those that it had not before hold anything, also what was freed
// elsewhere: whoever hands them out has written each. Much memory lies in huge pages. That bytes
// may be left as they are is a promise of libstdc++, not of C++23.
void ResizeUninitialized(std::string& text, size_t size);

}  // namespace reprise
