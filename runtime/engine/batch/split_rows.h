// SplitRows, JoinRows: a request with more rows than a replay takes, in parts.
//
// Ownership: the parts borrow the request's bytes. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/engine/model/model.h"
#include "runtime/engine/types/request.h"

namespace reprise {

struct RequestPart {
  Request request;
  RequestShape shape;  // the shape of `request`
};

// Cuts a request that was measured as `shape`, with more rows than Model::MaxRows() allows in one
// replay, into parts of at most `max_rows` rows each, without copying: dim 0 of every input is cut.
// The shapes of the parts follow from the shape of the whole.
std::vector<RequestPart> SplitRows(const Model& model, const Request& request,
                                   const RequestShape& shape, int64_t max_rows);

// Joins the answers of a split request along the batch dim of each output. The first error wins.
// `info` is the last part's.
Response JoinRows(const Model& model, std::vector<Response> parts);

}  // namespace reprise
