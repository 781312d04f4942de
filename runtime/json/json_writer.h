// JsonWriter: JSON as text, a member at a time.
//
//   JsonWriter json;
//   json.Object([&] {
//     json.Member("model", "minilm");
//     json.List("sizes", sizes);
//     json.Object("usage", [&] { json.Member("tokens", 12); });
//   });
//   std::string text = json.Take();   // {"model":"minilm","sizes":[1,2],"usage":{"tokens":12}}
//
// A function that fills brackets may return an absl::Status, which Object and Array return then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace reprise {

enum class JsonForm {
  kCompact,   // no white space; bytes that are no UTF-8 become U+FFFD
  kIndented,  // two spaces a level and an end of line, for people; texts keep their lines, and are
              // otherwise shown by Printable
};

// A value that is JSON already.
struct RawJson {
  absl::string_view text;
};

class JsonWriter {
 public:
  explicit JsonWriter(JsonForm form = JsonForm::kCompact) : form_(form) {}

  template <typename Members>
  auto Object(const Members& members) {
    return Within('{', '}', members);
  }
  template <typename Elements>
  auto Array(const Elements& elements) {
    return Within('[', ']', elements);
  }
  // Writes the value that `append` appends to the text.
  template <typename Append>
  void Raw(const Append& append) {
    BeginValue();
    append(text_);
  }
  // Writes the name of the next value of an object.
  void Key(absl::string_view name);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(std::nullptr_t) { Put("null"); }
  void Value(RawJson json) { Put(json.text); }
  void Value(bool value) { Put(value ? "true" : "false"); }
  // Writes the number with nine digits; infinities and NaN as null.
  void Value(double value);
  // Writes the shortest number that reads back as the same float32; infinities and NaN as null.
  void Value(float value);
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void Value(T value) {
    Put(std::to_string(value));
  }
  // Writes null where there is none.
  template <typename T>
  void Value(const std::optional<T>& value) {
    value.has_value() ? Value(*value) : Value(nullptr);
  }
  // Writes each of a range of values.
  template <typename Range>
  void List(const Range& values) {
    Array([&] {
      for (const auto& value : values) Value(value);
    });
  }

  // Writes a value after a name.
  template <typename T>
  void Member(absl::string_view name, const T& value) {
    Key(name);
    Value(value);
  }
  template <typename Members>
  auto Object(absl::string_view name, const Members& members) {
    Key(name);
    return Object(members);
  }
  template <typename Elements>
  auto Array(absl::string_view name, const Elements& elements) {
    Key(name);
    return Array(elements);
  }
  template <typename Range>
  void List(absl::string_view name, const Range& values) {
    Key(name);
    List(values);
  }

  std::string Take();

 private:
  template <typename Fill>
  auto Within(char open, char close, const Fill& fill) {
    Open(open);
    if constexpr (std::is_void_v<decltype(fill())>) {
      fill();
      Close(close);
    } else {
      auto status = fill();
      Close(close);
      return status;
    }
  }
  void Open(char bracket);
  void Close(char bracket);
  void Put(absl::string_view value);
  void BeginValue();
  void NewLine();

  const JsonForm form_;
  std::string text_;
  int depth_ = 0;
  bool first_ = true;  // the innermost bracket is empty yet
  bool after_key_ = false;
};

// Returns `text` in quotes, as JsonForm::kCompact has it.
std::string JsonText(absl::string_view text);

}  // namespace reprise
