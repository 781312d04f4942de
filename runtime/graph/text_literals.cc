#include "runtime/graph/text_literals.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

bool LooksLikeFloat(absl::string_view text) {
  return text.find('.') != absl::string_view::npos || text.find('e') != absl::string_view::npos ||
         absl::StrContains(text, "inf") || absl::StrContains(text, "nan");
}

template <typename T>
bool ParsePlain(absl::string_view text, T* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// Reads the bits X of "nan(0xX)".
bool ParseNanBits(absl::string_view text, uint64_t* bits) {
  if (!absl::StartsWith(text, "nan(0x")) return false;
  text.remove_prefix(6);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *bits, 16);
  return result.ec == std::errc() && absl::string_view(result.ptr, 1) == ")";
}

template <typename T>
absl::StatusOr<T> ToInteger(TextLexer& lexer, const std::string& text, size_t position) {
  T value;
  if (!ParsePlain(text, &value)) {
    return lexer.ErrorAt(position, absl::StrCat("'", text, "' is not an integer in range"));
  }
  return value;
}

template <typename T>
absl::StatusOr<T> ReadIntegerAs(TextLexer& lexer) {
  lexer.Peek();
  const size_t position = lexer.position();
  ASSIGN_OR_RETURN(const std::string text, lexer.Number());
  return ToInteger<T>(lexer, text, position);
}

absl::StatusOr<float> ToFloat(TextLexer& lexer, const std::string& text, size_t position) {
  float value;
  uint64_t bits;
  if (text == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (ParseNanBits(text, &bits)) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (!ParsePlain(text, &value) || std::isnan(value)) {
    return lexer.ErrorAt(position, absl::StrCat("'", text, "' is not a float"));
  }
  return value;
}

template <typename T>
void Store(T value, char* out) {
  std::memcpy(out, &value, sizeof(value));
}

absl::Status ReadElement(TextLexer& lexer, DType dtype, char* out) {
  lexer.Peek();
  const size_t position = lexer.position();
  if (dtype == DType::kBool) {
    if (lexer.TryWord("true")) return Store<uint8_t>(1, out), absl::OkStatus();
    if (lexer.TryWord("false")) return Store<uint8_t>(0, out), absl::OkStatus();
    return lexer.Error("expected true or false");
  }
  if (IsInteger(dtype)) {
    // Checked in the element's own type; the switch names each.
    const auto store = [&](auto zero) -> absl::Status {
      ASSIGN_OR_RETURN(const auto value, ReadIntegerAs<decltype(zero)>(lexer));
      Store(value, out);
      return absl::OkStatus();
    };
    switch (dtype) {
      case DType::kInt8:
        return store(int8_t{});
      case DType::kUInt8:
        return store(uint8_t{});
      case DType::kInt16:
        return store(int16_t{});
      case DType::kUInt16:
        return store(uint16_t{});
      case DType::kInt32:
        return store(int32_t{});
      case DType::kUInt32:
        return store(uint32_t{});
      case DType::kInt64:
        return store(int64_t{});
      default:
        return store(uint64_t{});
    }
  }
  ASSIGN_OR_RETURN(const std::string text, lexer.Number());
  uint64_t bits;
  if (ParseNanBits(text, &bits)) {
    std::memcpy(out, &bits, DTypeSize(dtype));  // Little-endian: the low bytes come first.
    return absl::OkStatus();
  }
  if (dtype == DType::kFloat64) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (text != "nan" && !ParsePlain(text, &value)) {
      return lexer.ErrorAt(position, absl::StrCat("'", text, "' is not a float"));
    }
    Store(value, out);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const float value, ToFloat(lexer, text, position));
  if (dtype == DType::kFloat32) Store(value, out);
  if (dtype == DType::kFloat16) Store(FloatToHalf(value), out);
  if (dtype == DType::kBFloat16) Store(FloatToBFloat16(value), out);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ReadInteger(TextLexer& lexer) { return ReadIntegerAs<int64_t>(lexer); }

absl::StatusOr<Attribute> ToNumber(TextLexer& lexer, const std::string& text, size_t position) {
  if (LooksLikeFloat(text)) return ToFloat(lexer, text, position);
  return ToInteger<int64_t>(lexer, text, position);
}

absl::StatusOr<Tensor> ReadTensorBody(TextLexer& lexer, DType dtype, Shape shape) {
  if (dtype == DType::kUndefined) return lexer.Error("a tensor needs a dtype");
  const size_t elements = NumElements(shape);
  const size_t size = DTypeSize(dtype);
  std::string bytes;
  if (lexer.TryWord("hex")) {
    ASSIGN_OR_RETURN(const std::string hex, lexer.Quoted());
    if (hex.size() % 2 != 0 || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) {
      return lexer.Error("expected pairs of hex digits before this");
    }
    bytes = absl::HexStringToBytes(hex);
  } else {
    RETURN_IF_ERROR(lexer.Expect('{'));
    if (!lexer.TryChar('}')) {
      do {
        char element[8];
        RETURN_IF_ERROR(ReadElement(lexer, dtype, element));
        bytes.append(element, size);
      } while (lexer.TryChar(','));
      RETURN_IF_ERROR(lexer.Expect('}'));
    }
  }
  // Compared before anything is multiplied or allocated: the shape may claim any size.
  if (bytes.size() % size != 0 || bytes.size() / size != elements) {
    return lexer.Error(absl::StrCat("shape ", ShapeToString(shape), " needs ", elements,
                                    " elements, got ", bytes.size() / size, " before this"));
  }
  return Tensor::Make(dtype, std::move(shape), [&](void* data) {
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  });
}

absl::StatusOr<Attribute> ReadList(TextLexer& lexer) {
  RETURN_IF_ERROR(lexer.Expect('['));
  if (lexer.Peek() == '"') {
    std::vector<std::string> strings;
    do {
      ASSIGN_OR_RETURN(std::string text, lexer.Quoted());
      strings.push_back(std::move(text));
    } while (lexer.TryChar(','));
    RETURN_IF_ERROR(lexer.Expect(']'));
    return strings;
  }
  std::vector<std::pair<std::string, size_t>> items;
  bool floats = false;
  do {
    lexer.Peek();
    const size_t position = lexer.position();
    ASSIGN_OR_RETURN(std::string text, lexer.Number());
    floats |= LooksLikeFloat(text);
    items.emplace_back(std::move(text), position);
  } while (lexer.TryChar(','));
  RETURN_IF_ERROR(lexer.Expect(']'));
  if (floats) {
    std::vector<float> values;
    for (const auto& [text, position] : items) {
      ASSIGN_OR_RETURN(const float value, ToFloat(lexer, text, position));
      values.push_back(value);
    }
    return values;
  }
  std::vector<int64_t> values;
  for (const auto& [text, position] : items) {
    ASSIGN_OR_RETURN(const int64_t value, ToInteger<int64_t>(lexer, text, position));
    values.push_back(value);
  }
  return values;
}

}  // namespace reprise
