// ClosedSchema: a JSON schema whose objects have the properties that it lists, and no others.
//
// JSON schema lets an object have any further properties unless it says otherwise, and a model that
// is kept to a schema then goes on with properties of its own. Schemas of clients mean the ones
// they list, which is how other servers read them too.
//
// Threads: pure.
#pragma once

#include <string>

namespace reprise {

// Returns `schema` with "additionalProperties": false in each object that lists `properties` and
// says nothing of others. Whatever it allows, `schema` allows. Returns `schema` itself where
// objects are put together of several schemas, whose properties only the whole knows (allOf, if,
// $ref next to properties), and where it cannot be read.
std::string ClosedSchema(const std::string& schema);

}  // namespace reprise
