// JsonWriter: JSON as text, a member at a time, indented by two spaces a level.
//
//   JsonWriter json;
//   json.Object([&] {
//     json.Member("model", "minilm");
//     json.Key("sizes");
//     json.Array([&] { for (int64_t size : sizes) json.Value(size); });
//   });
//   std::string text = json.Take();
//
// Texts keep their lines, and are otherwise shown by Printable: the result is always UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace reprise {

class JsonWriter {
 public:
  template <typename Members>
  void Object(const Members& members) {
    Open('{');
    members();
    Close('}');
  }
  template <typename Elements>
  void Array(const Elements& elements) {
    Open('[');
    elements();
    Close(']');
  }
  // Writes the name of the next value of an object.
  void Key(absl::string_view name);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(bool value) { Put(value ? "true" : "false"); }
  // Writes the number; infinities and NaN as null.
  void Value(double value);
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void Value(T value) {
    Put(std::to_string(value));
  }

  template <typename T>
  void Member(absl::string_view name, const T& value) {
    Key(name);
    Value(value);
  }

  // Returns the text, with an end of line.
  std::string Take();

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Put(absl::string_view value);
  void BeginValue();

  std::string text_;
  int depth_ = 0;
  bool first_ = true;  // the innermost bracket is empty yet
  bool after_key_ = false;
};

}  // namespace reprise
