#include "server/wire/datatype.h"

namespace reprise {
namespace {

struct DatatypeRow {
  DType dtype;
  const char* name;
  inference::DataType config;
};

constexpr DatatypeRow kDatatypeRows[] = {
    {DType::kUndefined, "", inference::TYPE_INVALID},
    {DType::kBool, "BOOL", inference::TYPE_BOOL},
    {DType::kUInt8, "UINT8", inference::TYPE_UINT8},
    {DType::kUInt16, "UINT16", inference::TYPE_UINT16},
    {DType::kUInt32, "UINT32", inference::TYPE_UINT32},
    {DType::kUInt64, "UINT64", inference::TYPE_UINT64},
    {DType::kInt8, "INT8", inference::TYPE_INT8},
    {DType::kInt16, "INT16", inference::TYPE_INT16},
    {DType::kInt32, "INT32", inference::TYPE_INT32},
    {DType::kInt64, "INT64", inference::TYPE_INT64},
    {DType::kFloat16, "FP16", inference::TYPE_FP16},
    {DType::kFloat32, "FP32", inference::TYPE_FP32},
    {DType::kFloat64, "FP64", inference::TYPE_FP64},
    {DType::kBFloat16, "BF16", inference::TYPE_BF16},
};

const DatatypeRow& RowOf(DType dtype) {
  for (const DatatypeRow& row : kDatatypeRows) {
    if (row.dtype == dtype) return row;
  }
  return kDatatypeRows[0];
}

}  // namespace

absl::string_view ProtocolName(DType dtype) { return RowOf(dtype).name; }

std::optional<DType> ParseProtocolName(absl::string_view name) {
  for (const DatatypeRow& row : kDatatypeRows) {
    if (row.dtype != DType::kUndefined && name == row.name) return row.dtype;
  }
  return std::nullopt;
}

inference::DataType ConfigType(DType dtype) { return RowOf(dtype).config; }

absl::string_view ProtocolName(const ModelIo& io) {
  return io.text ? kTextDatatype : ProtocolName(io.dtype);
}

inference::DataType ConfigType(const ModelIo& io) {
  return io.text ? inference::TYPE_STRING : ConfigType(io.dtype);
}

}  // namespace reprise
