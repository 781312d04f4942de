// SourceLocation: the place of a call in a source, as std::source_location, which clang does not
// know before version 15 with the standard library of GCC 12.
//
//   Tensor Relu(Tensor x, SourceLocation at = SourceLocation::current());
#ifndef REPRISE_RUNTIME_LAZY_SOURCE_LOCATION_H_
#define REPRISE_RUNTIME_LAZY_SOURCE_LOCATION_H_

namespace reprise::lazy {

class SourceLocation {
 public:
  // Returns the place of the call that has this call as a default argument.
  static constexpr SourceLocation current(const char* file_name = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return SourceLocation(file_name, line);
  }

  // An unknown place: line 0 of "".
  constexpr SourceLocation() = default;

  constexpr const char* file_name() const { return file_name_; }
  constexpr int line() const { return line_; }

 private:
  constexpr SourceLocation(const char* file_name, int line) : file_name_(file_name), line_(line) {}

  const char* file_name_ = "";
  int line_ = 0;
};

}  // namespace reprise::lazy

#endif  // REPRISE_RUNTIME_LAZY_SOURCE_LOCATION_H_
