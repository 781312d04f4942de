// kCompilerDigest covers the sources of everything that decides how a graph becomes a recipe. The
// file that defines it is written by the build (cmake/CompilerDigest.cmake).
#pragma once

namespace reprise {

extern const char kCompilerDigest[];  // 16 hex digits

}  // namespace reprise
