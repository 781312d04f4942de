// Attribute: a named setting of a node, known when the model is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/graph/copy_on_write.h"
#include "runtime/graph/tensor.h"

namespace reprise {

class Graph;

using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, Tensor, std::shared_ptr<const Graph>>;

// Sorted by name, so that equal settings print and hash alike.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items) {
    if (items.size() > 0) map_.Edit() = items;
  }

  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  void Set(absl::string_view name, Attribute value) {
    map_.Edit()[std::string(name)] = std::move(value);
  }
  void Erase(absl::string_view name) {
    if (Has(name)) map_.Edit().erase(std::string(name));
  }

  // Returns nullptr when absent or of another type.
  template <typename T>
  const T* Get(absl::string_view name) const {
    const Attribute* attribute = Find(name);
    return attribute == nullptr ? nullptr : std::get_if<T>(attribute);
  }
  // Returns the value, or `fallback` when absent.
  int64_t Int(absl::string_view name, int64_t fallback) const {
    const int64_t* value = Get<int64_t>(name);
    return value == nullptr ? fallback : *value;
  }
  float Float(absl::string_view name, float fallback) const {
    const float* value = Get<float>(name);
    return value == nullptr ? fallback : *value;
  }
  std::string String(absl::string_view name, absl::string_view fallback) const {
    const std::string* value = Get<std::string>(name);
    return value == nullptr ? std::string(fallback) : *value;
  }
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback = {}) const {
    const auto* value = Get<std::vector<int64_t>>(name);
    return value == nullptr ? std::move(fallback) : *value;
  }

  bool empty() const { return map_->empty(); }
  auto begin() const { return map_->begin(); }
  auto end() const { return map_->end(); }
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.map_ == b.map_; }

 private:
  const Attribute* Find(absl::string_view name) const {
    const auto it = map_->find(name);
    return it == map_->end() ? nullptr : &it->second;
  }
  CopyOnWrite<std::map<std::string, Attribute, std::less<>>> map_;
};

}  // namespace reprise
