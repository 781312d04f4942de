// HashMap, HashSet: the containers of the standard library, with Abseil's hash.
//
// Where there is no memory to grow, they throw and stay unchanged. Abseil's own are left broken
// then, and crash when they are destroyed. String keys can be looked up by views too.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace reprise {

struct StringHash {
  using is_transparent = void;
  size_t operator()(absl::string_view text) const { return absl::Hash<absl::string_view>()(text); }
};
struct StringEqual {
  using is_transparent = void;
  bool operator()(absl::string_view a, absl::string_view b) const { return a == b; }
};
template <typename Key>
inline constexpr bool kIsString = std::is_same_v<Key, std::string>;
template <typename Key>
using HashOf = std::conditional_t<kIsString<Key>, StringHash, absl::Hash<Key>>;
template <typename Key>
using EqualOf = std::conditional_t<kIsString<Key>, StringEqual, std::equal_to<Key>>;

template <typename Key, typename Value, typename Hash = HashOf<Key>>
using HashMap = std::unordered_map<Key, Value, Hash, EqualOf<Key>>;
template <typename Key>
using HashSet = std::unordered_set<Key, HashOf<Key>, EqualOf<Key>>;

}  // namespace reprise
