// SizeTables: the tables that a model makes of its sizes, and along which dims their elements may
// differ.
//
// At one size of each axis such a table may happen to hold one number alone: places compared with
// 30 where there are 5. A walk at these sizes must not take it for a table that is made of one
// number, as Expand and ConstantOfShape make them. A reading knows it for all sizes of a region: an
// element that holds an index differs along the dim of that index.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/graph/graph.h"
#include "runtime/ops/axis/uneven_tables.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/passes/read/size_regions.h"

namespace reprise {

class SizeTables {
 public:
  // `graph`, which is symbolic, outlives it.
  explicit SizeTables(const Graph& graph) : graph_(graph) {}

  // Returns the tables that are uneven in the region of `sizes`, in one of those before, or in one
  // that an axis leads to while the others stay as they were in the first call. By their names,
  // which specialised graphs keep.
  const UnevenTables& UnevenAt(const Binding& sizes);

 private:
  // Every axis is looked at up to this size, the largest of a request.
  static constexpr int64_t kLargest = 1 << 20;

  void Take(const SizeReading& reading);
  void TakeValue(const std::string& name, const SizeReading::Value& value);
  void TakeConstant(const std::string& name, const Tensor& tensor);
  void TakeAll();
  void Join(const std::string& name, const UnevenDims& dims);

  const Graph& graph_;
  std::unique_ptr<SizeRegions> regions_;
  UnevenTables tables_;
  std::map<std::string, Tensor> constants_;  // Those of the first region that has them.
};

}  // namespace reprise
